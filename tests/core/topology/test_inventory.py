"""A topology derived from node labels: what it gives, and what keeps it from being a tree."""

from typing import Any

import pytest
from pydantic import ValidationError

from kthena_components.core.topology.domains import DNS_1123
from kthena_components.core.topology.spec import (
    HyperNodeTopologySpec,
    build_topology,
    check_topology,
)
from kthena_components.core.values.unknown import OUTPUT_CLOSE, OUTPUT_OPEN

LATE = f"{OUTPUT_OPEN}7{OUTPUT_CLOSE}"
RACK, SPINE = "topology.example.com/rack", "topology.example.com/spine"
TWO_TIERS = [{"label": RACK}, {"label": SPINE}]


def inventory(
    nodes: dict[str, dict[str, str]] | list[dict[str, Any]], tiers: list[dict[str, str]]
) -> HyperNodeTopologySpec:
    if isinstance(nodes, dict):
        nodes = [{"name": name, "labels": labels} for name, labels in nodes.items()]
    return HyperNodeTopologySpec.model_validate({"inventory": {"nodes": nodes, "tiers": tiers}})


def placed(rack: str, spine: str) -> dict[str, str]:
    return {RACK: rack, SPINE: spine, "unrelated": "yes"}


def said(spec: HyperNodeTopologySpec) -> str:
    return "\n".join(str(finding) for finding in check_topology(spec))


def test_each_label_value_becomes_a_hyper_node() -> None:
    nodes = {"n-1": placed("R1", "s1"), "n-2": placed("r.2", "s1"), "n-3": placed("R1", "s1")}
    plan = build_topology(inventory(nodes, TWO_TIERS))
    assert [entry.model_dump(exclude_defaults=True) for entry in plan.hyper_nodes] == [
        {"name": "rack-r1", "tier": 1, "tier_name": "rack", "nodes": ["n-1", "n-3"]},
        {"name": "rack-r-2", "tier": 1, "tier_name": "rack", "nodes": ["n-2"]},
        {"name": "spine-s1", "tier": 2, "tier_name": "spine", "children": ["rack-r1", "rack-r-2"]},
    ]


def test_a_tier_name_replaces_the_end_of_the_label_key() -> None:
    tiers = [{"label": RACK, "tier_name": "Leaf Switch"}]
    plan = build_topology(inventory({"n": {RACK: "7"}}, tiers))
    assert [entry.name for entry in plan.hyper_nodes] == ["leaf-switch-7"]
    assert plan.tiers == {1: "Leaf Switch"}


def test_a_label_key_without_an_end_names_its_tier_itself() -> None:
    plan = build_topology(inventory({"n": {"rack/": "7"}}, [{"label": "rack/"}]))
    assert [(entry.name, entry.tier_name) for entry in plan.hyper_nodes] == [("rack--7", "rack/")]


@pytest.mark.parametrize("labels", [{RACK: "r1"}, {RACK: "r1", SPINE: ""}], ids=["absent", "empty"])
def test_a_node_that_lacks_a_label_is_refused(labels: dict[str, str]) -> None:
    spec = inventory({"n-1": placed("r1", "s1"), "n-2": labels}, TWO_TIERS)
    assert said(spec) == (
        f"inventory.nodes[1].labels: node 'n-2' has no value for the label '{SPINE}', but it "
        "decides the node's place in the tier 'spine'. Add the label, or leave the node out of the "
        "inventory. [inventory-label-missing]"
    )


def test_a_label_value_that_comes_late_is_refused() -> None:
    assert said(inventory({"n": {RACK: LATE}}, [{"label": RACK}])) == (
        "inventory.nodes[0].labels: the value is known only after the deployment, but it places "
        "the node. Write it as plain text. [known-when-planned]"
    )


def test_a_tier_name_that_comes_late_is_refused() -> None:
    tiers = [{"label": RACK, "tier_name": LATE}]
    assert said(inventory({"n": {RACK: "r1"}}, tiers)) == (
        "inventory.tiers[0]: the value is known only after the deployment, but HyperNodes are "
        "named after it. Write it as plain text. [known-when-planned]"
    )


def test_a_node_name_that_comes_late_is_carried() -> None:
    spec = inventory({LATE: {RACK: "r1"}}, [{"label": RACK}])
    assert said(spec) == (
        "inventory.nodes[0].name: not checked, because the value is known only after the "
        "deployment. [hypernode-late-value]"
    )
    assert build_topology(spec).hyper_nodes[0].nodes == [LATE]


