"""Gangs and topology: how the real scheduler handles the objects of both backends."""

from collections.abc import Callable

from conformance.__main__ import Context
from conformance.support.cluster import BACKENDS, Scene, group_selector, rack
from conformance.volcano import (
    failure_domains,
    misleading_gangs,
    pods_without_requests,
    predicted_nodes,
    service_selectors,
)
from conformance.volcano.gangs import (
    HARD,
    SIZE,
    SOFT,
    cordon,
    filled,
    manifests,
    of,
    opened,
    own,
    racks_of,
    serving,
)
from conformance.volcano.lost_nodes import hung_node, lost_node, spare_node
from kthena_components.core import naming
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import QueueSpec
from kthena_components.systems.volcano.emit_cluster import emit_queue


def run(context: Context) -> None:
    """Run every case with each backend, then hand-written PodGroups, and single pods."""
    sandbox = context.sandbox(SIZE)
    try:
        scene = Scene(sandbox.api, context.part)
        cases = CASES if context.scale >= 1 else CASES[: context.many(len(CASES))]
        for backend in BACKENDS:
            for title, case in cases:
                with scene.of(f"{title}, {backend}"):
                    case(scene, backend)
                context.part.count("cases of the package's own servings")
        misleading_gangs.hold(scene, SIZE)
        predicted_nodes.hold(scene, context.seed, context.many(predicted_nodes.NUMBER))
    finally:
        sandbox.processes.stop_all()


def one_of_two(scene: Scene, backend: str) -> None:
    """Room for one of two groups: it runs, and the other waits as a whole until there is room."""
    with filled(scene, "rack-2-node-0", "rack-2-node-1"):
        args = serving("chat", backend, workers=2, replicas=2)
        scene.make(manifests(args))
        scene.until("the pods of both are there", lambda: len(own(scene, "chat")) == 2 * 3)
        scene.until("three pods run", lambda: scene.running(of("chat")) == 3)
        counts = [len(scene.bound(group_selector(f"chat-{group}"))) for group in range(2)]
        scene.check("one whole group runs", holds=sorted(counts) == [0, 3], seen=counts)
        waiting = f"chat-{counts.index(min(counts))}"
        scene.waits("the other", waiting, pods=3)
        scene.until("its PodGroup shows why", lambda: "gang" in scene.unschedulable(waiting))
    scene.until("both run when there is room", lambda: scene.running(of("chat")) == 2 * 3)


def full_racks(scene: Scene, backend: str) -> None:
    """One node is free in each of three racks: hard waits, soft runs across racks."""
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
    """A cordoned node accepts no pod: the group uses other nodes, or waits."""
    closed = [f"rack-{number}-node-0" for number in range(3)]
    try:
        cordon(scene, closed, closed=True)
        scene.settle()
        scene.make(manifests(serving("chat", backend, group=HARD)))
        scene.waits("one node of each rack is cordoned", "chat-0", pods=2)
        cordon(scene, closed[1:2], closed=False)
        scene.until("it runs once one is not", lambda: scene.running(of("chat")) == 2)
        racks = racks_of(scene, "chat")
        scene.check("it runs in that rack", holds=racks == {"rack-1"}, seen=racks)
    finally:
        cordon(scene, closed, closed=False)


def queue_limit(scene: Scene, backend: str) -> None:
    """A Queue at its limit: the second serving waits, and runs when the limit is raised."""
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
    """Each engine is in one rack, and the group in several."""
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
    """Room for two engines of three: by default all three are required, with a minimum two."""
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
        scene.check("both are complete", holds=counts == [0, 2, 2], seen=counts)
    scene.until("the third runs when there is room", lambda: scene.running(of("some")) == 6)


Case = Callable[[Scene, str], None]
CASES: tuple[tuple[str, Case], ...] = (
    ("room for one group of two", one_of_two),
    ("full racks", full_racks),
    ("cordoned nodes", cordoned),
    ("a queue at its limit", queue_limit),
    ("topology of engines", role_topology),
    ("a gang's minimum", gang_minimum),
    ("pods without requests", pods_without_requests.placed_anywhere),
    ("selectors of Services", service_selectors.by_services),
    ("a lost node, its rack has room", spare_node),
    ("a lost node, its rack is full", lost_node),
    ("a node that hangs", hung_node),
    ("groups apart", failure_domains.in_other_racks),
    ("no room apart", failure_domains.in_one_rack),
    ("a drain", failure_domains.evicted),
)
