"""Servings that use whole nodes, on a cluster of three racks, and helpers to observe them."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from conformance.support.cluster import NAMESPACE, PODGROUP, Scene, rack
from kthena_components.cluster.client import ClusterError
from kthena_components.compiler.compile import compile_serving
from kthena_components.core import naming
from sandbox.cluster import Size
from sandbox.nodes import node

SIZE = Size(racks=3, nodes=2, gpus=8)
HARD = {"mode": "hard", "highest_tier_allowed": 1}
SOFT = {"mode": "soft", "highest_tier_allowed": 1}
Args = dict[str, Any]


def serving(
    name: str,
    backend: str,
    *,
    workers: int = 1,
    engines: int = 1,
    replicas: int = 1,
    queue: str | None = None,
    group: Mapping[str, Any] | None = None,
    role: Mapping[str, Any] | None = None,
) -> Args:
    """Return the arguments of a serving that uses whole nodes."""
    engine = {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.33.0",
        "model": "example/private-model",
        "parallelism": {"tensor": 8, "pipeline": workers + 1},
    }
    pods = {"replicas": engines, "worker_replicas": workers, "resources": {"gpus_per_pod": 8}}
    topology = {"group_policy": group, "role_policy": role}
    args: Args = {
        "name": name, "namespace": NAMESPACE, "backend": backend, "replicas": replicas,
        "roles": [{"name": "serve", **pods, "engine": engine}],
        "network_topology": {key: dict(value) for key, value in topology.items() if value},
    }  # fmt: skip
    return args | ({"queue": queue} if queue else {})


def manifests(args: Args) -> list[Mapping[str, Any]]:
    """Return the manifests of a serving from its backend."""
    return [manifest.body for manifest in compile_serving(args).manifests]


def of(name: str) -> str:
    """Return the label selector for the pods of a serving."""
    return f"{naming.NAME}={name}"


def own(scene: Scene, name: str) -> list[str]:
    """Return the names of a serving's pods."""
    return [pod["metadata"]["name"] for pod in scene.pods(of(name))]


def racks_of(scene: Scene, name: str) -> set[str]:
    """Return the racks of a serving's pods."""
    return {rack(on) for on in scene.bound(of(name)).values()}


@contextmanager
def filled(scene: Scene, *nodes: str) -> Iterator[None]:
    """Occupy all GPUs of some nodes temporarily."""
    pods = [_filler(name) for name in nodes]
    scene.make(pods)
    try:
        yield
    finally:
        for pod in pods:
            if scene.read(pod):
                scene.api.delete(pod)


def cordon(scene: Scene, nodes: Iterable[str], *, closed: bool) -> None:
    """Cordon or uncordon nodes."""
    for name in nodes:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        scene.api.patch(body, {"spec": {"unschedulable": closed}})


def opened(scene: Scene, queue: Mapping[str, Any]) -> bool:
    """Return whether Volcano has opened a Queue, and its webhook, which has a cache, knows it."""
    if (scene.read(queue).get("status") or {}).get("state") != "Open":
        return False
    spec = {"minMember": 1, "queue": queue["metadata"]["name"]}
    asking = {"apiVersion": PODGROUP, "kind": "PodGroup", "spec": spec,
              "metadata": {"name": "asking", "namespace": NAMESPACE}}  # fmt: skip
    try:
        scene.api.create(asking, dry_run=True)
    except ClusterError as error:
        return not any(late in str(error) for late in ("not found", "`Open`"))
    return True


def described(name: str) -> dict[str, Any]:
    """Return one of the sandbox's nodes."""
    return node(name, rack(name), SIZE.gpus)


def _filler(name: str) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": str(SIZE.gpus)}
    container = {"name": "fill", "image": "fill", "resources": {"limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"fill-{name}", "namespace": NAMESPACE},
        "spec": {"nodeName": name, "containers": [container]},
    }
