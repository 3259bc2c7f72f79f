"""What Kueue admits: the workloads that objects become, and the queues that they name.

Source: kubernetes-sigs/kueue v0.19.2 pkg/controller/jobs: job/job_controller.go (podsCount,
minPodsCount), leaderworkerset/leaderworkerset_reconciler.go (one Workload for each group),
deployment/deployment_webhook.go (the label goes to the pods, each of which is a Workload),
statefulset, jobset, mpijob, raycluster, rayjob and rayservice (all pods are one Workload).
"""

from collections.abc import Iterator, Mapping, Sequence

from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import count, digits, mapping, sequence, text
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


def topologies(cluster: ClusterObjects) -> Iterator[tuple[Object, Mapping[str, dict[str, object]]]]:
    """Yield each LeaderWorkerSet of a queue, with Kueue's annotations of its templates, by path.

    Source: pkg/controller/jobs/leaderworkerset/leaderworkerset_webhook.go validateTopologyRequest.
    """
    for found in cluster.of(_LWS):
        fields, size = mapping(found.spec.get("leaderWorkerTemplate")), 0
        if isinstance(number := count(fields.get("size"), 1), int):
            size = number
        if mapping(found.metadata.get("labels")).get(QUEUE_NAME) is not None and size > 1:
            templates = {
                f"spec.leaderWorkerTemplate.{name}.metadata.annotations": mapping(
                    mapping(mapping(fields.get(name)).get("metadata")).get("annotations")
                )
                for name in ("leaderTemplate", "workerTemplate")
                if fields.get(name) is not None
            }
            keys = (*TOPOLOGY, GROUP_NAME)
            yield (
                found,
                {at: {k: own.get(f"{GROUP}/{k}") for k in keys} for at, own in templates.items()},
            )
