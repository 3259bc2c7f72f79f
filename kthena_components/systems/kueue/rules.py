"""Checks the queues of Kueue: what names them, whether they admit anything, and their quotas."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from kthena_components.core.findings import (
    Finding,
    Level,
    advise,
    count_of,
    each_of,
    refuse,
    suggest,
)
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object, requests_of
from kthena_components.core.remedies import remove, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_accelerator, parse_quantity, render_quantity
from kthena_components.core.values.read import (
    mapping,
    require_known,
    sequence,
    text,
    unknown_within,
)
from kthena_components.core.values.unknown import MaybeText, Unknown, known
from kthena_components.systems.kueue.view import (
    CLUSTER_QUEUE,
    ELASTIC,
    GROUP,
    GROUP_NAME,
    LOCAL_QUEUE,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    UNCONSTRAINED,
    UNREAD,
    PodSetTopology,
    Workload,
    aligned,
    cluster_queue,
    cohort_of,
    flavors,
    lent_to,
    local_queue,
    ray_clusters,
    topologies,
    workloads,
)

_LENT = Unknown("the cohort may lend more, and the queue has no borrowingLimit")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reference:
    """A name of a queue or a flavor, and where it should be."""

    path: str
    name: MaybeText | None
    kind: GroupKind
    space: Object
    """The object that names it."""
    so: str
    """What Kueue does without it."""
    beside: frozenset[object] = frozenset()
    """Names that stand beside it, and must differ from it."""


def _names(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, _Reference]]:
    """Yield each name of another object of Kueue, and what happens if there is none."""
    for wanted in workloads(cluster):
        so = "so Kueue never admits it"
        yield (
            cluster,
            _Reference(
                path=wanted.path, name=wanted.queue, kind=LOCAL_QUEUE, space=wanted.owner, so=so
            ),
        )
    for queue in cluster.of(LOCAL_QUEUE):
        path, name = queue.at("spec.clusterQueue"), text(queue.spec.get("clusterQueue"))
        so = "so Kueue admits nothing of this LocalQueue"
        yield cluster, _Reference(path=path, name=name, kind=CLUSTER_QUEUE, space=queue, so=so)
    for queue in cluster.of(CLUSTER_QUEUE):
        so, beside = "so this ClusterQueue is inactive", frozenset(_flavor_names(queue))
        for at, flavor in flavors(queue):
            path, name = queue.at(f"{at}.name"), text(flavor.get("name"))
            yield (
                cluster,
                _Reference(
                    path=path, name=name, kind=RESOURCE_FLAVOR, space=queue, so=so, beside=beside
                ),
            )


def _flavor_names(queue: Object) -> Iterator[object]:
    yield from (name for _, flavor in flavors(queue) if isinstance(name := flavor.get("name"), str))


@each_of(_names)
def kueue_queue_exists(cluster: ClusterObjects, named: _Reference) -> Iterator[Finding]:
    """The LocalQueue of a workload exists in its namespace, its ClusterQueue, and the flavors.

    The label kueue.x-k8s.io/queue-name of a Job, a LeaderWorkerSet, a RayCluster and others names a
    LocalQueue, that names a ClusterQueue, and that ResourceFlavors. Without one of them, the pods
    stay suspended or gated.

    Pass: queue-name team, a LocalQueue team in the namespace of the workload.
    Fail: among all objects of the cluster, queue-name tema, and LocalQueues of other names.
    Level: advisory if these are all objects of the cluster; else a missing one is not checked.
    Source: kubernetes-sigs/kueue v0.19.2 pkg/controller/core/workload_controller.go
    getQueueBlocker; pkg/cache/scheduler/clusterqueue.go inactiveReason (FlavorNotFound).
    """
    name, kind = known(named.name, named.path), named.kind
    if name in (None, "") or _find(cluster, named, name) is not None:
        return
    missing = Unknown(f"the {kind[1]} {display(name)} is not among these objects")
    near = [own for space, own in cluster.named(kind) if space in {"", named.space.namespace}]
    names = [own for own in near if own not in named.beside]
    given = bool(cluster.of(kind)) and cluster.complete
    require_known(named.path, None if given else missing, cluster.name_unknown(kind))
    where = " in its namespace" if kind == LOCAL_QUEUE else ""
    seen = f"is {display(name)}, but there is no such {kind[1]}{where}, {named.so}"
    yield advise(named.path, seen, suggest(str(name), names) if names else f"add a {kind[1]}")


def _find(cluster: ClusterObjects, named: _Reference, name: object) -> Object | None:
    if named.kind == LOCAL_QUEUE:
        require_known(named.path, named.space.namespace)
        return local_queue(cluster, named.space, str(name))
    return cluster.named(named.kind).get(("", str(name)))


def _queues(cluster: ClusterObjects) -> Iterator[tuple[Object, Object | None]]:
    """Yield each LocalQueue with its ClusterQueue."""
    yield from ((queue, cluster_queue(cluster, queue)) for queue in cluster.of(LOCAL_QUEUE))


@each_of(_queues)
def kueue_queue_open(queue: Object, above: Object | None) -> Iterator[Finding]:
    """The queues of workloads admit some: they are not stopped, and select namespaces.

    A ClusterQueue without namespaceSelector selects no namespace; `{}` selects all.

    Pass: namespaceSelector {}, and stopPolicy None.
    Fail: a ClusterQueue without namespaceSelector, which a LocalQueue names; stopPolicy Hold.
    Level: mandatory without namespaceSelector; advisory for a stopPolicy, which may be wanted.
    Source: kubernetes-sigs/kueue v0.19.2 apis/kueue/v1beta2/clusterqueue_types.go and
    localqueue_types.go; pkg/workload/resources.go ErrNamespaceMismatch.
    """
    for found in filter(None, (queue, above)):
        path, policy = found.at("spec.stopPolicy"), found.spec.get("stopPolicy")
        require_known(path, policy)
        if policy in ("Hold", "HoldAndDrain"):
            seen = f"is {policy}, so Kueue admits nothing new in this {found.kind}"
            yield advise(path, seen, write("None"))
    if above is None:
        return
    path = above.at("spec.namespaceSelector")
    require_known(path, above.spec.get("namespaceSelector"), above.body.get("spec"))
    if above.spec.get("namespaceSelector") is None:
        seen = (
            f"is missing, which selects no namespace, so Kueue admits nothing of LocalQueue "
            f"{display(queue.name)}"
        )
        yield refuse(path, seen, write({}, "write {} for all namespaces"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quota:
    """What a flavor of a ClusterQueue has of a resource at most."""

    path: str
    """Path of the nominalQuota, in the caller's input."""
    most: Decimal
    lends: bool
    """Whether a cohort may lend any amount more."""
    cohort: str = ""
    """The cohort whose other queues are among the objects, and whose sum is the most."""


