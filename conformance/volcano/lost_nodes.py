"""Lost nodes of a running group: deleted, or not responding."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from conformance.support.cluster import NAMESPACE, Scene, rack
from conformance.volcano.gangs import (
    HARD,
    SIZE,
    described,
    filled,
    manifests,
    of,
    own,
    racks_of,
    serving,
)
from kthena_components.cluster.fetch_servings_and_inventory import look_at_servings
from kthena_components.cluster.status import waits
from sandbox.nodes import node

UNREACHABLE = {"key": "node.kubernetes.io/unreachable", "operator": "Exists",
               "effect": "NoExecute", "tolerationSeconds": 5}  # fmt: skip
"""Without this toleration, Kubernetes adds the same with 300 seconds."""
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown",
                  "effect": "NoExecute"}  # fmt: skip


def lost_node(scene: Scene, backend: str) -> None:
    """A Node is deleted, with a hard topology: the whole group moves to another rack.

    Kthena recreates the role, so all its pods can move. A StatefulSet recreates only one pod, and
    Volcano keeps the rack of the others: the pod waits there until the other pod is deleted.
    """
    first = _running(scene, backend)
    lost = min(first.values())
    with _deleted(scene, lost):
        gone = {name for name, on in first.items() if on == lost}
        # Kubernetes removes the pods of a Node that is gone after 40 s, and looks every 20 s.
        scene.until(
            "the pod of the lost node goes", lambda: lost not in scene.bound(of("chat")).values()
        )
        if backend == "native":
            scene.until("its StatefulSet recreates it", lambda: gone <= set(own(scene, "chat")))
            scene.stays(
                "Volcano keeps the rack, so it waits",
                lambda: not gone & set(scene.bound(of("chat"))),
            )
            for name in set(first) - gone:
                metadata = {"name": name, "namespace": NAMESPACE}
                scene.api.delete({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
        scene.until("two pods run again", lambda: scene.running(of("chat")) == 2)
        racks = racks_of(scene, "chat")
        whole = len(racks) == 1 and racks != {rack(lost)}
        scene.check("it is complete in another rack", holds=whole, seen=(lost, racks))


def spare_node(scene: Scene, backend: str) -> None:
    """A Node is deleted, and its rack has room: the group is complete again in that rack."""
    with _spare(scene):
        lost = min(_running(scene, backend).values())
        with _deleted(scene, lost):
            _whole_again(scene, lost)


def hung_node(scene: Scene, backend: str) -> None:
    """A Node does not respond: its pods stay Terminating until it has the out-of-service taint.

    Only a kubelet ends a pod, so neither a StatefulSet nor Kthena creates a pod of the same name.
    """
    with _spare(scene):
        first = _running(scene, backend, overlay={"spec": {"tolerations": [UNREACHABLE]}})
        lost = min(first.values())
        body = described(lost)
        _hang(scene, lost)
        try:
            scene.until("its pods are being deleted", lambda: _ending(scene, lost))
            scene.stays("they stay", lambda: _ending(scene, lost))
            said = [why for _, why in waits(look_at_servings(scene.api, NAMESPACE))]
            way = f"`kubectl taint node {lost} {OUT_OF_SERVICE['key']}="
            scene.check("status shows the fix", holds=any(way in why for why in said), seen=said)
            taints = [*scene.read(body)["spec"]["taints"], OUT_OF_SERVICE]
            scene.api.patch(body, {"spec": {"taints": taints}})
            _whole_again(scene, lost)
        finally:
            scene.api.delete(_lease(lost))
            scene.api.delete(body)
            scene.api.create(body)


def _running(scene: Scene, backend: str, **role: Any) -> dict[str, str]:
    """Start a group inside one rack, and return the nodes of its pods."""
    args = serving("chat", backend, group=HARD)
    args["roles"][0] |= role
    scene.make(manifests(args))
    scene.until("it runs", lambda: scene.running(of("chat")) == 2)
    return scene.bound(of("chat"))


@contextmanager
def _spare(scene: Scene) -> Iterator[None]:
    """Add a third node to one rack, and occupy the other racks."""
    scene.make([node("rack-0-node-2", "rack-0", SIZE.gpus)])
    with filled(scene, "rack-1-node-0", "rack-2-node-0"):
        yield


@contextmanager
def _deleted(scene: Scene, name: str) -> Iterator[None]:
    body = described(name)
    scene.api.delete(body)
    try:
        yield
    finally:
        scene.api.create(body)


def _whole_again(scene: Scene, lost: str) -> None:
    scene.until(
        "two pods run on other nodes",
        lambda: scene.running(of("chat")) == 2 and lost not in scene.bound(of("chat")).values(),
    )
    racks = racks_of(scene, "chat")
    scene.check("in the same rack", holds=racks == {rack(lost)}, seen=(lost, racks))


def _ending(scene: Scene, name: str) -> list[str]:
    """Return the names of the Terminating pods on a node."""
    return [
        pod["metadata"]["name"]
        for pod in scene.api.list("v1", "Pod", NAMESPACE, of("chat"))
        if pod["spec"].get("nodeName") == name and "deletionTimestamp" in pod["metadata"]
    ]


def _hang(scene: Scene, name: str) -> None:
    """Take the node away from KWOK, and set the status of a node that has not responded for 50 s.

    KWOK ignores a node whose Lease has another holder. The sandbox itself would wait for an hour,
    so that a busy machine loses no nodes.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "nobody", "leaseDurationSeconds": 3600, "renewTime": now}
    scene.api.patch(_lease(name), {"spec": spec})
    silent = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
    body = described(name)
    others = [c for c in scene.read(body)["status"]["conditions"] if c["type"] != "Ready"]
    scene.api.patch(body, {"status": {"conditions": [*others, silent]}}, "status")


def _lease(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "kube-node-lease"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
