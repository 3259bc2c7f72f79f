"""The rules about autoscalers, and the rule coscheduling-pods."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    Level,
    advise,
    count_of,
    each_of,
    not_checked,
    refuse,
)
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.remedies import at_most, either, or_more, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    group_kind,
    mapping,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
    unknown_within,
    whole,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, total

COSCHEDULING: GroupKind = ("scheduling.x-k8s.io", "PodGroup")
_DEFAULT = (None, "", "default-scheduler")


def _groups(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, Object, list[PodSet]]]:
    """Return the PodGroups with the pods that have their label."""
    labelled: dict[tuple[object, object], list[PodSet]] = {}
    for pods in cluster.pods if cluster.of(COSCHEDULING) else ():
        if isinstance(name := pods.labels.get(naming.COSCHEDULING), str):
            labelled.setdefault((pods.owner.namespace, name), []).append(pods)
    for group in cluster.of(COSCHEDULING):
        yield cluster, group, labelled.get((group.namespace, group.name), [])


@each_of(_groups)
def coscheduling_pods(
    cluster: ClusterObjects, group: Object, pods: list[PodSet]
) -> Iterator[Finding]:
    """At least minMember pods have the label of their PodGroup; otherwise none of them starts.

    The PodGroup is the kind of the coscheduling plugin (scheduling.x-k8s.io), and the label is
    scheduling.x-k8s.io/pod-group. These pods exist at first: a StatefulSet with OrderedReady, the
    default, creates a pod when the one before it is ready, LeaderWorkerSet with LeaderReady the
    workers when their leader is, and an MPIJob with WaitForWorkersReady the launcher when the
    workers are.

    Pass: minMember 2, and a LeaderWorkerSet of 2 pods with the label.
    Fail: minMember 4, and a LeaderWorkerSet of 2 pods with the label; minMember 2, and a
    StatefulSet of 2 replicas without podManagementPolicy.
    Level: mandatory; advice if these are not all objects of the cluster, or if pods have the
    default scheduler, which need not have the plugin. Without pods, nothing is reported.
    Source: kubernetes-sigs/scheduler-plugins pkg/coscheduling/core/core.go PreFilter;
    apis/scheduling/v1alpha1/types.go.
    """
    path = group.at("spec.minMember")
    least = known(count(group.spec.get("minMember"), 0), path)
    if not pods or least is None:
        return
    require_known(path, group.name, group.namespace)
    numbers = numbers_of(cluster, pods)
    number = known(total(numbers), path)
    schedulers = [one.spec.get("schedulerName") for one in pods]
    sure = cluster.complete and not any(name in _DEFAULT for name in schedulers)
    report = refuse if sure else advise
    if number >= least:
        counts = [one if isinstance(one, int) else 0 for one in numbers]
        yield from _late(report, pods, counts, least)
        return
    have = f"{number} has" if number == 1 else f"{number} have"
    seen = f"the PodGroup waits for {count_of(least, 'pod')}, but {have} its label, so it never "
    yield report(path, f"{seen}starts", write(number, f"write minMember {number}"))


def _late(
    report: Callable[..., Finding], pods: list[PodSet], numbers: list[int], least: int
) -> Iterator[Finding]:
    """Report pods of a gang that are created when others of it are ready."""
    later = [_after(one, number) for one, number in zip(pods, numbers, strict=True)]
    first = sum(numbers) - sum(number for number, _ in later)
    if first >= least:
        return
    owner, way = next((one.owner, how) for one, (n, how) in zip(pods, later, strict=True) if n)
    seen = f"{way} is ready, but the PodGroup waits for {count_of(least, 'pod')}, and at first "
    seen += f"{first} of {sum(numbers)} exist, so none of them ever starts"
    field, value = _AT_ONCE[owner.kind]
    yield report(owner.at(field), seen, write(value))


_AT_ONCE = {
    "StatefulSet": ("spec.podManagementPolicy", "Parallel"),
    "LeaderWorkerSet": ("spec.startupPolicy", "LeaderCreated"),
    "MPIJob": ("spec.launcherCreationPolicy", "AtStartup"),
}
"""The field by which pods are created at the same time, and its value."""


def _after(pods: PodSet, number: int) -> tuple[int, str]:
    """Return how many pods of a template are created later, and when."""
    owner = pods.owner
    policy = owner.spec.get("podManagementPolicy", "OrderedReady")
    if owner.kind == "StatefulSet" and policy == "OrderedReady":
        seen = "is OrderedReady, with which each pod is created only after the one before it"
        return max(number - 1, 0), seen
    late = owner.kind == "LeaderWorkerSet" and owner.spec.get("startupPolicy") == "LeaderReady"
    if late and pods.path.endswith("workerTemplate"):
        return number, "is LeaderReady, with which the workers are created only after their leader"
    late = owner.kind == "MPIJob" and ".Launcher." in pods.path
    if late and owner.spec.get("launcherCreationPolicy") == "WaitForWorkersReady":
        seen = "is WaitForWorkersReady, with which the launcher is created only after each worker"
        return number, seen
    return 0, ""


HPA: GroupKind = ("autoscaling", "HorizontalPodAutoscaler")
SCALED_OBJECT: GroupKind = ("keda.sh", "ScaledObject")
VPA: GroupKind = ("autoscaling.k8s.io", "VerticalPodAutoscaler")
_FIELDS: Mapping[GroupKind, tuple[str, int, str, int | None]] = {
    HPA: ("minReplicas", 1, "maxReplicas", None),
    SCALED_OBJECT: ("minReplicaCount", 0, "maxReplicaCount", 100),
}
"""The fields of the least and the most replicas, each with its default."""


def _scalers(cluster: ClusterObjects) -> Iterator[tuple[Object, tuple[str, int, str, int | None]]]:
    yield from ((entry, fields) for kind, fields in _FIELDS.items() for entry in cluster.of(kind))


@each_of(_scalers)
def autoscaler_range(entry: Object, fields: tuple[str, int, str, int | None]) -> Iterator[Finding]:
    """The least replicas of an autoscaler are at most its most replicas, which are at least 1.

    It applies to a HorizontalPodAutoscaler, whose minReplicas is 0 with a metric of type Object or
    External only, and to KEDA's ScaledObject, whose idleReplicaCount is also below minReplicaCount.

    Pass: minReplicas 1, maxReplicas 3.
    Fail: minReplicas 5, maxReplicas 4; maxReplicas 0; minReplicas 0 and a metric of type Pods;
    minReplicaCount 1, idleReplicaCount 1.
    Level: mandatory. The API server rejects a HorizontalPodAutoscaler, and KEDA creates none.
    Source: kubernetes pkg/apis/autoscaling/validation/validation.go
    validateHorizontalPodAutoscalerSpec and validateMetrics; kedacore/keda
    apis/keda/v1alpha1/scaledobject_types.go CheckReplicaCountBoundsAreValid.
    """
    (lower, fewest, upper, most), path = fields, entry.at(f"spec.{fields[2]}")
    least = known(whole(entry.spec.get(lower, fewest)), path)
    top = known(whole(entry.spec.get(upper, most)), path)
    is_keda = entry.group_kind == SCALED_OBJECT
    idle = known(whole(entry.spec.get("idleReplicaCount")), path) if is_keda else None
    if top is not None and least is not None:
        yield from in_order(entry.at(f"spec.{lower}"), least, path, top)
    if least == 0 and not is_keda and not _scales_from_zero(entry):
        seen = "is 0, but only metrics of type Object or External exist without pods, and there "
        yield Finding(path=entry.at(f"spec.{lower}"), seen=f"{seen}is none", remedy=or_more(1))
    if idle is not None and least is not None and idle >= least:
        seen = f"is {idle}, but must be less than {lower}, which is {least}"
        yield Finding(path=entry.at("spec.idleReplicaCount"), seen=seen, remedy=remove())


def _scales_from_zero(entry: Object) -> bool:
    """Return whether an autoscaler may have a metric that needs no pods."""
    metrics = entry.spec.get("metrics")
    kinds = [mapping(each).get("type") for each in sequence(metrics)]
    hidden = unknown_inside(metrics, kinds)
    return hidden is not None or "Object" in kinds or "External" in kinds


def in_order(
    low: str, least: int, high: str, top: int, written: Callable[[int], int | str] = int
) -> Iterator[Finding]:
    """Check that the range of an autoscaler is not empty, and ends above 0.

    Args:
        low: Path of its least replicas.
        high: Path of its most replicas.
        written: What a number is in these fields: itself, or a string.
    """
    name = low.rpartition("/")[2].rpartition(".")[2]
    if top < 1:
        seen = f"is {top}, but must be at least 1"
        yield Finding(path=high, seen=seen, remedy=or_more(written(max(least, 1))))
    elif least > top:
        seen = f"is {top}, but {name} is {least}, and no number of replicas is in that range"
        fewer = at_most(top).then(f" as {name}")
        remedy = either(or_more(written(least)), write(written(top), fewer, at=low))
        yield Finding(path=high, seen=seen, remedy=remedy)


def autoscaler_replicas(cluster: ClusterObjects) -> Iterator[Finding]:
    """What an autoscaler scales states no replicas: each apply would set them back.

    The API server keeps the autoscaler's number if the field is not in the manifest. What must not
    be scaled keeps its replicas: autoscaler-conflict says to remove its autoscaler.

    Pass: a HorizontalPodAutoscaler, and a Deployment without replicas.
    Fail: a HorizontalPodAutoscaler, and a Deployment with replicas 2 in the same file.
    Level: advisory; an apply that ignores the field is not visible here.
    Source: Kubernetes documentation, Horizontal Pod Autoscaling, Migrating Deployments and
    StatefulSets to horizontal autoscaling.
    """
    reported: set[int] = set()
    for kind in _FIELDS:
        for entry in cluster.of(kind):
            found = target_of(cluster, entry)
            if found is None or found.index in reported or found.spec.get("replicas") is None:
                continue
            reported.add(found.index)
            replicas = found.spec["replicas"]
            yield Finding(
                path=found.at("spec.replicas"),
                seen=f"is {display(replicas)}, which each apply sets again, but the {entry.kind} "
                f"{display(entry.name)} scales it",
                remedy=remove(),
                level=Level.ADVISORY,
                most=Level.ADVISORY,
            )


def stated_target(entry: Object) -> Mapping[str, Any]:
    """Return what an autoscaler names; KEDA takes a Deployment if it states no kind."""
    is_keda = entry.group_kind == SCALED_OBJECT
    usual = {"apiVersion": "apps/v1", "kind": "Deployment"} if is_keda else {}
    return {**usual, **mapping(entry.spec.get("scaleTargetRef"))}


def target_of(cluster: ClusterObjects, entry: Object) -> Object | None:
    """Find what an autoscaler scales, in its own file if files may be alternatives."""
    stated = stated_target(entry)
    name, space = stated.get("name"), entry.namespace
    if not isinstance(name, str) or not isinstance(space, str):
        return None
    found = cluster.named(group_kind(stated)).get((space, name))
    if found is None or cluster.source_of(found) != cluster.source_of(entry):
        return None
    return found


def scaler_of(cluster: ClusterObjects, owner: Object) -> Object | None:
    """Return the autoscaler that names an object; the first one if there are several."""
    return cluster.once(_scalers_by_target)[0].get(owner.index)


def _scalers_by_target(cluster: ClusterObjects) -> Iterator[Mapping[int, Object]]:
    found: dict[int, Object] = {}
    for kind in _FIELDS:
        for entry in cluster.of(kind):
            if (target := target_of(cluster, entry)) is not None:
                found.setdefault(target.index, entry)
    yield found


def replicas_of(scaler: Object) -> tuple[MaybeInt | None, MaybeInt | None]:
    """Return the least and the most replicas of an autoscaler; None for an invalid number."""
    lower, fewest, upper, most = _FIELDS[scaler.group_kind]
    return whole(scaler.spec.get(lower, fewest)), whole(scaler.spec.get(upper, most))


def numbers_of(cluster: ClusterObjects, pods: Sequence[PodSet]) -> list[MaybeInt]:
    """Return how many pods there are of each set; Unknown if an autoscaler may change that."""
    scaled = dict(cluster.once(_scaled))
    return [scaled.get(one.owner.index) or scaled.get(-1) or one.count for one in pods]


def _scaled(cluster: ClusterObjects) -> Iterator[tuple[int, Unknown]]:
    """Return what autoscalers scale, by index, with the reason; -1 if that is not known."""
    for kind in _FIELDS:
        for entry in cluster.of(kind):
            gap = unknown_inside(entry.spec.get("scaleTargetRef")) or unknown_in(entry.namespace)
            found = None if gap else target_of(cluster, entry)
            if gap or found is not None:
                why = f"the {entry.kind} {display(entry.name)} sets the number of these pods"
                yield (-1 if found is None else found.index), gap or Unknown(why)


LIMIT_RANGE: GroupKind = ("", "LimitRange")
_LWS = "LeaderWorkerSet"
_SCALED = frozenset({"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController", _LWS})
_KINDS = frozenset({"cpu", "memory"})


def autoscaler_requests(cluster: ClusterObjects) -> Iterator[Finding]:
    """Each container has a request of the resource whose utilization an autoscaler measures.

    A limit counts as request. A HorizontalPodAutoscaler of a LeaderWorkerSet measures the leaders.
    Nothing is reported if a LimitRange is among the objects of the namespace.

    Pass: target cpu of type Utilization, and containers with requests.cpu; of type AverageValue.
    Fail: target cpu of type Utilization, and a container with a request of GPUs only.
    Level: mandatory; advice if it has other metrics, or if these are not all objects of the
    cluster: a LimitRange there may state requests.
    Source: kubernetes pkg/controller/podautoscaler/replica_calculator.go calculatePodRequests;
    kubernetes-sigs/lws pkg/controllers/leaderworkerset_controller.go (hpaPodSelector).
    """
    limited = {found.namespace for found in cluster.of(LIMIT_RANGE)}
    for entry in cluster.of(HPA):
        measured = [*_measured(entry)]
        target = target_of(cluster, entry) if measured else None
        if target is None or target.kind not in _SCALED or entry.namespace in limited:
            continue
        for path, resource, container in measured:
            for pods in _pods(cluster, target):
                yield from _missing(cluster, entry, path, (resource, container), pods)


def _measured(entry: Object) -> Iterator[tuple[str, str, object]]:
    """Return the resources whose utilization an autoscaler measures, each with its path."""
    if entry.spec.get("targetCPUUtilizationPercentage") is not None:
        yield "spec.targetCPUUtilizationPercentage", "cpu", None
    for index, metric in enumerate(map(mapping, sequence(entry.spec.get("metrics")))):
        field = {"Resource": "resource", "ContainerResource": "containerResource"}
        name = field.get(str(metric.get("type")), "")
        stated = mapping(metric.get(name))
        percent = mapping(stated.get("target")).get("type") == "Utilization"
        percent = percent or "targetAverageUtilization" in stated
        if percent and str(stated.get("name")) in _KINDS:
            container = stated.get("container") if name == "containerResource" else None
            yield f"spec.metrics[{index}].{name}", stated["name"], container


def _pods(cluster: ClusterObjects, target: Object) -> list[PodSet]:
    """Return the pods that are measured, without those of a LeaderWorkerSet's workers."""
    own = [pods for pods in cluster.pods_of.get(target.index, ()) if pods.count != 0]
    return own[:1] if target.kind == _LWS else own


def _missing(
    cluster: ClusterObjects, entry: Object, path: str, what: tuple[str, object], pods: PodSet
) -> Iterator[Finding]:
    """Report a container without a request of the resource whose utilization is measured."""
    resource, named = what
    at = entry.at(path)
    if mapping(pods.spec.get("resources")):
        return
    for container in map(mapping, sequence(pods.spec.get("containers"))):
        if named is not None and container.get("name") != named:
            continue
        if gap := unknown_within(container.get("resources")):
            yield not_checked(at, gap)
        elif not _states(container, resource):
            sure = cluster.complete and len(sequence(entry.spec.get("metrics"))) <= 1
            report = refuse if sure else advise
            seen = f"measures the utilization of {resource}, but container "
            seen += f"{display(container.get('name'))} of {pods.owner.kind} "
            seen += f"{display(pods.owner.name)} has no request of {resource}, so it gets no value"
            yield report(at, seen, f"add requests.{resource} there, or use the type AverageValue")
            return


def _states(container: Mapping[str, Any], resource: str) -> bool:
    amounts = mapping(container.get("resources"))
    return any(mapping(amounts.get(key)).get(resource) for key in ("requests", "limits"))