def test_one_rack_under_two_spines_is_refused() -> None:
    nodes = {"n-1": placed("r1", "s1"), "n-2": placed("r1", "s2"), "n-3": placed("r1", "s2")}
    assert said(inventory(nodes, TWO_TIERS)) == (
        "inventory.nodes[1].labels: rack 'r1' is in spine 's1' by node 'n-1' and in spine 's2' by "
        f"node 'n-2', but a domain has one parent. Make the values of '{RACK}' unique, such as "
        "'s1-r1' and 's2-r1'. [hypernode-two-parents]"
    )


def test_two_values_of_one_name_are_refused() -> None:
    spec = inventory({"n-1": {RACK: "A.1"}, "n-2": {RACK: "a_1"}}, [{"label": RACK}])
    assert said(spec) == (
        f"inventory.tiers[0]: 'A.1' of '{RACK}' and 'a_1' of '{RACK}' both give the name "
        "'rack-a-1', but each HyperNode needs a unique name. Change one of the values, or give "
        "the tiers other tier names. [inventory-name]"
    )


def test_two_tiers_that_give_one_name_are_refused() -> None:
    tiers = [{"label": RACK, "tier_name": "a"}, {"label": SPINE, "tier_name": "a-b"}]
    assert said(inventory({"n": placed("b-c", "c")}, tiers)) == (
        f"inventory.tiers[1]: 'b-c' of '{RACK}' and 'c' of '{SPINE}' both give the name 'a-b-c', "
        "but each HyperNode needs a unique name. Change one of the values, or give the tiers "
        "other tier names. [inventory-name]"
    )


def test_a_value_that_makes_a_name_too_long_is_refused() -> None:
    spec = inventory({"n": {RACK: "v" * 63}}, [{"label": RACK, "tier_name": "t" * 250}])
    name = f"{'t' * 250}-{'v' * 63}"
    assert said(spec) == (
        f"inventory.tiers[0]: '{'v' * 63}' of '{RACK}' gives the name '{name}', which is not "
        f"{DNS_1123}. Change the value or the tier_name. [inventory-name]"
    )


def test_a_value_and_tier_without_a_legal_character_are_refused() -> None:
    spec = inventory({"n": {RACK: "++"}}, [{"label": RACK, "tier_name": "--"}])
    assert said(spec) == (
        f"inventory.tiers[0]: '++' of '{RACK}' gives the name '', which is not {DNS_1123}. Change "
        "the value or the tier_name. [inventory-name]"
    )


def test_two_tiers_of_one_tier_name_are_refused() -> None:
    tiers = [{"label": "a.io/rack"}, {"label": "b.io/rack"}]
    assert said(inventory({"n": {"a.io/rack": "1", "b.io/rack": "2"}}, tiers)) == (
        "inventory.tiers[1]: 'rack' is already the name of tier 1, but a tier name belongs to one "
        "tier. Give tier 2 its own tier_name, or remove it. [hypernode-tier-name]"
    )


def test_a_node_listed_twice_is_refused() -> None:
    node = {"name": "n", "labels": {RACK: "r1"}}
    assert said(inventory([node, node], [{"label": RACK}])) == (
        "inventory.nodes[1].name: 'n' is already the name of inventory.nodes[0], but a node has "
        "one place. Remove one of the two. [inventory-node-twice]"
    )


def test_a_node_name_that_no_node_can_have_is_refused() -> None:
    assert said(inventory({"N 1": {RACK: "r1"}}, [{"label": RACK}])) == (
        f"inventory.nodes[0].name: 'N 1' is not {DNS_1123}, so no node has this name. Write the "
        "name that 'kubectl get nodes' shows. [hypernode-node-name]"
    )


def test_an_empty_tier_name_is_refused() -> None:
    with pytest.raises(ValidationError, match="at least 1 character"):
        inventory({"n": {RACK: "r1"}}, [{"label": RACK, "tier_name": ""}])


@pytest.mark.parametrize("empty", ["nodes", "tiers"])
def test_an_inventory_without_nodes_or_tiers_is_no_inventory(empty: str) -> None:
    whole: dict[str, Any] = {"nodes": [{"name": "n"}], "tiers": [{"label": RACK}]}
    with pytest.raises(ValidationError, match=rf"inventory\.{empty}\n.*at least 1 item"):
        HyperNodeTopologySpec.model_validate({"inventory": {**whole, empty: []}})