def _with_queue(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Workload, Object]]:
    """Yield what Kueue admits at once, with its ClusterQueue."""
    for wanted in workloads(cluster):
        queue = known(wanted.queue, wanted.path) if isinstance(wanted.queue, str) else None
        own = None if queue is None else local_queue(cluster, wanted.owner, queue)
        above = None if own is None else cluster_queue(cluster, own)
        if above is not None:
            yield cluster, wanted, above


@each_of(_with_queue)
def kueue_quota(cluster: ClusterObjects, wanted: Workload, queue: Object) -> Iterator[Finding]:
    """What Kueue admits at once requests at most the quota of its ClusterQueue.

    It admits together the pods of a Job, a StatefulSet, a JobSet, an MPIJob or a Ray object, a
    group of a LeaderWorkerSet, and each pod of a Deployment. Equal pods get one flavor. A flavor
    has its nominalQuota, and in a cohort the borrowingLimit more, at most what the other queues of
    the cohort and of those above it lend: their nominalQuota, or the lendingLimit. Kueue admits no
    pod with a resource that the ClusterQueue does not cover, unless its configuration excludes it.

    Pass: groups of 16 GPUs, and a nominalQuota of 16.
    Fail: groups of 16 GPUs, and a nominalQuota of 8 without cohort; groups of 32 GPUs, and two
    queues of a cohort with 8 each; GPUs that no flavor has.
    Level: mandatory, because it never starts; advisory for GPUs that no flavor has, for the sum of
    a cohort, which may have other queues, and if the ClusterQueue is in another file, which may be
    an alternative, without `--whole`.
    Source: kubernetes-sigs/kueue v0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go
    findFlavorForPodSets and fitsResourceQuota; pkg/cache/scheduler/resource_node.go
    potentialAvailable.
    """
    same = cluster.source_of(queue) == cluster.source_of(wanted.owner)
    quotas = _quotas(cluster, queue)
    asked, largest = _requested_amounts(wanted)
    for resource, amount in asked.items():
        own = quotas.get(resource, [])
        if not own:
            if is_accelerator(resource) and amount:
                yield _uncovered(wanted, queue, resource)
            continue
        together, most = sum(quota.most for quota in own), max(quota.most for quota in own)
        if amount <= together and largest[resource] <= most:
            continue
        require_known(wanted.path, _LENT if any(quota.lends for quota in own) else None)
        one = amount <= together
        found = _exceeds(wanted, queue, resource, own, largest[resource] if one else amount)
        sure = same and not any(quota.cohort for quota in own)
        yield found if sure else replace(found, level=Level.ADVISORY)


