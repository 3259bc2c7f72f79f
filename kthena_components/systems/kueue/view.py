"""What Kueue admits: the workloads that objects become, and the queues that they name.

Source: kubernetes-sigs/kueue v0.19.2 pkg/controller/jobs: job/job_controller.go (podsCount,
minPodsCount), leaderworkerset/leaderworkerset_reconciler.go (one Workload for each group),
deployment/deployment_webhook.go (the label goes to the pods, each of which is a Workload),
statefulset, jobset, mpijob, raycluster, rayjob and rayservice (all pods are one Workload).
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.remedies import Remedy, remove, together, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import (
    count,
    digits,
    mapping,
    sequence,
    text,
    unknown_in,
    unknown_within,
)
from kthena_components.core.values.unknown import MaybeInt, MaybeText, Unknown

GROUP = "kueue.x-k8s.io"
LOCAL_QUEUE: GroupKind = (GROUP, "LocalQueue")
CLUSTER_QUEUE: GroupKind = (GROUP, "ClusterQueue")
RESOURCE_FLAVOR: GroupKind = (GROUP, "ResourceFlavor")
QUEUE_NAME = f"{GROUP}/queue-name"
"""The label with the LocalQueue of a workload."""
_LEAST = f"{GROUP}/job-min-parallelism"
"""The annotation of a Job that starts with fewer pods."""
_WHOLE: frozenset[GroupKind] = frozenset(
    {
        ("batch", "Job"),
        ("apps", "StatefulSet"),
        ("jobset.x-k8s.io", "JobSet"),
        ("kubeflow.org", "MPIJob"),
        ("ray.io", "RayCluster"),
        ("ray.io", "RayJob"),
        ("ray.io", "RayService"),
    }
)
"""Kinds whose pods are one Workload."""
_SEVERAL = _WHOLE - {("batch", "Job"), ("apps", "StatefulSet")}
"""Those of them whose templates are each a pod set."""
_EACH: frozenset[GroupKind] = frozenset({("", "Pod"), ("apps", "Deployment")})
"""Kinds whose pods are each one Workload."""
_LWS: GroupKind = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_NO_SIZE = Unknown("the size of a group is not a count")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What Kueue admits at once."""

    owner: Object
    path: str
    """Path of the label, in the caller's input."""
    queue: MaybeText | None
    title: str
    """What it is, for messages: `each group`."""
    pods: Sequence[tuple[PodSet, MaybeInt]]


def workloads(cluster: ClusterObjects) -> Iterator[Workload]:
    """Yield what Kueue admits of each object whose labels name a queue."""
    for found in cluster.objects:
        labels = mapping(found.metadata.get("labels"))
        if found.group_kind not in _WHOLE | _EACH | {_LWS} or labels.get(QUEUE_NAME) is None:
            continue
        title, pods = _parts(found, cluster.pods_of.get(found.index, []))
        yield Workload(
            owner=found,
            path=found.at(f"metadata.labels.{QUEUE_NAME}"),
            queue=text(labels.get(QUEUE_NAME)),
            title=title,
            pods=pods,
        )


def _parts(found: Object, pods: Sequence[PodSet]) -> tuple[str, list[tuple[PodSet, MaybeInt]]]:
    """Return what Kueue admits at once, and how many pods of each template belong to it."""
    if found.group_kind in _EACH:
        return "each pod", [(one, 1) for one in pods if one.count != 0]
    if found.group_kind == _LWS:
        size = count(mapping(found.spec.get("leaderWorkerTemplate")).get("size"), 1)
        read: MaybeInt = _NO_SIZE if size is None else size
        rest: MaybeInt = read if isinstance(read, Unknown) else max(read - 1, 0)
        return "each group", list(zip(pods, (1, rest), strict=False))
    least = _least_pods(found)
    numbers = [(one, one.count if least is None else least) for one in pods]
    return f"the {found.kind}", numbers


def _least_pods(found: Object) -> MaybeInt | None:
    """Return the pods with which a Job starts, where it states them."""
    stated = mapping(found.metadata.get("annotations")).get(_LEAST)
    if found.group_kind != ("batch", "Job") or stated is None:
        return None
    number = digits(stated) if isinstance(stated, str) else None
    return Unknown(f"{_LEAST} is not a number") if number is None else number


def local_queue(cluster: ClusterObjects, owner: Object, name: str) -> Object | None:
    """Find a LocalQueue, in any namespace where an object states none."""
    named = cluster.named(LOCAL_QUEUE)
    found = named.get((str(owner.namespace), name))
    if found is None and not owner.stated_namespace:
        found = next((queue for (_, other), queue in named.items() if other == name), None)
    return found


def cluster_queue(cluster: ClusterObjects, queue: Object) -> Object | None:
    """Find the ClusterQueue of a LocalQueue."""
    name = text(queue.spec.get("clusterQueue"))
    return cluster.named(CLUSTER_QUEUE).get(("", name)) if isinstance(name, str) else None


def flavors(queue: Object) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the path of each flavor of a ClusterQueue, and its fields."""
    for i, group in enumerate(map(mapping, sequence(queue.spec.get("resourceGroups")))):
        for j, flavor in enumerate(map(mapping, sequence(group.get("flavors")))):
            yield f"spec.resourceGroups[{i}].flavors[{j}]", flavor


TOPOLOGY = ("podset-required-topology", "podset-preferred-topology")
GROUP_NAME = "podset-group-name"
"""The annotation that puts the two pod sets of a Workload into one topology domain."""
UNCONSTRAINED = "podset-unconstrained-topology"
_ASKED = (*TOPOLOGY, UNCONSTRAINED, GROUP_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetTopology:
    """Kueue's annotations of the pods of one template."""

    at: str
    """Path of the annotations in the object."""
    stated: Mapping[str, object]
    """Without the prefix `kueue.x-k8s.io/`."""
    count: MaybeInt


