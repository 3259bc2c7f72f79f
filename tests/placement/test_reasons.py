"""Each cause is told apart, with its numbers, and only a change that helps is offered."""

from dataclasses import replace
from decimal import Decimal

from kthena_components.placement.changes import helps
from kthena_components.placement.exact_solver import installed
from kthena_components.placement.model import Cause, Cluster, PodGroup, PodSet, Queue, Running
from kthena_components.placement.place import place
from tests.support.for_each import for_each
from tests.support.placement import (
    GPU,
    HARD,
    SANDBOX,
    cluster,
    group,
    hyper_node,
    node,
    per_instance,
    pods,
    racks,
    role,
)

CAPACITY = replace(SANDBOX, plugins=SANDBOX.plugins - {"proportion"} | {"capacity"})
BUSY = {f"r{rack}-n0": 8.0 for rack in range(4)}
TEAM = {"key": "team", "value": "research", "effect": "NoSchedule"}
PAIR = [node("a"), node("b")]


def asking(count: int, **requests: float) -> PodSet:
    amounts = {key: Decimal(amount) for key, amount in requests.items()}
    return replace(pods(count, 1), requests={GPU: Decimal(1), **amounts})


def choosing(**labels: str) -> PodSet:
    return pods(2, spec={"nodeSelector": {key.replace("_", "/"): v for key, v in labels.items()}})


def limited(**capability: float) -> Cluster:
    amounts = {GPU: Decimal(capability["gpus"])}
    return racks(2, 2, queues=(Queue(name="default", capability=amounts),))


