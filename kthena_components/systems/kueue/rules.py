"""Checks the queues of Kueue: what names them, whether they admit anything, and their quotas."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from kthena_components.core.findings import Finding, Level, advise, each_of, refuse, suggest
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object, requests_of
from kthena_components.core.remedies import remove, together, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_accelerator, parse_quantity, render_quantity
from kthena_components.core.values.read import (
    mapping,
    require_known,
    sequence,
    text,
    unknown_in,
    unknown_within,
)
from kthena_components.core.values.unknown import MaybeText, Unknown, known
from kthena_components.systems.kueue.view import (
    CLUSTER_QUEUE,
    GROUP,
    GROUP_NAME,
    LOCAL_QUEUE,
    RESOURCE_FLAVOR,
    TOPOLOGY,
    Workload,
    cluster_queue,
    flavors,
    local_queue,
    topologies,
    workloads,
)

_COHORT = ("cohort", "cohortName")
"""The field of v1beta1, and its name in v1beta2."""
_UNREAD = Decimal("Infinity")
"""In place of a quota that is none: crd-schema reports it."""
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


_Lent = Mapping[tuple[object, object], Decimal]
"""What the queues of a cohort lend, by flavor and resource."""


def _cohort_of(spec: Mapping[str, object], fields: tuple[str, ...] = _COHORT) -> object:
    return next((spec[key] for key in fields if spec.get(key)), None)


def _top_of(cluster: ClusterObjects, name: str) -> str:
    """Return the cohort above all others that a cohort is in."""
    cohorts = cluster.named(_COHORTS)
    for _ in range(_DEEPEST):
        found = cohorts.get(("", name))
        above = None if found is None else _cohort_of(found.spec, _PARENT)
        if not isinstance(above, str):
            break
        name = above
    return name


def _lent(cluster: ClusterObjects) -> Iterator[Mapping[str, tuple[int, _Lent]]]:
    """Return for each cohort at the top how many queues it has, and what all of them lend.

    Nothing, if a value is not known.
    """
    found: dict[str, tuple[int, dict[tuple[object, object], Decimal]]] = {}
    all_of_them = (*cluster.of(CLUSTER_QUEUE), *cluster.of(_COHORTS))
    is_hidden = any(unknown_within(one.spec) or unknown_in(one.name) for one in all_of_them)
    for one in () if is_hidden else all_of_them:
        name = _cohort_of(one.spec) if one.group_kind == CLUSTER_QUEUE else one.name
        top = _top_of(cluster, str(name))
        number, amounts = found.get(top, (0, {}))
        found[top] = number + (one.group_kind == CLUSTER_QUEUE), amounts
        for key, amount in _lending(one):
            amounts[key] = amounts.get(key, Decimal(0)) + amount
    yield found


def _lending(queue: Object) -> Iterator[tuple[tuple[object, object], Decimal]]:
    """Return what a queue or a cohort may lend of each resource of its flavors."""
    for _, flavor in flavors(queue):
        for one in map(mapping, sequence(flavor.get("resources"))):
            nominal, limit = (parse_quantity(one.get(key)) for key in ("nominalQuota", _LENDING))
            most = _UNREAD if nominal is None else nominal
            # The limit of a Cohort does not bind the queues below it.
            limit = limit if queue.group_kind == CLUSTER_QUEUE else None
            own = (str(flavor.get("name")), str(one.get("name")))
            yield own, most if limit is None else min(most, limit)


_LENDING = "lendingLimit"
_PARENT = ("parentName", "parent")
"""The field of a Cohort, and its name in v1alpha1."""
_COHORTS: GroupKind = (GROUP, "Cohort")
_DEEPEST = 32


def _lent_to(
    cluster: ClusterObjects, queue: Object, cohort: str
) -> tuple[int, dict[tuple[object, object], Decimal]]:
    """Return how many queues the cohort of one has, and what the others lend."""
    number, every = cluster.once(_lent)[0].get(_top_of(cluster, cohort), (0, {}))
    lent = dict(every)
    for key, amount in _lending(queue) if number else ():
        if amount.is_finite():
            lent[key] -= amount
    return number, lent


def _quotas(cluster: ClusterObjects, queue: Object) -> Mapping[str, list[_Quota]]:
    """Read a queue's quotas by resource, one for each flavor; a cohort may lend more."""
    groups, cohort = queue.spec.get("resourceGroups"), _cohort_of(queue.spec)
    require_known(queue.at("spec.resourceGroups"), cohort, unknown_within(groups))
    number, lent = _lent_to(cluster, queue, cohort) if isinstance(cohort, str) else (0, {})
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
                most=_UNREAD if nominal is None else nominal + more,
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
def kueue_topology(
    owner: Object, templates: Mapping[str, Mapping[str, object]]
) -> Iterator[Finding]:
    """The leader and the workers of a LeaderWorkerSet have the same topology, and the same group.

    A podset-group-name is in both templates, which state one podset-required-topology or one
    podset-preferred-topology.

    Pass: podset-required-topology rack and podset-group-name g in both templates.
    Fail: podset-group-name in one template; required-topology rack in one, and block in the other.
    Level: mandatory with a podset-group-name, because Kueue's webhook rejects it; else advisory.
    Source: kubernetes-sigs/kueue v0.19.2 pkg/controller/jobframework/tas_validation.go
    ValidatePodSetGroupingTopology and topologyRequestsValid.
    """
    if not templates:
        return
    (at, own), *rest = templates.items()
    require_known(owner.at(at), *own.values())
    group = own.get(GROUP_NAME)
    if not rest:
        if group:
            seen = f"is {display(group)}, but the pods have one template, and Kueue's webhook "
            path = owner.at(f"{at}.{GROUP}/{GROUP_NAME}")
            yield refuse(path, f"{seen}rejects a group of one", remove())
        return
    ((other_at, other),) = rest
    require_known(owner.at(other_at), *other.values())
    is_group = bool(group or other.get(GROUP_NAME))
    so = "Kueue's webhook rejects such a group" if is_group else "Kueue may place them apart"
    for key in (GROUP_NAME, *TOPOLOGY):
        first, second = own.get(key), other.get(key)
        if first != second:
            holder, wanted = (other_at, first) if first else (at, second)
            seen = "is missing" if not (first and second) else f"is {display(second)}"
            seen += f", but the other template states {display(wanted)}, and {so}"
            report, remedy = refuse if is_group else advise, write(wanted)
            beside = templates[holder].get(TOPOLOGY[1]) if key == TOPOLOGY[0] else None
            if beside is not None:  # a pod set states one of the two
                place = owner.at(f"{holder}.{GROUP}/{TOPOLOGY[1]}")
                remedy = together(remedy, remove(f"remove {TOPOLOGY[1]}", at=place))
            yield report(owner.at(f"{holder}.{GROUP}/{key}"), seen, remedy)
            return
