"""Groups in different failure domains, and evictions: what the pods of engines have by default."""

from typing import Any

from conformance.support.cluster import NAMESPACE, Scene, group_selector, rack
from conformance.volcano.gangs import cordon, filled, manifests, of, serving
from kthena_components.cluster.client import ClusterError
from sandbox.nodes import LABEL

_TOO_MANY = 429


def in_other_racks(scene: Scene, backend: str) -> None:
    """Three groups are in three racks, though each rack has room for two."""
    args = serving("chat", backend, workers=0, replicas=3) | {"spread_over": LABEL}
    scene.make(manifests(args))
    scene.until("all groups run", lambda: scene.running(of("chat")) == 3)
    racks = sorted(map(rack, scene.bound(of("chat")).values()))
    scene.check("each is in a rack of its own", holds=len(set(racks)) == 3, seen=racks)


def in_one_rack(scene: Scene, backend: str) -> None:
    """The distance is a preference: with room in one rack only, both groups run there."""
    others = [f"rack-{number}-node-{node}" for number in (1, 2) for node in (0, 1)]
    with filled(scene, *others):
        args = serving("chat", backend, workers=0, replicas=2) | {"spread_over": LABEL}
        scene.make(manifests(args))
        scene.until("both groups run", lambda: scene.running(of("chat")) == 2)


def evicted(scene: Scene, backend: str) -> None:
    """A drain takes one pod at a time: the next one only when the first runs again."""
    scene.make(manifests(serving("chat", backend, replicas=2)))
    scene.until("both groups run", lambda: scene.running(of("chat")) == 4)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "chat", "namespace": NAMESPACE},
    }

    def allowed() -> int:
        return int((scene.read(budget).get("status") or {}).get("disruptionsAllowed", -1))

    scene.until("one eviction is allowed", lambda: allowed() == 1)
    first, second = (scene.pods(group_selector(f"chat-{group}"))[0] for group in (0, 1))
    every = [f"rack-{number}-node-{node}" for number in range(3) for node in range(2)]
    try:
        cordon(scene, every, closed=True)  # so that the first has no place to run again
        scene.check("the first is taken", holds=evict(scene, first) < _TOO_MANY)
        code = evict(scene, second)
        scene.check("the second is not", holds=code == _TOO_MANY, seen=code)
    finally:
        cordon(scene, every, closed=False)
    scene.until("all run again", lambda: scene.running(of("chat")) == 4)
    scene.until("one more is allowed", lambda: allowed() == 1)


def evict(scene: Scene, pod: dict[str, Any]) -> int:
    """Ask for the eviction of a pod, as a drain does, and return the HTTP status."""
    metadata = pod["metadata"]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
    path = f"{scene.api.path({'apiVersion': 'v1', 'kind': 'Pod', 'metadata': metadata})}/eviction"
    try:
        scene.api.ask("POST", path, body)
    except ClusterError as error:
        return error.status
    return 201