CASES: dict[str, tuple[Cluster, PodGroup, Cause, str, list[str]]] = {
    "a cap": (
        racks(2, 2, 2, 2, used=BUSY), group(pods(2), topology=HARD[1]), Cause.TIER,
        "2 of 2 pods can be placed, on 4 nodes in 4 HyperNodes of tier 1; at most 1 in one",
        ["Allow tier 2", "Free one node in r0: r0-n0"],
    ),
    "the cap of subgroups": (
        racks(3, 3), group(*(role("p", str(n), 2) for n in range(3)),
                           subgroups=(per_instance("p", 2, 3, HARD[1]),)), Cause.TIER,
        "6 of 6 pods can be placed, on 6 nodes in 2 HyperNodes of tier 1; at most 3 in one",
        ["Allow tier 2", "Add one node like r0-n0 to r0"],
    ),
    "GPUs now": (
        racks(2, 2, used=BUSY), group(pods(4)), Cause.GPUS,
        "2 of 4 pods can be placed, on 2 nodes: each requests 8 GPUs",
        ["Free 2 nodes in spine: r0-n0, r1-n0"],
    ),
    "GPUs of a node": (
        racks(2, 2), group(pods(1, 9)), Cause.GPUS,
        "1 pod cannot be placed: each requests 9 GPUs, and no node has more than 8 left",
        ["Request at most 8 GPUs per pod, as the node r0-n0 has",
         "Add one node like r0-n0 to r0 with 9 GPUs"],
    ),
    "one GPU": (
        cluster([node("a", gpus=0)]), group(pods(1, 1)), Cause.GPUS,
        "1 pod cannot be placed: each requests 1 GPU, and no node has more than 0 left",
        ["Add one node like a with 1 GPU"],
    ),
    "CPU": (
        cluster([node("a", cpu=2)]), group(asking(1, cpu=4)), Cause.CPU,
        "1 pod cannot be placed: each requests 4 cpu, and no node has more than 2 left",
        ["Request at most 2 cpu per pod, as the node a has", "Add one node like a with 4 cpu"],
    ),
    "memory": (
        cluster([node("a", memory=2**40)]), group(asking(1, memory=1124 * 2**30)), Cause.MEMORY,
        ("1 pod cannot be placed: each requests 1124Gi memory, and no node has more than 1Ti "
         "left"),
        ["Request at most 1Ti memory per pod, as the node a has",
         "Add one node like a with 1124Gi memory"],
    ),
    "GPUs, CPU and memory at once": (
        cluster([node("a", cpu=8, memory=2**40), node("b", 4, cpu=4, memory=2**39)]),
        group(replace(pods(2), requests={GPU: Decimal(8), "cpu": Decimal(8),
                                         "memory": Decimal(2**40)})), Cause.GPUS,
        "1 of 2 pods can be placed, on 1 node: each requests 8 GPUs, 8 cpu and 1Ti memory",
        ["Add one node like a"],
    ),
    "GPUs and CPU of any node": (
        cluster([node("a", 4, cpu=4), node("b", 2, cpu=2)]),
        group(replace(pods(1), requests={GPU: Decimal(8), "cpu": Decimal(8)})), Cause.GPUS,
        ("1 pod cannot be placed: each requests 8 GPUs and 8 cpu, and no node has more than "
         "4 GPUs and 4 cpu left"),
        ["Request at most 4 GPUs and 4 cpu per pod, as the node a has",
         "Add one node like a with 8 GPUs and 8 cpu"],
    ),
    "pods per node": (
        cluster([node("a", pods=1), node("b", pods=1)]), group(pods(3, 1)), Cause.PODS,
        "2 of 3 pods can be placed, on 2 nodes: no node has more than 1 free slots for pods",
        ["Add one node like a"],
    ),
    "pods per node, and GPUs are all that is requested": (
        cluster([node("a", pods=1), node("b", pods=1)]),
        group(replace(pods(3), requests={GPU: Decimal(1)})), Cause.PODS,
        "2 of 3 pods can be placed, on 2 nodes: no node has more than 1 free slots for pods",
        ["Add one node like a"],
    ),
    "GPUs that are all that is requested": (
        cluster([node("a", gpus=1)]), group(replace(pods(3), requests={GPU: Decimal(1)})),
        Cause.GPUS, "1 of 3 pods can be placed, on 1 node: each requests 1 GPU",
        ["Add 2 nodes like a"],
    ),
    "a taint": (
        cluster([node("a", taints=[TEAM]), node("b")]), group(pods(2)), Cause.TAINT,
        ("1 of 2 pods can be placed; excluded: 1 node with the taint "
        "team=research:NoSchedule"),
        ["Tolerate the taint team=research:NoSchedule"],
    ),
    "a product": (
        cluster(PAIR), group(choosing(**{"nvidia.com_gpu.product": "H200"})), Cause.PRODUCT,
        ("none of 2 pods can be placed; excluded: 2 nodes without the label "
        "nvidia.com/gpu.product=H200"),
        ["Ask for a GPU that the cluster has, or add nodes with this one"],
    ),
    "a selector": (
        cluster(PAIR), group(choosing(zone="a")), Cause.SELECTOR,
        "none of 2 pods can be placed; excluded: 2 nodes without the label zone=a",
        ["Leave out the selector, or label nodes with room"],
    ),
    "a queue": (
        limited(gpus=8), group(pods(2)), Cause.QUEUE,
        "the queue default has reached its capability: of 8 GPUs, 0 are used and 16 are asked for",
        ["Raise the capability of the queue default to 16 GPUs"],
    ),
    "a queue above it": (
        racks(2, 2, scheduler=CAPACITY, queues=(
            Queue(name="root"), Queue(name="org", parent="root", capability={GPU: Decimal(8)}),
            Queue(name="team", parent="org", capability={GPU: Decimal(24)}))),
        group(pods(2), queue="team"), Cause.QUEUE,
        ("the queue org, which is above team, has reached its capability: of 8 GPUs, 0 are used "
         "and 16 are asked for"),
        ["Raise the capability of the queue org to 16 GPUs"],
    ),
    "what a queue deserves": (
        racks(2, 2, queues=(Queue(name="default"),
                            Queue(name="other", guarantee={GPU: Decimal(24)}))),
        group(pods(2)), Cause.QUEUE,
        ("the queue default has used what it deserves beside the others: of 8 GPUs, 0 are used and "
         "16 are asked for"),
        ["Add one node like r0-n0 to r0"],
    ),
    "what the guarantees of other queues leave": (
        racks(2, 2, scheduler=CAPACITY, queues=(
            Queue(name="root"), Queue(name="default", parent="root"),
            Queue(name="other", parent="root", guarantee={GPU: Decimal(24)}))),
        group(pods(2)), Cause.QUEUE,
        ("the queue default has used what it deserves beside the others: of 8 GPUs, 0 are used and "
         "16 are asked for"),
        ["Add one node like r0-n0 to r0"],
    ),
    "a queue that does not exist": (
        racks(2), group(pods(1), queue="none"), Cause.QUEUE, "the queue none does not exist",
        ["Add the queue none", "Name the queue default in its place"],
    ),
    "a queue that is closed": (
        racks(2, queues=(Queue(name="shut", open=False), Queue(name="spare"))),
        group(pods(1), queue="shut"), Cause.QUEUE, "the queue shut is not open",
        ["Open the queue shut", "Name the queue spare or default in its place"],
    ),
    "a gang that is larger than its pods": (
        racks(4), group(pods(3), minimum=4), Cause.GANG_MINIMUM,
        "the scheduler passes it over: minMember is 4, and it has 3 pods",
        ["Lower that minimum, or create the pods that are missing"],
    ),
    "two parents": (
        cluster(PAIR, [hyper_node("r", 1, ["a"]), hyper_node("s", 2, children=["r"]),
                       hyper_node("t", 2, children=["r"])]),
        group(pods(1), topology=HARD[1]), Cause.MEMBERSHIP,
        ("a HyperNode has two parents or contains itself, and until this is repaired the "
        "scheduler places no group with a networkTopology"),
        ["Remove the HyperNode t"],
    ),
    "a cycle and two parents": (
        cluster(PAIR, [hyper_node("r", 1, ["a"]), hyper_node("s", 2, children=["r", "t"]),
                       hyper_node("t", 3, children=["s", "r"])]),
        group(pods(1), topology=HARD[1]), Cause.MEMBERSHIP,
        ("a HyperNode has two parents or contains itself, and until this is repaired the "
        "scheduler places no group with a networkTopology"),
        ["Remove the HyperNode t"],
    ),
}  # fmt: skip


