"""Laws of `place` on drawn clusters, whatever the scheduler's choices are."""

from dataclasses import replace
from decimal import Decimal
from itertools import starmap
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from conformance.fit.constraints import broken, each_pod
from kthena_components.core.topology.domains import read_domains
from kthena_components.placement.model import (
    Cluster,
    Node,
    Outcome,
    PodGroup,
    PodSet,
    Queue,
    SubGroupPolicy,
    Topology,
    Verdict,
)
from kthena_components.placement.place import place

GPU = "nvidia.com/gpu"
ENGINE = "engine"
MANY = settings(max_examples=60, suppress_health_check=list(HealthCheck))
Rows = list[tuple[int, int, int]]
"""Rack, GPUs and used GPUs of each node."""
_ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from((4, 8)), st.sampled_from((0, 0, 0, 4))),
    min_size=1, max_size=8,
)  # fmt: skip
_HARD = st.builds(Topology, hard=st.just(True), highest_tier=st.integers(1, 2))
_SOFT = st.builds(Topology, hard=st.just(False))


def _amounts(gpus: int, pods: int | None = None) -> dict[str, Decimal]:
    found = {"cpu": Decimal(max(gpus, 1)), GPU: Decimal(gpus)}
    return found if pods is None else {**found, "pods": Decimal(pods)}


def _node(number: int, rack: int, gpus: int, used: int) -> Node:
    name = f"node-{number}"
    labels = {"kubernetes.io/hostname": name, "rack": f"rack-{rack}"}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    held = _amounts(used, 1) if used else {}
    return Node(name=name, body=body, allocatable={**_amounts(gpus, 110), "cpu": Decimal(64)},
                used=held)  # fmt: skip


def _hyper_node(name: str, tier: int, members: list[dict[str, Any]]) -> dict[str, Any]:
    return {"kind": "HyperNode", "metadata": {"name": name},
            "spec": {"tier": tier, "members": members}}  # fmt: skip


