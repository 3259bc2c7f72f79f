"""Lost nodes, and more copies."""

from kthena_components.placement.model import Running
from kthena_components.placement.node_loss_and_growth import grow, lose, nodes_of, worst
from tests.support.placement import HARD, group, pods, racks


def test_a_lost_pod_comes_back_in_its_rack_only() -> None:
    running = Running(group=group(pods(2), topology=HARD[1]), nodes=("r0-n0", "r0-n1"))
    full = racks(2, 2, used={"r0-n0": 8, "r0-n1": 8}, running=(running,))
    loss = lose(full, ["r0-n1"])
    assert [(hit.lost, hit.placement) for hit in loss.hits] == [(1, None)]
    spare = racks(3, 2, used={"r0-n0": 8, "r0-n1": 8}, running=(running,))
    (hit,) = lose(spare, ["r0-n1"]).hits
    assert hit.placement is not None
    assert hit.placement.nodes == ("r0-n0", "r0-n2")


def test_a_group_that_is_lost_as_a_whole_goes_anywhere() -> None:
    running = Running(group=group(pods(2), topology=HARD[1]), nodes=("r0-n0", "r0-n1"))
    where = racks(2, 2, used={"r0-n0": 8, "r0-n1": 8}, running=(running,))
    loss = lose(where, nodes_of(where, "r0"))
    assert loss.nodes == ("r0-n0", "r0-n1")
    assert [
        hit.placement.domain.name for hit in loss.hits if hit.placement and hit.placement.domain
    ] == ["r1"]


def test_the_worst_loss_strands_a_group() -> None:
    pinned = Running(group=group(pods(2), topology=HARD[1]), nodes=("r0-n0", "r0-n1"))
    free = Running(group=group(pods(1), name="f"), nodes=("r1-n0",))
    where = racks(2, 2, used={"r0-n0": 8, "r0-n1": 8, "r1-n0": 8}, running=(free, pinned))
    loss = worst(where)
    assert (loss.nodes, loss.stranded) == (("r0-n0",), 1)
    assert worst(racks(2)).stranded == 0


def test_more_copies() -> None:
    pair = group(pods(2), topology=HARD[1])
    assert grow(racks(2, 2, 3), [pair]) == [3]
    assert grow(racks(2), [pair]) == [1]
    assert grow(racks(1), [pair]) == [0]