@for_each("where, one, cause, text, changes", CASES.values(), ids=CASES)
def test_a_cause(
    where: Cluster, one: PodGroup, cause: Cause, text: str, changes: list[str]
) -> None:
    (outcome,) = place(where, [one])
    (obstacle,) = outcome.obstacles
    assert (obstacle.cause, obstacle.text) == (cause, text)
    assert [change.text for change in obstacle.changes] == changes
    assert all(helps(where, one, change) for change in obstacle.changes)


def test_pods_that_request_less_have_smaller_minresources() -> None:
    one = group(pods(2, 9), whole=True)
    (outcome,) = place(racks(2), [one])
    (obstacle,) = outcome.obstacles
    told = [change.text for change in obstacle.changes]
    assert told == ["Request at most 8 GPUs per pod, as the node r0-n0 has",
                    "Add 2 nodes like r0-n0 to r0 with 9 GPUs each"]  # fmt: skip
    smaller = obstacle.changes[0].group
    assert smaller is not None
    assert smaller.min_resources == {GPU: Decimal(16), "cpu": Decimal(2)}


def test_minresources_of_all_pods_block_an_elastic_group() -> None:
    one = group(pods(3), minimum=2, topology=HARD[1], min_resources={GPU: Decimal(24)})
    (outcome,) = place(racks(2, 2), [one])
    (obstacle,) = outcome.obstacles
    assert obstacle.cause is Cause.TIER
    told = [change.text for change in obstacle.changes]
    assert told == ["Allow tier 2", "Add one node like r0-n0 to r0"]


def test_several_causes_show_the_one_that_an_empty_cluster_has() -> None:
    wanting = group(choosing(**{"nvidia.com_gpu.product": "H200"}), name="picky")
    _, outcome = place(cluster(PAIR), [group(pods(2)), wanting])
    (obstacle,) = outcome.obstacles
    assert (obstacle.cause, obstacle.changes) == (Cause.PRODUCT, ())


def test_whether_any_place_exists() -> None:
    blocked = group(pods(3), minimum=2, topology=HARD[1], min_resources={GPU: Decimal(24)})
    spread = group(pods(3), topology=HARD[1])
    unequal = group(pods(4, 8), pods(1, 9), name="unequal")
    outcomes = [place(racks(2, 2), [one])[0] for one in (blocked, spread, unequal)]
    assert [one.exists for one in outcomes] == [True, False, False if installed() else None]
    assert [bool(one.note) for one in outcomes] == [True, False, False]


