"""Read KubeRay's RayCluster, RayService and RayJob: engines that Ray spreads over pods.

The engine is one that the head's command starts, or the models of a RayService's Serve config.
Source: ray-project/kuberay ray-operator/apis/ray/v1.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.pod import DeviceFacts, PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import Finding, join_path, judged, not_checked
from kthena_components.core.rules.devices import gpu_requests_equal_limits
from kthena_components.core.values.embedded import read_yaml_text
from kthena_components.core.values.read import as_map, group_kind, name_of
from kthena_components.core.values.unknown import MaybeInt, Unknown, is_unresolved
from kthena_components.systems.ray.rules import is_mixed, judge_cluster, pods_of
from kthena_components.systems.ray.rules_serve import Served, ray_serve_gpus, read_served
from kthena_components.systems.ray.view import Cluster, Group, read_cluster

GROUP = "ray.io"
_SPECS = {
    "RayCluster": "spec",
    "RayService": "spec.rayClusterConfig",
    "RayJob": "spec.rayClusterSpec",
}
"""Kind, and where its cluster stands."""
KINDS = frozenset((GROUP, kind) for kind in _SPECS)
_SERVE = "serveConfigV2"
_UNEQUAL = Unknown("its groups of workers have different GPUs")
_PROGRAM = Unknown("a program of one's own starts the models, and not ray.serve.llm")
_GANG_LABELS = frozenset(
    {"ray.io/gang-scheduling-enabled", "ray.io/scheduler-name", "volcano.sh/queue-name"}
)
"""Labels that ask KubeRay for a gang."""


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a RayCluster, RayService or RayJob; None for anything else."""
    if group_kind(body) not in KINDS:
        return None
    cluster, name = _cluster(body, path), name_of(body)
    served = _served(body)
    at = join_path(path, f"spec.{_SERVE}")
    if cluster is None:
        engines: tuple[EngineFacts, ...] = ()
    elif isinstance(served, list) and served:
        engines = tuple(_serve_engines(cluster, served, at))
    else:
        engines = tuple(_head_engine(cluster, name))
    return ServingFacts(
        path=join_path(path, "spec"),
        name=name,
        engines=engines,
        gang_expected=_has_gang(body, cluster, served),
    )


def judge(body: Mapping[str, Any], path: str = "") -> list[Finding]:
    """Judge a RayCluster, RayService or RayJob by the rules of its own, all findings at once."""
    cluster = _cluster(body, "")
    if cluster is None:
        return []
    found, served = judge_cluster(cluster), _served(body)
    if isinstance(served, Unknown):
        found.append(not_checked(f"spec.{_SERVE}", served, "ray-serve-gpus"))
    elif served:
        found += judged(ray_serve_gpus, cluster, served, f"spec.{_SERVE}")
    elif body.get("kind") == "RayService" and cluster.with_gpus:
        found.append(not_checked(f"spec.{_SERVE}", _PROGRAM, "ray-serve-gpus"))
    found += judged(gpu_requests_equal_limits, _apart(cluster, read(body)))
    return [finding.under(path) for finding in found]


def _cluster(body: Mapping[str, Any], path: str) -> Cluster | None:
    spec, at = body.get("spec"), _SPECS.get(str(body.get("kind")), "spec")
    inner = at.removeprefix("spec").removeprefix(".")
    if inner and not is_unresolved(spec):
        spec = as_map(spec).get(inner)
    return read_cluster(spec, join_path(path, at))


def _apart(cluster: Cluster, facts: ServingFacts | None) -> ServingFacts:
    """Give the groups whose pods no engine shows as they are written, each as if it were one."""
    pods = [pod for e in facts.engines for pod in (e.entry, e.worker) if pod] if facts else []
    shown = {(device.path, device.resource) for pod in pods for device in pod.devices}
    groups = (
        EngineFacts(
            path=group.path,
            name=group.name,
            pods=1,
            replicas=1,
            entry=fill_requests(group.pod),
            worker=None,
        )
        for group in cluster.groups
        if not {(device.path, device.resource) for device in group.pod.devices} <= shown
    )
    return ServingFacts(path="", name="", engines=tuple(groups))


def _served(body: Mapping[str, Any]) -> list[Served] | Unknown:
    config = read_yaml_text(as_map(body.get("spec")).get(_SERVE), _SERVE)
    return config if isinstance(config, Unknown) else read_served(config)


def _head_engine(cluster: Cluster, name: str) -> Iterator[EngineFacts]:
    """Give the engine that the head starts. Most clusters start none: they are for other work."""
    head = cluster.head.pod
    ranks: MaybeInt = 1 if head.command is None else head.command.world
    starts = head.command is not None and head.command.engine is not None
    if not starts and head.gap is None:
        return
    workers = cluster.with_gpus
    worker = workers[0].pod if workers else None
    if worker is not None and is_mixed(cluster):
        worker = _with_gpus(worker, _UNEQUAL)
    yield EngineFacts(
        path=cluster.path,
        name=name,
        pods=pods_of(cluster, ranks),
        replicas=1,
        entry=fill_requests(head),
        worker=None if worker is None else fill_requests(worker),
    )


def _serve_engines(cluster: Cluster, served: list[Served], path: str) -> Iterator[EngineFacts]:
    """Give each model as an engine on what Ray reserves for one of its replicas."""
    hosts = sorted(cluster.with_gpus, key=_size, reverse=True)
    if not hosts:
        return
    for one in served:
        pods, gpus = _share(one.ranks, _size(hosts[0]))
        pod = replace(
            _with_gpus(hosts[0].pod, gpus),
            command=one.command,
            command_path=path,
            container=hosts[0].pod.own.name if hosts[0].pod.own else "?",
        )
        yield EngineFacts(
            path=path, name=one.name, pods=pods, replicas=one.low, entry=pod, worker=None
        )


def _size(group: Group) -> int:
    return group.pod.gpus if isinstance(group.pod.gpus, int) else 0


def _share(ranks: MaybeInt, size: int) -> tuple[MaybeInt, MaybeInt]:
    """Say over how many pods a replica lies, and how many GPUs of each it reserves."""
    if isinstance(ranks, Unknown) or ranks <= size or size < 1:
        return 1, ranks
    pods = -(-ranks // size)
    return pods, ranks // pods if ranks % pods == 0 else Unknown("Ray deals out the ranks itself")


def _with_gpus(pod: PodFacts, gpus: MaybeInt) -> PodFacts:
    name = pod.container or (pod.own.name if pod.own else "?")
    device = DeviceFacts(
        path=pod.gpus_path, container=name, resource="GPUs", limit=gpus, request=gpus
    )
    return replace(pod, devices=(device,))


def _has_gang(body: Mapping[str, Any], cluster: Cluster | None, served: object) -> bool:
    """Tell whether the pods are placed together, or need not be: replicas of Serve come one by one.

    A cluster that starts no engine by itself is for whatever its users send it.
    """
    labels = as_map(as_map(body.get("metadata")).get("labels"))
    if cluster is None or served or _GANG_LABELS & {str(key) for key in labels}:
        return True
    command = cluster.head.pod.command
    scheduler = as_map(as_map(as_map(cluster.head.fields.get("template")).get("spec"))).get(
        "schedulerName"
    )
    starts = command is not None and command.engine is not None
    return not starts or scheduler == "volcano" or is_unresolved(scheduler)
