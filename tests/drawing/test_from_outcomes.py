"""Outcomes on a cluster become a picture: who is where, and what is used."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.values.unknown import Unknown
from kthena_components.drawing.from_outcomes_and_servings import picture_of
from kthena_components.drawing.picture import NodeBox, Picture
from kthena_components.placement.model import Cluster, Outcome, Running, Verdict
from tests.support.pictured import cluster, group, node, pictured, place, waiting


def nodes_of(picture: Picture) -> dict[str, NodeBox]:
    return {node.name: node for rack in picture.racks for node in rack.nodes}


def test_pods_are_on_the_nodes_of_their_placement() -> None:
    there = cluster(2, 2)
    (outcome,) = place(there, [group("chat-0")])
    picture = picture_of(there, [outcome], title="T")
    seen = nodes_of(picture)
    assert [(p.name, p.engine, p.gpus, p.state) for p in seen["node-0-0"].pods] == [
        ("chat-0-prefill-0", "prefill-0", 4, "placed"),
        ("chat-0-prefill-1", "prefill-0", 4, "placed"),
        ("chat-0-router-0", "router-0", 0, "placed"),
    ]
    assert [(p.name, p.engine) for p in seen["node-0-1"].pods] == [
        ("chat-0-decode-0", "decode-0"),
        ("chat-0-decode-1", "decode-1"),
    ]
    assert (seen["node-0-0"].used, seen["node-0-1"].used, seen["node-1-0"].used) == (8, 4, 0)
    (row,) = picture.groups
    assert (row.title, row.serving) == ("serving/chat-0", "ModelServing serving/chat")
    assert (row.verdict, row.where, row.gpus) == ("fits", "rack-0 (tier 1), 2 nodes", 12)
    assert (row.unplaced, row.changed, row.reason) == ((), True, "")


def test_racks_are_the_lowest_hyper_nodes_and_nodes_outside_come_last() -> None:
    there = cluster(2, 2)
    there = replace(there, nodes=[node("alone"), *there.nodes])
    racks = picture_of(there, []).racks
    assert [(rack.name, rack.tier, rack.within) for rack in racks] == [
        ("rack-0", 1, ("spine",)), ("rack-1", 1, ("spine",)), ("", 0, ()),
    ]  # fmt: skip
    assert [node.name for node in racks[2].nodes] == ["alone"]


def test_a_group_that_waits_has_its_pods_beside_the_racks() -> None:
    there = cluster(1, 1)
    picture = picture_of(there, [waiting(group("chat-0"), 8)])
    (row,) = picture.groups
    assert [(pod.engine, pod.state) for pod in row.unplaced] == [
        ("prefill-0", "waiting"), ("prefill-0", "waiting"), ("decode-0", "waiting"),
        ("decode-1", "waiting"), ("router-0", "waiting"),
    ]  # fmt: skip
    assert row.reason == ("8 GPUs are free, and it needs 12 in one rack. Free one node in rack-0.")
    assert nodes_of(picture)["node-0-0"].pods == ()


def test_a_group_of_unknown_size_tells_why() -> None:
    asked = replace(group("chat-0"), pods=(), unknown=Unknown("replicas is an Output"))
    outcome = Outcome(group=asked, verdict=Verdict.UNKNOWN)
    (row,) = picture_of(cluster(1, 1), [outcome]).groups
    assert (row.verdict, row.gpus) == ("not checked", 0)
    assert row.reason == "not checked, because replicas is an Output."


def test_running_pods_of_a_lost_node_are_lost() -> None:
    running = Running(group=group("old-0"), nodes=("node-0-0",) * 2 + ("node-0-1",) * 3)
    there = cluster(1, 2, running=(running,))
    seen = nodes_of(picture_of(there, [], lost=["node-0-0"]))
    assert [pod.state for pod in seen["node-0-0"].pods] == ["lost", "lost"]
    assert [pod.state for pod in seen["node-0-1"].pods] == ["running"] * 3
    assert (seen["node-0-0"].closed, seen["node-0-1"].closed) == ("lost", "")


def test_nodes_state_their_product_and_why_they_take_no_pods() -> None:
    there = Cluster(nodes=[
        node("a", cordoned=True), replace(node("b"), accepts_pods=False),
        replace(node("c"), body={}),
    ])  # fmt: skip
    seen = nodes_of(picture_of(there, []))
    assert [(one.closed, one.product) for one in seen.values()] == [
        ("cordoned", "NVIDIA-H200"), ("closed", "NVIDIA-H200"), ("", ""),
    ]  # fmt: skip


def test_only_the_named_groups_are_changed_and_the_state_before_is_kept() -> None:
    there = cluster(2, 4)
    outcomes = place(there, [group("a-0"), group("b-0")])
    before = picture_of(there, outcomes[:1])
    picture = picture_of(there, outcomes, changed=["serving/b-0"], before=before)
    assert [row.changed for row in picture.groups] == [False, True]
    assert picture.before is before


def test_a_placement_on_a_node_that_is_not_listed_is_told() -> None:
    there = cluster(1, 2)
    outcomes = place(there, [group("chat-0")])
    left = replace(there, nodes=[one for one in there.nodes if one.name != "node-0-1"])
    assert picture_of(left, outcomes).notes == ("2 pods on nodes that are not listed: node-0-1.",)


@pytest.mark.property
@given(servings=st.integers(1, 30))
def test_a_picture_holds_each_pod_once_and_no_node_too_many(servings: int) -> None:
    picture = pictured(servings)
    boxes = [pod.name for node in nodes_of(picture).values() for pod in node.pods]
    boxes += [pod.name for row in picture.groups for pod in row.unplaced]
    assert (
        len(boxes) == len(set(boxes)) == 5 + sum(5 + 2 * (index % 5) for index in range(servings))
    )
    assert all(node.used <= node.gpus for node in nodes_of(picture).values())