def _requested_amounts(wanted: Workload) -> tuple[dict[str, Decimal], dict[str, Decimal]]:
    """Return what all pods request, and the most that equal ones do."""
    asked: dict[str, Decimal] = {}
    largest: dict[str, Decimal] = {}
    for pods, number in wanted.pods:
        copies, each = known(number, wanted.path), known(requests_of(pods), wanted.path)
        for resource, amount in each.items():
            share = amount * copies
            asked[resource] = asked.get(resource, Decimal(0)) + share
            largest[resource] = max(largest.get(resource, Decimal(0)), share)
    return asked, largest


def _quotas(cluster: ClusterObjects, queue: Object) -> Mapping[str, list[_Quota]]:
    """Read a queue's quotas by resource, one for each flavor; a cohort may lend more."""
    groups, cohort = queue.spec.get("resourceGroups"), cohort_of(queue.spec)
    require_known(queue.at("spec.resourceGroups"), cohort, unknown_within(groups))
    number, lent = lent_to(cluster, queue, cohort) if isinstance(cohort, str) else (0, {})
    found: dict[str, list[_Quota]] = {}
    for path, flavor in flavors(queue):
        for index, one in enumerate(map(mapping, sequence(flavor.get("resources")))):
            nominal = parse_quantity(one.get("nominalQuota"))
            limit = one.get("borrowingLimit") if cohort else 0
            more, summed = parse_quantity(limit) or Decimal(0), ""
            rest = lent.get((str(flavor.get("name")), str(one.get("name"))), Decimal(0))
            if number > 1 and (limit is None or rest < more):
                more, summed = rest, str(cohort)
            quota = _Quota(
                path=queue.at(f"{path}.resources[{index}].nominalQuota"),
                most=UNREAD if nominal is None else nominal + more,
                lends=limit is None and not summed,
                cohort=summed,
            )
            found.setdefault(str(one.get("name")), []).append(quota)
    return found


def _exceeds(
    wanted: Workload, queue: Object, resource: str, quotas: list[_Quota], amount: Decimal
) -> Finding:
    """Write the finding of a workload above the largest quota, by which Kueue never admits it."""
    asks = f"and {wanted.title} requests {render_quantity(amount)} of {resource} at once"
    most = max(quotas, key=lambda quota: quota.most)
    has = f"its ClusterQueue {display(queue.name)} has at most {render_quantity(most.most)}"
    has += f" with what its cohort {display(most.cohort)} lends here" if most.cohort else ""
    if len(quotas) > 1:
        has += f" in one of its {len(quotas)} flavors"
    seen = f"is {display(wanted.queue)}, {asks}, but {has}, so Kueue never admits it"
    number = render_quantity(amount)
    remedy = write(number, f"raise the nominalQuota to {number}, or request less", at=most.path)
    return refuse(wanted.path, seen, remedy)


def _uncovered(wanted: Workload, queue: Object, resource: str) -> Finding:
    seen = (
        f"is {display(wanted.queue)}, and {wanted.title} requests {resource}, which no flavor of "
        f"its ClusterQueue {display(queue.name)} has, and Kueue admits no such pods"
    )
    return advise(wanted.path, seen, f"add {resource} to the coveredResources, with a quota")


@each_of(topologies)
def kueue_topology(owner: Object, sets: Sequence[PodSetTopology]) -> Iterator[Finding]:
    """Two pod sets of a podset-group-name have the same topology, as a leader and its workers have.

    A group is two pod sets, of which one is a single pod, such as the leader and the workers of a
    LeaderWorkerSet, or two replicated jobs of a JobSet, and their pod templates state one topology.
    Without a group, only the templates of a LeaderWorkerSet are compared.

    Pass: podset-required-topology rack and podset-group-name g in both templates.
    Fail: podset-group-name in one template; required-topology rack in one, and block in the other;
    a JobSet whose jobs of 2 and of 4 pods have one group; both topologies in one template.
    Level: mandatory with a podset-group-name, because Kueue's webhook rejects it; else advisory.
    Source: kubernetes-sigs/kueue v0.19.2 pkg/controller/jobframework/tas_validation.go, which the
    webhooks of pkg/controller/jobs call: jobset, mpijob and raycluster for groups since v0.15.
    """
    for one in sets:
        require_known(owner.at(one.at), *one.stated.values())
    if found := next((fault for one in sets for fault in _alone(owner, one)), None):
        yield found
        return
    named = [(str(one.stated[GROUP_NAME]), one) for one in sets if one.stated.get(GROUP_NAME)]
    if owner.kind == "LeaderWorkerSet" and len(sets) == _PAIR:
        yield from _alike(owner, sets, is_group=bool(named))
        return
    for name in dict(named):
        yield from _of_group(owner, name, [one for own, one in named if own == name])


_PAIR = 2
_REJECTS = "and Kueue's webhook rejects"


