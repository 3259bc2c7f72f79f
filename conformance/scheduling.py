"""Gangs and topology: what the real scheduler does with what both backends write."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from conformance import placing, traps
from conformance.__main__ import Context
from conformance.scene import NAMESPACE, Scene, group_selector, rack
from kthena_components.backends.compiler import BACKENDS, compile_serving
from kthena_components.backends.queues import emit_queue
from kthena_components.core import naming
from kthena_components.core.spec import QueueSpec
from kthena_components.core.spec_parse import parse_spec
from sandbox.cluster import Size
from sandbox.nodes import node

SIZE = Size(racks=3, nodes=2, gpus=8)
HARD = {"mode": "hard", "highest_tier_allowed": 1}
SOFT = {"mode": "soft", "highest_tier_allowed": 1}
Args = dict[str, Any]


def run(context: Context) -> None:
    """Try every case on each backend, then hand-written PodGroups, and single pods."""
    sandbox = context.sandbox(SIZE)
    try:
        scene = Scene(sandbox.api, context.part)
        cases = CASES if context.scale >= 1 else CASES[: context.many(len(CASES))]
        for backend in BACKENDS:
            for title, case in cases:
                with scene.of(f"{title}, {backend}"):
                    case(scene, backend)
                context.part.count("cases of the package's own servings")
        traps.hold(scene, SIZE)
        placing.hold(scene, context.seed, context.many(placing.NUMBER))
    finally:
        sandbox.processes.stop_all()


def one_of_two(scene: Scene, backend: str) -> None:
    """Of two groups, one fits: it runs, and the other waits whole until there is room."""
    with filled(scene, "rack-2-node-0", "rack-2-node-1"):
        args = serving("chat", backend, workers=2, replicas=2)
        scene.make(manifests(args))
        scene.until("the pods of both are there", lambda: len(own(scene, "chat")) == 2 * 3)
        scene.until("three pods run", lambda: scene.running(of("chat")) == 3)
        counts = [len(scene.bound(group_selector(f"chat-{group}"))) for group in range(2)]
        scene.check("one group runs whole", holds=sorted(counts) == [0, 3], seen=counts)
        waiting = f"chat-{counts.index(min(counts))}"
        scene.waits("the other", waiting, pods=3)
        said = scene.unschedulable(waiting)
        scene.check("its PodGroup says why", holds="gang" in said, seen=said)
    scene.until("both run when there is room", lambda: scene.running(of("chat")) == 2 * 3)


def full_racks(scene: Scene, backend: str) -> None:
    """Three nodes are free, one in each rack: hard waits, soft runs across racks."""
    held = [f"rack-{number}-node-0" for number in range(3)]
    with filled(scene, *held):
        scene.make(manifests(serving("near", backend, group=HARD)))
        scene.waits("hard", "near-0", pods=2)
        scene.make(manifests(serving("far", backend, group=SOFT)))
        scene.until("soft runs", lambda: scene.running(of("far")) == 2)
        racks = racks_of(scene, "far")
        scene.check("soft runs across racks", holds=len(racks) == 2, seen=racks)
        scene.check("hard still waits", holds=not scene.bound(of("near")))
    scene.until("hard runs when a rack is free", lambda: scene.running(of("near")) == 2)
    racks = racks_of(scene, "near")
    scene.check("hard runs in one rack", holds=len(racks) == 1, seen=racks)


def cordoned(scene: Scene, backend: str) -> None:
    """A cordoned node takes no pod: the group goes elsewhere, or waits."""
    closed = [f"rack-{number}-node-0" for number in range(3)]
    try:
        cordon(scene, closed, closed=True)
        scene.make(manifests(serving("chat", backend, group=HARD)))
        scene.waits("one node of each rack is cordoned", "chat-0", pods=2)
        cordon(scene, closed[1:2], closed=False)
        scene.until("it runs once one is not", lambda: scene.running(of("chat")) == 2)
        racks = racks_of(scene, "chat")
        scene.check("it runs in that rack", holds=racks == {"rack-1"}, seen=racks)
    finally:
        cordon(scene, closed, closed=False)


def lost_node(scene: Scene, backend: str) -> None:
    """A Node is deleted under a hard topology: the group comes back whole in another rack.

    Kthena makes the role anew, so all its pods may go. A StatefulSet makes one pod anew, and
    Volcano keeps the rack of the others: it waits there until somebody deletes the other pod.
    """
    scene.make(manifests(serving("chat", backend, group=HARD)))
    scene.until("it runs", lambda: scene.running(of("chat")) == 2)
    first = scene.bound(of("chat"))
    lost = min(first.values())
    body = _node(lost)
    scene.api.delete(body)
    try:
        gone = {name for name, on in first.items() if on == lost}
        # Kubernetes removes the pods of a Node that is gone after 40 s, and looks every 20 s.
        scene.until(
            "the pod of the lost node goes", lambda: lost not in scene.bound(of("chat")).values()
        )
        if backend == "native":
            scene.until("its StatefulSet makes it anew", lambda: gone <= set(own(scene, "chat")))
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
        scene.check("it is whole in another rack", holds=whole, seen=(lost, racks))
    finally:
        scene.api.create(body)


def spare_node(scene: Scene, backend: str) -> None:
    """A Node is deleted whose rack has room left: the group is whole again in that rack."""
    scene.make([node("rack-0-node-2", "rack-0", SIZE.gpus)])
    with filled(scene, "rack-1-node-0", "rack-2-node-0"):
        scene.make(manifests(serving("chat", backend, group=HARD)))
        scene.until("it runs", lambda: scene.running(of("chat")) == 2)
        lost = min(scene.bound(of("chat")).values())
        body = _node(lost)
        scene.api.delete(body)
        try:
            scene.until(
                "two pods run on other nodes",
                lambda: scene.running(of("chat")) == 2
                and lost not in scene.bound(of("chat")).values(),
            )  # fmt: skip
            racks = racks_of(scene, "chat")
            scene.check("in the same rack", holds=racks == {rack(lost)}, seen=(lost, racks))
        finally:
            scene.api.create(body)


def queue_limit(scene: Scene, backend: str) -> None:
    """A Queue at its limit: the second serving waits, and runs once the limit is raised."""
    spec = {"name": "small", "capability": {"nvidia.com/gpu": 16}}
    queue = emit_queue(parse_spec(QueueSpec, spec, "Queue")).body
    scene.make([queue])
    scene.until("the Queue is open", lambda: opened(scene, queue))
    scene.make(manifests(serving("first", backend, queue="small")))
    scene.until("the first runs", lambda: scene.running(of("first")) == 2)
    scene.make(manifests(serving("second", backend, queue="small")))
    scene.waits("the second", "second-0", pods=2)
    phase = scene.pod_group("second-0")["status"]["phase"]
    scene.check("it is not even taken in", holds=phase == "Pending", seen=phase)
    scene.api.patch(queue, {"spec": {"capability": {"nvidia.com/gpu": "32"}}})
    scene.until("the second runs, too", lambda: scene.running(of("second")) == 2)


def role_topology(scene: Scene, backend: str) -> None:
    """Each engine in a rack of its own, and the group over several."""
    args = serving("chat", backend, engines=2, role=HARD)
    with filled(scene, "rack-0-node-0"):
        scene.make(manifests(args))
        scene.until("four pods run", lambda: scene.running(of("chat")) == 4)
        engines: dict[str, set[str]] = {}
        for pod in scene.pods(of("chat")):
            engine = pod["metadata"]["labels"][naming.ROLE_ID]
            engines.setdefault(engine, set()).add(rack(pod["spec"]["nodeName"]))
        seen = list(engines.values())
        scene.check("each engine is in one rack", holds=[len(r) for r in seen] == [1, 1], seen=seen)
        scene.check("the group is in two", holds=len(set.union(*seen)) == 2, seen=seen)


def gang_minimum(scene: Scene, backend: str) -> None:
    """Room for two engines of three: all three are needed by default, two when that is said."""
    with filled(scene, "rack-2-node-0", "rack-2-node-1"):
        scene.make(manifests(serving("all", backend, engines=3)))
        scene.waits("three are needed", "all-0", pods=6)
    scene.clear()
    with filled(scene, "rack-2-node-0", "rack-2-node-1"):
        args = serving("some", backend, engines=3) | {
            "gang_policy": {"min_role_replicas": {"serve": 2}}
        }
        scene.make(manifests(args))
        scene.until("two engines run", lambda: scene.running(of("some")) == 4)
        scene.stays("and no more", lambda: len(scene.bound(of("some"))) == 4)
        counts = sorted(
            len(scene.bound(f"{of('some')},{naming.ROLE_ID}=serve-{i}")) for i in range(3)
        )
        scene.check("both are whole", holds=counts == [0, 2, 2], seen=counts)
    scene.until("the third runs when there is room", lambda: scene.running(of("some")) == 6)


Case = Callable[[Scene, str], None]
CASES: tuple[tuple[str, Case], ...] = (
    ("room for one group of two", one_of_two),
    ("full racks", full_racks),
    ("cordoned nodes", cordoned),
    ("a queue at its limit", queue_limit),
    ("topology of engines", role_topology),
    ("a gang's minimum", gang_minimum),
    ("a lost node, its rack has room", spare_node),
    ("a lost node, its rack is full", lost_node),
)


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
    """Describe a serving of whole nodes."""
    engine = {
        "kind": "vllm",
        "image": "vllm/vllm-openai:v0.10.1",
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
    """Write a serving as its backend does."""
    return [manifest.body for manifest in compile_serving(args).manifests]


def of(name: str) -> str:
    """Select the pods of a serving."""
    return f"{naming.NAME}={name}"


def own(scene: Scene, name: str) -> list[str]:
    """Name the pods of a serving."""
    return [pod["metadata"]["name"] for pod in scene.pods(of(name))]


def racks_of(scene: Scene, name: str) -> set[str]:
    """Name the racks that a serving runs in."""
    return {rack(on) for on in scene.bound(of(name)).values()}


@contextmanager
def filled(scene: Scene, *nodes: str) -> Iterator[None]:
    """Take all GPUs of some nodes, and give them back."""
    pods = [_filler(name) for name in nodes]
    scene.make(pods)
    try:
        yield
    finally:
        for pod in pods:
            if scene.read(pod):
                scene.api.delete(pod)


def cordon(scene: Scene, nodes: Iterable[str], *, closed: bool) -> None:
    """Close nodes to new pods, or open them."""
    for name in nodes:
        body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        scene.api.patch(body, {"spec": {"unschedulable": closed}})


def opened(scene: Scene, queue: Mapping[str, Any]) -> bool:
    """Tell whether Volcano has opened a Queue."""
    return bool((scene.read(queue).get("status") or {}).get("state") == "Open")


def _node(name: str) -> dict[str, Any]:
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