def test_no_change_frees_a_node_that_another_group_of_the_question_takes() -> None:
    """Of two groups for one free node, the second is told to free the other one, or to add one."""
    first, second = (replace(group(pods(1)), name=name) for name in ("first", "second"))
    told = [
        [change.text for obstacle in place(there, [first, second])[1].obstacles
         for change in obstacle.changes]
        for there in (cluster([node("a"), node("b", used=8)]), cluster([node("a")]))
    ]  # fmt: skip
    assert told == [["Free one node: b"], ["Add one node like a"]]


def test_a_freed_node_frees_its_part_of_the_queue() -> None:
    """All GPUs are used, so without it the queue would have all that it deserves."""
    old = Running(group=group(pods(2), name="old"), nodes=("r0-n0", "r0-n1"))
    held = {GPU: Decimal(16), "cpu": Decimal(2), "pods": Decimal(2)}
    used = {"r0-n0": 8.0, "r0-n1": 8.0}
    queues = (Queue(name="default", parent="root", used=held), Queue(name="root", used=held))
    where = racks(2, used=used, running=(old,), queues=queues)
    (outcome,) = place(where, [group(pods(2), topology=HARD[1])])
    (change,) = outcome.obstacles[0].changes
    assert change.text == "Free 2 nodes in r0: r0-n0, r0-n1"


@for_each("count", [4, 30, 120])
def test_the_smallest_change_is_found_among_many_racks(count: int) -> None:
    """Sets of nodes that are too small for the gang are not tried, so that larger ones are."""
    held = {f"r{rack}-n{n}": 8.0 for rack in range(count) for n in range(4)}
    one_free = {name: gpus for name, gpus in held.items() if not name.endswith("n0")}
    where = racks(*[4] * count, used=one_free)
    three, twelve = group(pods(3), topology=HARD[1]), group(pods(12, 4))
    assert _changes(where, three) == ["Allow tier 2", "Free 2 nodes in r0: r0-n1, r0-n2"]
    full = racks(*[4] * count, used=held)
    assert _changes(full, three) == ["Free 3 nodes in r0: r0-n0, r0-n1, r0-n2"]
    (told,) = _changes(full, twelve)
    assert told.startswith("Free 6 nodes in spine: r0-n0, ")
    closed = replace(where, nodes=[
        replace(one, accepts_pods=bool(one.used)) for one in where.nodes])  # fmt: skip
    assert _changes(closed, group(pods(3))) == [
        "Uncordon or repair 3 nodes in spine: r0-n0, r1-n0, r2-n0"
    ]


@for_each("where, one, told", [
    (racks(2, 2, 2), group(pods(26), topology=HARD[1]), "Add 24 nodes like r0-n0 to r0"),
    (racks(2, 2, 2), group(pods(30, 4), topology=HARD[2]), "Add 9 nodes like r0-n0 to r0"),
    (racks(2, 2, 2), group(pods(30, 4)), "Add 9 nodes like r0-n0 to r0"),
    (cluster([node("a"), node("b")]), group(pods(30, 4)), "Add 13 nodes like a"),
])  # fmt: skip
def test_the_fewest_nodes_to_add_are_counted(where: Cluster, one: PodGroup, told: str) -> None:
    assert _changes(where, one)[-1] == told


def _changes(where: Cluster, one: PodGroup) -> list[str]:
    (outcome,) = place(where, [one])
    found = [change for obstacle in outcome.obstacles for change in obstacle.changes]
    assert all(helps(where, one, change) for change in found)
    return [change.text for change in found]


def test_all_closed_nodes_are_named_together_where_no_part_of_them_suffices() -> None:
    """Each of two subgroups needs two nodes of a rack, and the first four are of four racks."""
    names = [f"r{rack}-n{n}" for n in range(2) for rack in range(30)]
    leaves = [hyper_node(f"r{rack}", 1, names[rack::30]) for rack in range(30)]
    closed = cluster([node(name, accepts=False) for name in names], leaves)
    engines = [role("p", str(n), 2) for n in range(2)]
    one = group(*engines, subgroups=(per_instance("p", 2, 2, HARD[1]),))
    (outcome,) = place(closed, [one])
    (obstacle,) = outcome.obstacles
    (change,) = obstacle.changes
    assert obstacle.text == "none of 4 pods can be placed; excluded: 60 nodes cordoned or not ready"
    assert change.text == "Uncordon or repair all nodes that are cordoned or not ready (60)"
    assert helps(closed, outcome.group, change)