def _alone(owner: Object, one: PodSetTopology) -> Iterator[Finding]:
    """Report annotations that no pod set may have together."""
    asked = [key for key in (*TOPOLOGY, UNCONSTRAINED) if one.stated.get(key) is not None]
    path = owner.at(f"{one.at}.{GROUP}/")
    if len(asked) > 1:
        seen = f"is stated beside {asked[0]}, {_REJECTS} more than one topology of a pod set"
        yield refuse(f"{path}{asked[1]}", seen, remove())
    elif (group := one.stated.get(GROUP_NAME)) and not {*asked} & {*TOPOLOGY}:
        seen = f"is {display(group)}, but the template states neither {TOPOLOGY[0]} nor "
        remedy = f"write one of them, or remove {GROUP_NAME}"
        yield refuse(f"{path}{GROUP_NAME}", f"{seen}{TOPOLOGY[1]}, {_REJECTS} such a group", remedy)


def _of_group(owner: Object, name: str, members: Sequence[PodSetTopology]) -> Iterator[Finding]:
    """Check the pod sets of a group, which are two, and one of them a single pod."""
    path, number = owner.at(f"{members[0].at}.{GROUP}/{GROUP_NAME}"), len(members)
    if number == 1:
        seen = f"is {display(name)}, but no other template has this group, {_REJECTS} "
        yield refuse(path, f"{seen}a group of one", remove())
    elif number > _PAIR:
        seen = f"is {display(name)}, which {number} templates state, {_REJECTS} a group of "
        yield refuse(path, f"{seen}more than two", "leave it in two of them")
    else:
        first, second = (one.count for one in members)
        if isinstance(first, int) and isinstance(second, int) and 1 not in (first, second):
            seen = f"is {display(name)}, whose templates have {first} and "
            seen += f"{count_of(second, 'pod')}, {_REJECTS} a group without a single pod"
            yield refuse(path, seen, "remove it from both")
        yield from _alike(owner, members, is_group=True)


def _alike(owner: Object, both: Sequence[PodSetTopology], *, is_group: bool) -> Iterator[Finding]:
    """Report annotations in which two pod sets differ that are meant for one place."""
    so = f"{_REJECTS} such a group" if is_group else "and Kueue may place them apart"
    for key in (GROUP_NAME, *TOPOLOGY):
        first, second = (each.stated.get(key) for each in both)
        if first != second:
            given, holder = both if first else both[::-1]
            seen = "is missing" if not (first and second) else f"is {display(second)}"
            seen += f", but the other template states {display(given.stated[key])}, {so}"
            path, report = owner.at(f"{holder.at}.{GROUP}/"), refuse if is_group else advise
            yield report(f"{path}{key}", seen, aligned(path, given, holder, key))
            return


@each_of(ray_clusters)
def kueue_ray(owner: Object, at: str, spec: Mapping[str, object]) -> Iterator[Finding]:
    """A Ray cluster in a queue has no autoscaler, and a RayJob there deletes its cluster.

    An elastic job, with the annotation kueue.x-k8s.io/elastic-job "true", may have one. The
    groupName head is reserved.

    Pass: enableInTreeAutoscaling false in a RayCluster with the label kueue.x-k8s.io/queue-name.
    Fail: enableInTreeAutoscaling true; groupName head; a RayJob without shutdownAfterJobFinishes.
    Level: mandatory, because Kueue's webhook rejects it.
    Source: kubernetes-sigs/kueue v0.19.2 pkg/controller/jobs: raycluster/raycluster_webhook.go
    validateCreate, raycluster/common.go ValidateCreate, rayjob/rayjob_webhook.go validateCreate.
    """
    elastic = mapping(owner.metadata.get("annotations")).get(ELASTIC)
    scales, path = spec.get("enableInTreeAutoscaling"), owner.at(f"{at}.enableInTreeAutoscaling")
    if scales and elastic != "true":
        require_known(path, scales, elastic)
        seen = f"is true in a queue, {_REJECTS} an autoscaler of a cluster that is no elastic job"
        yield refuse(path, seen, write(False))
    for index, group in enumerate(map(mapping, sequence(spec.get("workerGroupSpecs")))):
        if group.get("groupName") == "head":
            seen = f"is 'head', which Kueue keeps for the pods of the head, {_REJECTS} it"
            path = owner.at(f"{at}.workerGroupSpecs[{index}].groupName")
            yield refuse(path, seen, "give the group another name")
    if owner.kind == "RayJob" and not owner.spec.get("clusterSelector"):
        ends, path = owner.spec.get("shutdownAfterJobFinishes"), "spec.shutdownAfterJobFinishes"
        require_known(owner.at(path), ends)
        if ends is not True:
            seen = f"is {'missing' if ends is None else display(ends)}, {_REJECTS} a RayJob in a "
            seen += "queue whose cluster stays"
            yield refuse(owner.at(path), seen, write(True))
