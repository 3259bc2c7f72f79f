"""Plays the engines on KWOK's nodes: a pod with a probe is ready when its engine answers requests.

KWOK reports every pod as ready at once, with or without probes.
"""

import re
from collections.abc import Mapping
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
    ranks = {_argument(pod, "--node-rank"): pod for pod in pods}
    if ranks.keys() != {str(rank) for rank in range(number)}:
        return
    if not all(_finds(scene, pod, ranks["0"]) for pod in pods):
        return
    for pod in pods:
        make_ready(scene, pod)


def make_ready(scene: Scene, pod: dict[str, Any]) -> None:
    """Report that the containers of a pod are ready."""
    if is_ready(pod):
        return
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


def _finds(scene: Scene, pod: dict[str, Any], first: dict[str, Any]) -> bool:
    """Return whether a pod looks for the first one at a name that leads to it alone."""
    asked = _argument(pod, "--dist-init-addr").partition(":")[0]
    return addresses(scene).get(asked) == [first["metadata"]["name"]]


def addresses(scene: Scene) -> dict[str, list[str]]:
    """Return the names that a DNS server has, each with the pods to which it leads.

    These are the Services with ready addresses, and the names of pods among these addresses.
    """
    found: dict[str, list[str]] = {}
    for one in scene.api.list("discovery.k8s.io/v1", "EndpointSlice", NAMESPACE):
        service = one["metadata"]["labels"][_SERVICE]
        for point in one.get("endpoints") or ():
            if point["conditions"].get("ready"):
                pod = point["targetRef"]["name"]
                host = point.get("hostname")
                names = [service, *([f"{host}.{service}"] if host else [])]
                for name in (*names, *(f"{name}.{NAMESPACE}" for name in names)):
                    found.setdefault(name, []).append(pod)
    return found


def _argument(pod: dict[str, Any], option: str) -> str:
    """Return an argument of the engine, as the kubelet passes it: a variable that is not set stays.

    Source: kubernetes third_party/forked/golang/expansion.
    """
    (container,) = pod["spec"]["containers"]
    variables = {each["name"]: _value(pod, each) for each in container.get("env") or ()}
    stated = next(word for word in container["args"] if word.startswith(f"{option}="))
    text = stated.partition("=")[2]
    return re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), text)


def _value(pod: dict[str, Any], variable: Mapping[str, Any]) -> str:
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    path = variable["valueFrom"].get("fieldRef", {}).get("fieldPath", "")
    label = re.fullmatch(r"metadata\.labels\['(.+)'\]", path)
    return str(pod["metadata"]["labels"][label[1]]) if label else ""
