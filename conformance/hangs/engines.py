"""Plays the engines on KWOK's nodes: a pod with a probe is ready when its engine answers requests.

KWOK reports every pod as ready at once, with or without probes.
"""

from typing import Any

import yaml

from conformance.support.cluster import NAMESPACE, Scene
from kthena_components.cluster.client import Cluster
from sandbox.cluster import Sandbox

APP = "app"
ENGINE = "chat"
"""The label of all pods of the engine."""
_PROBED = ".spec.containers.[] | (.readinessProbe // .startupProbe)"
_SERVICE = "kubernetes.io/service-name"
_DECIDING = ("Ready", "ContainersReady")


def leave_probes_to_us(sandbox: Sandbox) -> None:
    """Restart KWOK, so that a pod with a readinessProbe or a startupProbe runs without being ready.

    Jobs of Volcano keep running, too: a stage of KWOK ends the pods of every kind named Job.
    """
    stages = {stage["metadata"]["name"]: stage for stage in _stages(sandbox)}
    del stages["pod-complete"]
    ready = stages["pod-ready"]
    chosen, status = ready["spec"]["selector"], ready["spec"]["next"]["statusTemplate"]
    for kind in _DECIDING:
        at = f"\n  type: {kind}\n"
        status = status.replace(f'status: "True"{at}', f'status: "False"{at}')
    started = {
        "selector": _also(chosen, "Exists"),
        "next": {"statusTemplate": status.replace("ready: true", "ready: false", 1)},
    }
    stages["pod-started"] = {
        **ready, "metadata": {"name": "pod-started"}, "spec": {**ready["spec"], **started}
    }  # fmt: skip
    ready["spec"]["selector"] = _also(chosen, "DoesNotExist")
    sandbox.layout.stages.write_text(yaml.safe_dump_all(stages.values()))
    sandbox.processes.stop("kwok")
    _free_nodes(sandbox.api)
    sandbox.start_controller("kwok")


def _stages(sandbox: Sandbox) -> list[Any]:
    return [*yaml.safe_load_all(sandbox.layout.stages.read_text())]


def _free_nodes(api: Cluster) -> None:
    """Delete the Leases of the nodes. KWOK waits for those of its process before it."""
    for lease in api.list("coordination.k8s.io/v1", "Lease", "kube-node-lease"):
        api.delete(lease)


def _also(selector: dict[str, Any], operator: str) -> dict[str, Any]:
    stated = selector["matchExpressions"]
    return {"matchExpressions": [*stated, {"key": _PROBED, "operator": operator}]}


def answer(scene: Scene, number: int) -> None:
    """Let the pods of the engine be ready, if all of them run and find the first one."""
    pods = [pod for pod in scene.pods(f"{APP}={ENGINE}") if pod["status"].get("phase") == "Running"]
    first = min(pods, key=lambda pod: str(pod["metadata"]["name"]), default=None)
    if len(pods) < number or first is None or not _is_found(scene, first):
        return
    for pod in pods:
        if not is_ready(pod):
            status = pod["status"]
            conditions = [
                {**stated, "status": "True"} if stated["type"] in _DECIDING else stated
                for stated in status["conditions"]
            ]
            started = [{**stated, "ready": True} for stated in status["containerStatuses"]]
            change = {"status": {"conditions": conditions, "containerStatuses": started}}
            scene.api.patch(pod, change, "status")


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a pod is ready."""
    conditions = pod["status"].get("conditions") or []
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def ready_pods(scene: Scene) -> int:
    """Return the number of the engine's pods that are ready."""
    return sum(map(is_ready, scene.pods(f"{APP}={ENGINE}")))


def _is_found(scene: Scene, pod: dict[str, Any]) -> bool:
    """Return whether a DNS server has the name of a pod: that of a ready address of its Service."""
    service, name = pod["spec"].get("subdomain"), pod["spec"].get("hostname")
    if not service:
        return True
    slices = scene.api.list(
        "discovery.k8s.io/v1", "EndpointSlice", NAMESPACE, f"{_SERVICE}={service}"
    )
    return any(
        point.get("hostname") == name and point["conditions"].get("ready")
        for one in slices
        for point in one.get("endpoints") or ()
    )