def aligned(path: str, given: PodSetTopology, holder: PodSetTopology, key: str) -> Remedy:
    """Write what the other template states; a pod set states one of the two topologies."""
    stated = {each: given.stated[each] for each in TOPOLOGY if given.stated.get(each)}
    kept = [each for each in TOPOLOGY if holder.stated.get(each)]
    if key == GROUP_NAME:
        wanted = {} if kept else stated
        more = [write(v, f"{each} {display(v)}", at=path + each) for each, v in wanted.items()]
    else:
        more = [remove(f"remove {each}", at=path + each) for each in kept if each != key]
    return together(write(given.stated[key]), *more)


def topologies(cluster: ClusterObjects) -> Iterator[tuple[Object, list[PodSetTopology]]]:
    """Yield each object of a queue that is a Workload of several pod sets, with its annotations.

    Source: kubernetes-sigs/kueue v0.19.2, PodSets and validateTopologyRequest in
    pkg/controller/jobs/leaderworkerset, jobset, mpijob and raycluster.
    """
    for found in cluster.objects:
        if found.group_kind not in _SEVERAL | {_LWS}:
            continue
        if mapping(found.metadata.get("labels")).get(QUEUE_NAME) is None:
            continue
        if found.group_kind == _LWS:
            yield found, _of_groups(found)
        else:
            pods = cluster.pods_of.get(found.index, ())
            asked = (_topology(f"{one.path}.metadata", one.annotations, one.count) for one in pods)
            yield found, list(asked)


def _topology(at: str, annotations: object, number: MaybeInt) -> PodSetTopology:
    stated = mapping(annotations)
    asked = {key: stated.get(f"{GROUP}/{key}") for key in _ASKED}
    return PodSetTopology(at=f"{at}.annotations", stated=asked, count=number)


def _of_groups(found: Object) -> list[PodSetTopology]:
    """Return what the templates of a LeaderWorkerSet state; nothing if a group is one pod."""
    fields = mapping(found.spec.get("leaderWorkerTemplate"))
    size = count(fields.get("size"), 1)
    if not isinstance(size, int) or size < 2:  # noqa: PLR2004 - a leader and a worker
        return []
    numbers = {"leaderTemplate": 1, "workerTemplate": size - 1}
    return [
        _topology(
            f"spec.leaderWorkerTemplate.{name}.metadata",
            mapping(mapping(fields.get(name)).get("metadata")).get("annotations"),
            number,
        )
        for name, number in numbers.items()
        if fields.get(name) is not None
    ]


_COHORT = ("cohort", "cohortName")
"""The field of v1beta1, and its name in v1beta2."""
UNREAD = Decimal("Infinity")
"""In place of a quota that is none: crd-schema reports it."""
_Lent = Mapping[tuple[object, object], Decimal]
"""What the queues of a cohort lend, by flavor and resource."""


def cohort_of(spec: Mapping[str, object], fields: tuple[str, ...] = _COHORT) -> object:
    """Return the cohort that an object states; None without one."""
    return next((spec[key] for key in fields if spec.get(key)), None)


def _top_of(cluster: ClusterObjects, name: str) -> str:
    """Return the cohort above all others that a cohort is in."""
    cohorts = cluster.named(_COHORTS)
    for _ in range(_DEEPEST):
        found = cohorts.get(("", name))
        above = None if found is None else cohort_of(found.spec, _PARENT)
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
        name = cohort_of(one.spec) if one.group_kind == CLUSTER_QUEUE else one.name
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
            most = UNREAD if nominal is None else nominal
            # The limit of a Cohort does not bind the queues below it.
            limit = limit if queue.group_kind == CLUSTER_QUEUE else None
            own = (str(flavor.get("name")), str(one.get("name")))
            yield own, most if limit is None else min(most, limit)


_LENDING = "lendingLimit"
_PARENT = ("parentName", "parent")
"""The field of a Cohort, and its name in v1alpha1."""
_COHORTS: GroupKind = (GROUP, "Cohort")
_DEEPEST = 32


def lent_to(
    cluster: ClusterObjects, queue: Object, cohort: str
) -> tuple[int, dict[tuple[object, object], Decimal]]:
    """Return how many queues the cohort of one has, and what the others lend."""
    number, every = cluster.once(_lent)[0].get(_top_of(cluster, cohort), (0, {}))
    lent = dict(every)
    for key, amount in _lending(queue) if number else ():
        if amount.is_finite():
            lent[key] -= amount
    return number, lent


_RAY: Mapping[GroupKind, str] = {
    ("ray.io", "RayCluster"): "spec",
    ("ray.io", "RayJob"): "spec.rayClusterSpec",
    ("ray.io", "RayService"): "spec.rayClusterConfig",
}
"""The fields with a Ray cluster."""
ELASTIC = f"{GROUP}/elastic-job"


def ray_clusters(cluster: ClusterObjects) -> Iterator[tuple[Object, str, Mapping[str, object]]]:
    """Yield the Ray clusters whose objects name a queue; a RayJob may use one that is there."""
    for kind, at in _RAY.items():
        for found in cluster.of(kind):
            spec = found.spec if at == "spec" else mapping(found.spec.get(at.partition(".")[2]))
            if spec and mapping(found.metadata.get("labels")).get(QUEUE_NAME) is not None:
                yield found, at, spec
