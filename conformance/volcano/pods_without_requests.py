"""Pods without requests in a hard topology: the topology does not apply to them."""

from collections.abc import Mapping, Sequence
from typing import Any

from conformance.support.cluster import NAMESPACE, Scene
from conformance.volcano.gangs import HARD, manifests, of, racks_of
from conformance.volcano.misleading_gangs import rules_of

_RULE = "gang-requests"
_REQUESTS = {"requests": {"cpu": "1"}}


def placed_anywhere(scene: Scene, backend: str) -> None:
    """Two roles in different racks wait with requests under a hard cap, and run without any."""
    bodies = manifests(_serving(backend))
    scene.check("our rule accepts requests", holds=_RULE not in rules_of(bodies))
    scene.make(bodies)
    scene.waits("with requests", "chat-0", pods=2)
    scene.clear()
    bare = [_without_requests(body) for body in bodies]
    scene.check("our rule reports their absence", holds=_RULE in rules_of(bare))
    scene.make(bare)
    scene.until("without requests both get a node", lambda: len(scene.bound(of("chat"))) == 2)
    topology = scene.pod_group("chat-0")["spec"].get("networkTopology") or {}
    scene.check("their PodGroup is hard", holds=topology.get("mode") == "hard", seen=topology)
    racks = racks_of(scene, "chat")
    scene.check("they are in two racks", holds=len(racks) == 2, seen=racks)


def _serving(backend: str) -> dict[str, Any]:
    """Return a serving whose roles fit one node each, in different racks.

    They are different tasks: if one pod of a task fits nowhere, Volcano does not try the others.
    """
    roles = [
        {"name": name, "entry_template": _template(f"rack-{number}-node-0")}
        for number, name in enumerate(("prefill", "decode"))
    ]
    topology = {"group_policy": dict(HARD)}
    return {"name": "chat", "namespace": NAMESPACE, "backend": backend, "roles": roles,
            "network_topology": topology}  # fmt: skip


def _template(node: str) -> dict[str, Any]:
    container = {"name": "serve", "image": "example/serve:1", "resources": _REQUESTS}
    return {"spec": {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}}


def _without_requests(value: Any) -> Any:
    """Return a manifest without the requests of its pods, and without their sum."""
    if isinstance(value, Mapping):
        dropped = {"resources", "minResources"}
        return {key: _without_requests(value[key]) for key in value if key not in dropped}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_without_requests(item) for item in value]
    return value
