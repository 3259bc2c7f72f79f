"""What was seen on the real scheduler (Volcano 1.14.1) is what the model says.

Racks of two nodes with 8 GPUs at tier 1 under one spine at tier 2, pods of 8 GPUs.
"""

from decimal import Decimal
from typing import Any

from kthena_components.placement.model import Cluster, PodGroup, SubGroupPolicy, Topology, Verdict
from kthena_components.placement.place import place
from tests.support.for_each import for_each
from tests.support.placement import (
    GPU,
    HARD,
    SOFT,
    cluster,
    group,
    hyper_node,
    node,
    per_instance,
    pods,
    racks,
    role,
    verdicts,
)

FITS, WAITS, NEVER = Verdict.FITS, Verdict.WAITS, Verdict.NEVER
TWO = racks(2, 2)


def racks_of(where: Cluster, one: PodGroup) -> list[int]:
    """How many pods each rack gets."""
    (outcome,) = place(where, [one])
    names = outcome.placement.nodes if outcome.placement else ()
    found = [name.split("-")[0] for name in names if name]
    return sorted(found.count(rack) for rack in set(found))


def test_a_pair_shares_a_rack() -> None:
    assert racks_of(TWO, group(pods(2), topology=HARD[1])) == [2]


ELASTIC = {
    "without minResources": ({}, [2]),
    "minResources for two": ({"min_resources": {GPU: Decimal(16)}}, [2]),
    "minResources for all": ({"min_resources": {GPU: Decimal(24)}}, []),
}


@for_each("more, seen", ELASTIC.values(), ids=ELASTIC)
def test_an_elastic_group(more: dict[str, Any], seen: list[int]) -> None:
    one = group(pods(3), minimum=2, topology=HARD[1], **more)
    assert racks_of(TWO, one) == seen
    assert verdicts(TWO, one) == ([FITS] if seen else [NEVER])


def test_more_resources_than_the_cluster_has_keep_a_group_pending() -> None:
    one = group(pods(2), min_resources={GPU: Decimal(800)})
    (outcome,) = place(TWO, [one])
    assert outcome.verdict == NEVER


def test_a_group_without_a_minimum_is_not_kept_pending() -> None:
    """After one session its phase is Completed, and only Pending groups need minResources."""
    larger = group(pods(5), topology=HARD[1], min_resources={GPU: Decimal(32)})
    one = group(pods(2), name="one", minimum=0, min_resources={GPU: Decimal(16)})
    assert verdicts(TWO, larger, one) == [NEVER, FITS]


DROPPED = {
    "a name that no tier has": Topology(hard=True, highest_tier_name="row"),
    "no cap at all": Topology(hard=True),
    "above the highest tier": HARD[3],
    "soft": SOFT,
}


@for_each("topology", DROPPED.values(), ids=DROPPED)
def test_a_topology_that_does_not_hold(topology: Topology) -> None:
    assert racks_of(TWO, group(pods(4), topology=topology)) == [2, 2]


def test_a_cap_by_name_holds() -> None:
    rack = Topology(hard=True, highest_tier_name="rack")
    assert racks_of(TWO, group(pods(2), topology=rack)) == [2]
    assert verdicts(TWO, group(pods(3), topology=rack)) == [NEVER]


def test_without_hypernodes_tier_1_is_the_cluster() -> None:
    nodes = [node(f"n{n}") for n in range(4)]
    assert verdicts(cluster(nodes), group(pods(4), topology=HARD[1])) == [FITS]


def test_tier_0_has_no_hypernode() -> None:
    assert verdicts(TWO, group(pods(1), topology=HARD[0])) == [NEVER]


def test_a_subgroup_needs_label_keys() -> None:
    without = SubGroupPolicy(
        name="p", match_labels={"matchLabels": {"role": "p"}}, size=2, minimum=1
    )
    one = group(role("p", "0", 2), subgroups=(without,))
    assert verdicts(TWO, one) == [NEVER]
    assert verdicts(TWO, group(role("p", "0", 2), subgroups=(per_instance("p", 2, 1, None),))) == [
        FITS
    ]


def test_pods_without_requests_ignore_topology() -> None:
    one = group(pods(300, 0), topology=HARD[1])
    assert verdicts(TWO, one) == [FITS]
    assert len(racks_of(TWO, one)) == 2


def test_a_task_that_no_pod_has() -> None:
    one = group(pods(2, task="p"), task_minimum={"p": 1, "q": 1})
    assert verdicts(TWO, one) == [NEVER]


def test_two_parents_stop_all_topologies() -> None:
    broken = [hyper_node("r0", 1, ["a", "b"]), hyper_node("s0", 2, children=["r0"]),
              hyper_node("s1", 2, children=["r0"])]  # fmt: skip
    where = cluster([node("a"), node("b"), node("c")], broken)
    assert verdicts(where, group(pods(1), topology=HARD[1]), group(pods(1), topology=SOFT),
                    group(pods(1))) == [NEVER, NEVER, FITS]  # fmt: skip


def test_a_parent_of_the_same_tier_voids_the_cap() -> None:
    flat = [hyper_node("r0", 1, ["a", "b"]), hyper_node("r1", 1, ["c", "d"]),
            hyper_node("s", 1, children=["r0", "r1"])]  # fmt: skip
    where = cluster([node(name) for name in "abcd"], flat)
    assert verdicts(where, group(pods(4), topology=HARD[1])) == [FITS]


def test_a_tier_that_nothing_has() -> None:
    tree = [hyper_node("r0", 1, ["a", "b"]), hyper_node("r1", 1, ["c", "d"]),
            hyper_node("s", 3, children=["r0", "r1"])]  # fmt: skip
    where = cluster([node(name) for name in "abcd"], tree)
    assert verdicts(where, group(pods(4), topology=HARD[2])) == [NEVER]
    assert verdicts(where, group(pods(4), topology=HARD[3])) == [FITS]


def test_a_node_in_two_leaves_and_members_that_do_not_exist() -> None:
    tree = [hyper_node("r0", 1, ["a", "b", "gone"], ["none"]), hyper_node("r1", 1, ["b", "c"])]
    where = cluster([node(name) for name in "abc"], tree)
    assert verdicts(where, group(pods(2), topology=HARD[1])) == [FITS]
    assert verdicts(where, group(pods(3), topology=HARD[1])) == [NEVER]


def test_each_subgroup_is_whole_in_a_rack() -> None:
    policy = per_instance("p", 2, 2, HARD[1])
    two = group(role("p", "0", 2), role("p", "1", 2), subgroups=(policy,))
    assert racks_of(TWO, two) == [2, 2]
    three = group(
        *(role("p", str(n), 2) for n in range(3)), subgroups=(per_instance("p", 2, 3, HARD[1]),)
    )
    assert verdicts(racks(3, 3), three) == [NEVER]