def _cluster(nodes: list[Node], names: tuple[str, ...] = ("rack-0", "rack-1", "rack-2", "rack-3"),
             queues: tuple[Queue, ...] = ()) -> Cluster:  # fmt: skip
    racks = sorted({node.body["metadata"]["labels"]["rack"] for node in nodes})
    leaves = [
        _hyper_node(names[int(rack[-1])], 1,
                    [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": rack}}}}])
        for rack in racks
    ]  # fmt: skip
    members = [
        {"type": "HyperNode", "selector": {"exactMatch": {"name": leaf["metadata"]["name"]}}}
        for leaf in leaves
    ]
    bodies = [*leaves, _hyper_node("spine", 2, members)]
    labels = {node.name: node.body["metadata"]["labels"] for node in nodes}
    return Cluster(nodes=nodes, domains=read_domains(bodies, labels), hyper_nodes=bodies,
                   queues=queues or (Queue(name="default"),))  # fmt: skip


def _built(rows: Rows) -> Cluster:
    return _cluster([_node(number, *row) for number, row in enumerate(rows)])


@st.composite
def _groups(draw: st.DrawFn, *, equal: bool = False) -> PodGroup:
    """Draw a group of equal pods; or also engines that are subgroups, and a lower minimum."""
    engines = 1 if equal else draw(st.integers(1, 3))
    size = draw(st.integers(1, 4))
    gpus = draw(st.sampled_from((2, 4, 8)))
    pods = tuple(
        PodSet(
            name=f"pods-{number}", count=size, requests=_amounts(gpus), labels={ENGINE: str(number)}
        )
        for number in range(engines)
    )
    policies: tuple[SubGroupPolicy, ...] = ()
    if engines > 1:
        topology = draw(st.none() | _HARD)
        policies = (
            SubGroupPolicy(name="engines", match_label_keys=(ENGINE,), size=size,
                           minimum=engines, topology=topology),
        )  # fmt: skip
    total = size * engines
    minimum = total if equal or policies else draw(st.integers(1, total))
    return PodGroup(namespace="serving", name="gang", owner="PodGroup gang", pods=pods,
                    minimum=minimum, topology=draw(st.none() | _HARD | _SOFT),
                    subgroups=policies)  # fmt: skip


def _several(*, most: int) -> st.SearchStrategy[list[PodGroup]]:
    def named(groups: list[PodGroup]) -> list[PodGroup]:
        return [replace(group, name=f"gang-{n}") for n, group in enumerate(groups)]

    return st.lists(_groups(), min_size=1, max_size=most).map(named)


def _one(cluster: Cluster, group: PodGroup) -> Outcome:
    (outcome,) = place(cluster, [group])
    return outcome


@MANY
@given(_ROWS, _several(most=4))
def test_a_placement_keeps_every_constraint(rows: Rows, groups: list[PodGroup]) -> None:
    """No node holds more than it has, a gang is whole or absent, and tier caps are kept."""
    cluster = _built(rows)
    outcomes = place(cluster, groups)
    placed = {one.group.name: one.placement.nodes for one in outcomes if one.placement}
    assert list(broken(cluster, groups, placed)) == []
    fitting = {one.group.name for one in outcomes if one.verdict is Verdict.FITS}
    assert fitting <= set(placed)


@MANY
@given(_ROWS, _groups(), st.integers(0, 3))
def test_a_free_node_never_turns_fits_into_never(rows: Rows, group: PodGroup, rack: int) -> None:
    """A further node in any rack may change the order of choices, but the group stays possible."""
    before = _one(_built(rows), group)
    assume(before.verdict is Verdict.FITS)
    after = _one(_built([*rows, (rack, 8, 0)]), group)
    assert after.exists is not False
    assert after.verdict is not Verdict.NEVER


@MANY
@given(_ROWS, _groups(equal=True), st.integers(0, 3))
def test_equal_pods_that_fit_still_fit_with_a_free_node(
    rows: Rows, group: PodGroup, rack: int
) -> None:
    """The scheduler's choices cannot miss a place for equal pods."""
    assume(_one(_built(rows), group).verdict is Verdict.FITS)
    assert _one(_built([*rows, (rack, 8, 0)]), group).verdict is Verdict.FITS


@MANY
@given(_ROWS, _groups())
def test_a_lower_cap_never_fits_where_a_higher_does_not(rows: Rows, group: PodGroup) -> None:
    """The exact answer for tier 2 is at least that for tier 1. The scheduler's may be less."""
    cluster = _built(rows)
    low, high = (
        _one(cluster, replace(group, topology=Topology(hard=True, highest_tier=tier)))
        for tier in (1, 2)
    )
    if low.verdict is Verdict.FITS or low.exists:
        assert high.exists is not False


@MANY
@given(_ROWS, _groups(equal=True))
def test_equal_pods_under_a_lower_cap_also_fit_under_a_higher_one(
    rows: Rows, group: PodGroup
) -> None:
    """For equal pods, the scheduler's own answer obeys the same law."""
    cluster = _built(rows)
    low, high = (
        _one(cluster, replace(group, topology=Topology(hard=True, highest_tier=tier)))
        for tier in (1, 2)
    )
    assert low.verdict is not Verdict.FITS or high.verdict is Verdict.FITS


@MANY
@given(_ROWS, _groups(equal=True), st.randoms(use_true_random=False))
def test_names_do_not_matter(rows: Rows, group: PodGroup, draw: Any) -> None:
    """Other names and another order of nodes and racks change no verdict of equal pods."""
    before = _one(_built(rows), group)
    numbers = list(range(len(rows)))
    draw.shuffle(numbers)
    nodes = list(
        starmap(_node, ((number, *row) for number, row in zip(numbers, rows, strict=True)))
    )
    draw.shuffle(nodes)
    names = ["rack-a", "rack-b", "rack-c", "rack-d"]
    draw.shuffle(names)
    after = _one(_cluster(nodes, tuple(names)), replace(group, name="other"))
    assert (after.verdict, after.exists) == (before.verdict, before.exists)


@MANY
@given(_ROWS, _groups(), st.sampled_from((4, 8, 16)))
def test_a_queue_never_holds_more_than_its_capability(
    rows: Rows, group: PodGroup, limit: int
) -> None:
    """What is placed from a queue stays within it."""
    queue = Queue(name="default", capability={GPU: Decimal(limit)})
    cluster = replace(_built(rows), queues=(queue,))
    outcome = _one(cluster, group)
    if outcome.placement:
        nodes = zip(each_pod(group), outcome.placement.nodes, strict=True)
        assert sum(pods.requests[GPU] for pods, node in nodes if node) <= limit
