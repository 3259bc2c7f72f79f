"""The rule autoscaler-requests: the pods state what an autoscaler's percentages refer to."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, advise, not_checked, refuse
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.read import mapping, sequence, unknown_within
from kthena_components.systems.kubernetes.rules.autoscalers import HPA, target_of

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
        target = target_of(cluster, entry, HPA) if measured else None
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
            seen += f"{display(pods.owner.name)} has no request of {resource}, so it never gets it"
            yield report(at, seen, f"add requests.{resource} there, or use the type AverageValue")
            return


def _states(container: Mapping[str, Any], resource: str) -> bool:
    amounts = mapping(container.get("resources"))
    return any(mapping(amounts.get(key)).get(resource) for key in ("requests", "limits"))
