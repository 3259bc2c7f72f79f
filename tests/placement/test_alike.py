"""Equal groups are judged once; what is computed of a cluster fits its changed copies."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from kthena_components.placement import place as placing
from kthena_components.placement.changes import changed_cluster, copy_of
from kthena_components.placement.model import Change, Cluster, PodGroup, Quota, Verdict
from kthena_components.placement.place import place
from kthena_components.placement.reasons import explain
from tests.support.for_each import for_each
from tests.support.placement import (
    HARD,
    cluster,
    group,
    hyper_node,
    node,
    per_instance,
    pods,
    racks,
    role,
)


def _gang(number: int, gpus: float = 8, **more: Any) -> PodGroup:
    """Describe the gang of one ServingGroup: its name is in the labels of its pods."""
    name = f"chat-{number}"
    sets = [replace(role("p", str(each), 2, gpus), name=f"{name}-{each}") for each in range(2)]
    named = [replace(one, labels={**one.labels, "group": name}) for one in sets]
    return group(*named, name=name, subgroups=(per_instance("p", 2, 2, HARD[1]),), **more)


@pytest.fixture
def explained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the groups whose reasons are looked for."""
    names: list[str] = []

    def recorded(left: Cluster, empty: Cluster, one: PodGroup) -> Any:
        names.append(one.name)
        return explain(left, empty, one)

    monkeypatch.setattr(placing, "explain", recorded)
    return names


def test_equal_groups_are_explained_once(explained: list[str]) -> None:
    outcomes = place(racks(3), [_gang(number) for number in range(5)])
    assert {one.verdict for one in outcomes} == {Verdict.NEVER}
    assert explained == ["chat-0"]
    assert len({one.obstacles[0].text for one in outcomes}) == 1


def test_groups_that_differ_are_explained_each(explained: list[str]) -> None:
    unlike = [_gang(0), _gang(1, gpus=4), _gang(2, minimum=3), _gang(3, topology=HARD[1])]
    place(racks(1), unlike)
    assert explained == [one.name for one in unlike]


def test_a_change_names_the_group_that_it_is_for() -> None:
    outcomes = place(racks(3, 3, 1), [_gang(number, topology=HARD[1]) for number in range(3)])
    wanted = [change.group for one in outcomes for each in one.obstacles for change in each.changes]
    written = [(one.name, {pods.labels["group"] for pods in one.pods}) for one in wanted if one]
    assert written == [(f"chat-{number}", {f"chat-{number}"}) for number in range(3)]


def test_namespaces_with_quotas_are_judged_apart(explained: list[str]) -> None:
    quota = Quota(namespace="b", name="q", hard={"requests.cpu": Decimal(9)}, used={})
    gangs = [replace(_gang(number), namespace="ab"[number]) for number in range(2)]
    place(racks(1, quotas=(quota,)), gangs)
    assert len(explained) == len(gangs)


BY_NAME = hyper_node("r", 1, ["a"])
PATTERN = {"metadata": {"name": "r"}, "spec": {"tier": 1, "members": [
    {"type": "Node", "selector": {"regexMatch": {"pattern": "^a"}}}]}}  # fmt: skip


def _labelled(**selector: Any) -> dict[str, Any]:
    members = [{"type": "Node", "selector": {"labelMatch": selector}}]
    return {"metadata": {"name": "r"}, "spec": {"tier": 1, "members": members}}


RACK, OTHER = {"rack": "1", "zone": "a"}, {"rack": "1", "zone": "b"}
IN_ZONE = [{"key": "zone", "operator": "In", "values": ["a"]}]
SELECTED = {
    "by name": BY_NAME,
    "by pattern": PATTERN,
    "by label": _labelled(matchLabels={"rack": "1"}),
}


@for_each("hyper", SELECTED.values(), ids=SELECTED)
def test_an_added_node_is_in_the_hyper_nodes_of_the_node_that_it_is_like(
    hyper: dict[str, Any],
) -> None:
    """An inventory lists the nodes that a label selects, so that selectors do not find new ones."""
    spine = hyper_node("spine", 2, ["b"], children=["r"])
    before = cluster([node("a", labels=RACK), node("b", labels=OTHER)], [hyper, spine])
    change = Change(text="", added_nodes=(copy_of(before.nodes[0], "a-new"),), like="a")
    for old, new in zip(before.domains, changed_cluster(before, change).domains, strict=True):
        assert new.nodes - {"a-new"} == old.nodes
        assert ("a-new" in new.nodes) == ("a" in old.nodes)


def test_a_changed_copy_is_computed_anew_where_it_differs() -> None:
    """Nodes, what they hold, their labels and whether they accept pods decide for each copy."""
    full = racks(2, used={"r0-n0": 8, "r0-n1": 8})
    one = group(pods(2))
    assert place(full, [one])[0].verdict is Verdict.WAITS
    free = replace(full, nodes=[replace(each, used={}) for each in full.nodes])
    assert place(free, [one])[0].verdict is Verdict.FITS
    cordoned = replace(free, nodes=[replace(each, accepts_pods=False) for each in free.nodes])
    assert place(cordoned, [one])[0].verdict is Verdict.NEVER
    tainted = replace(free, nodes=[
        replace(each, body=node(each.name, taints=[{"key": "k", "effect": "NoSchedule"}]).body)
        for each in free.nodes
    ])  # fmt: skip
    assert place(tainted, [one])[0].verdict is Verdict.NEVER
    assert place(replace(free, nodes=free.nodes[:1]), [one])[0].verdict is Verdict.NEVER
    assert place(free, [one])[0].verdict is Verdict.FITS
