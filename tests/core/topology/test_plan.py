"""What a topology may be: each refusal word for word, and the order of what is left."""

from typing import Any

import pytest

from kthena_components.core.findings import Level, SpecError
from kthena_components.core.topology.domains import DNS_1123
from kthena_components.core.topology.hypernode_tree import check_tree
from kthena_components.core.topology.spec import (
    HyperNodeSpec,
    HyperNodeTopologySpec,
    build_topology,
    check_topology,
)


def topology(*entries: dict[str, Any]) -> HyperNodeTopologySpec:
    return HyperNodeTopologySpec.model_validate({"hyper_nodes": list(entries)})


def leaf(name: str, node: str = "", tier: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "tier": tier, "nodes": [node or f"{name}-node"], **more}


def parent(name: str, *children: str, tier: int = 2, **more: Any) -> dict[str, Any]:
    return {"name": name, "tier": tier, "children": list(children), **more}


def said(*entries: dict[str, Any]) -> str:
    return said_of(topology(*entries))


def said_of(spec: HyperNodeTopologySpec) -> str:
    return "\n".join(str(finding) for finding in check_topology(spec))


def only_level(*entries: dict[str, Any]) -> Level:
    (finding,) = check_topology(topology(*entries))
    return finding.level


def test_a_tree_is_ordered_leaves_first_and_else_as_given() -> None:
    plan = build_topology(
        topology(
            parent("core", "spine", tier=3),
            parent("spine", "rack-b", "rack-a"),
            leaf("edge", tier=2),
            leaf("rack-b"),
            leaf("rack-a"),
        )
    )
    names = [entry.name for entry in plan.hyper_nodes]
    assert names == ["rack-b", "rack-a", "edge", "spine", "core"]


def test_a_plan_tells_its_tiers_in_ascending_order() -> None:
    plan = build_topology(
        topology(
            parent("spine", "rack", "pod", tier=4, tier_name="spine"),
            leaf("rack"),
            leaf("pod", tier_name="pod"),
        )
    )
    assert list(plan.tiers.items()) == [(1, "pod"), (4, "spine")]


def test_a_tier_with_two_names_has_the_first() -> None:
    plan = build_topology(topology(leaf("a", tier_name="rack"), leaf("b", tier_name="nvl72")))
    assert plan.tiers == {1: "rack"}


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"nodes": ["n-1", "n.2"]}, "nodes"),
        ({"node_regex": "^gpu-[0-9]+$"}, "node_regex"),
        ({"node_labels": {"example.com/rack": "r1"}}, "node_labels"),
    ],
    ids=["nodes", "pattern", "labels"],
)
def test_a_leaf_takes_its_members_in_each_of_three_ways(
    members: dict[str, Any], field: str
) -> None:
    plan = build_topology(topology({"name": "rack", "tier": 0, **members}))
    assert getattr(plan.hyper_nodes[0], field) == members[field]


def test_several_roots_are_fine() -> None:
    assert said(leaf("rack-a"), leaf("rack-b")) == ""


def test_a_topology_needs_one_of_its_two_sources() -> None:
    assert said_of(HyperNodeTopologySpec()) == (
        "hyper_nodes and inventory are both empty, but a topology has one of them. List HyperNodes "
        "in hyper_nodes, or nodes and tiers in inventory. [hypernode-source]"
    )


def test_a_topology_takes_no_two_sources() -> None:
    inventory = {"nodes": [{"name": "n", "labels": {"r": "1"}}], "tiers": [{"label": "r"}]}
    spec = HyperNodeTopologySpec.model_validate(
        {"hyper_nodes": [leaf("rack")], "inventory": inventory}
    )
    assert said_of(spec) == (
        "hyper_nodes and inventory are both given, but a topology has one of them. List HyperNodes "
        "in hyper_nodes, or nodes and tiers in inventory. [hypernode-source]"
    )


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("Rack_A", "rack-a"),
        ("rack-", "rack"),
        ("a..b", "a--b"),
        ("___", "rack-1"),
        ("r" * 254, "r" * 253),
    ],
    ids=["upper-case", "dash-at-the-end", "empty-part", "nothing-left", "too-long"],
)
def test_a_name_that_kubernetes_would_refuse_is_refused(name: str, better: str) -> None:
    assert said(leaf(name, "n")) == (
        f"hyper_nodes[0].name: '{name}' is not {DNS_1123}, as the name of a HyperNode must be. "
        f"Write '{better}'. [hypernode-name]"
    )


def test_the_rule_for_names_is_spelled_out() -> None:
    assert DNS_1123 == (
        "a DNS-1123 subdomain (at most 253 of a-z, 0-9, '-' and '.', each part starting and "
        "ending with a letter or digit)"
    )


def test_a_name_of_253_characters_is_accepted() -> None:
    assert said(leaf("r" * 253, "n")) == ""


def test_a_label_that_hands_the_object_to_discovery_is_refused() -> None:
    assert said(leaf("rack", labels={"volcano.sh/network-topology-source": "ufm"})) == (
        "hyper_nodes[0].labels: 'volcano.sh/network-topology-source' marks what Volcano's "
        "discovery made, and discovery deletes a HyperNode with this label that it does not find "
        "itself. Remove the label. [hypernode-discovery-label]"
    )


def test_a_hyper_node_without_members_is_refused() -> None:
    assert said({"name": "rack", "tier": 1, "nodes": []}) == (
        "hyper_nodes[0]: 'rack' has no members, but a HyperNode has members of exactly one kind. "
        "Give one of nodes, node_regex, node_labels, children. [hypernode-members]"
    )


def test_members_of_two_kinds_are_refused() -> None:
    assert said(leaf("rack"), leaf("row", tier=2, children=["rack"])) == (
        "hyper_nodes[1]: 'row' has nodes and children, but a HyperNode has members of exactly one "
        "kind. Keep one of nodes and children. [hypernode-members]"
    )


def test_a_node_name_that_no_node_can_have_is_refused() -> None:
    assert said(leaf("rack", "GPU 1")) == (
        f"hyper_nodes[0].nodes[0]: 'GPU 1' is not {DNS_1123}, so no node has this name. Write the "
        "name that 'kubectl get nodes' shows. [hypernode-node-name]"
    )


def test_a_second_entry_of_one_name_is_refused() -> None:
    assert said(leaf("rack", "n-1"), leaf("rack", "n-2")) == (
        "hyper_nodes[1].name: 'rack' is already the name of hyper_nodes[0], but HyperNodes are "
        "cluster-scoped, and their names must be unique. Give one of the two another name. "
        "[hypernode-duplicate-name]"
    )


@pytest.mark.parametrize(
    ("child", "remedy"),
    [
        ("rack1", "Write 'rack-1'"),
        ("gpu", "Add a HyperNode 'gpu', or list it in nodes if it is a node"),
    ],
    ids=["misspelt", "nothing-near"],
)
def test_a_child_that_is_nowhere_is_refused(child: str, remedy: str) -> None:
    assert said(leaf("rack-1"), parent("spine", "rack-1", child)) == (
        f"hyper_nodes[1].children[1]: no entry is named '{child}', but Volcano ignores a member "
        f"that does not exist. {remedy}. [hypernode-unknown-child]"
    )


def test_only_the_first_unknown_children_get_a_near_name() -> None:
    found = said(leaf("rack-1"), parent("spine", *(f"rack{i}" for i in range(2, 24)))).splitlines()
    assert [line.count("Write 'rack-1'") for line in found] == [1] * 20 + [0] * 2


def test_a_cycle_is_named_from_its_highest_tier_down() -> None:
    found = said(parent("row", "spine", tier=2), parent("spine", "row", tier=3))
    assert found == (
        "hyper_nodes[0].children[0]: the children form a cycle, spine -> row -> spine, but a "
        "HyperNode cannot be in itself, and with a cycle Volcano places no group that has a "
        "network topology. Remove 'spine' from the children of 'row'. [hypernode-cycle]"
    )


def test_a_hyper_node_that_lists_itself_is_a_cycle() -> None:
    assert said(leaf("rack"), parent("row", "rack", "row")) == (
        "hyper_nodes[1].children[1]: the children form a cycle, row -> row, but a HyperNode "
        "cannot be in itself, and with a cycle Volcano places no group that has a network "
        "topology. Remove 'row' from the children of 'row'. [hypernode-cycle]"
    )


def test_every_edge_that_closes_a_cycle_is_named() -> None:
    found = said(parent("a", "b", tier=3), parent("b", "a", "c"), parent("c", "b", tier=1))
    cycles = [line for line in found.splitlines() if "[hypernode-cycle]" in line]
    assert [line.partition(", but")[0].rpartition(", ")[2] for line in cycles] == [
        "a -> b -> a",
        "b -> c -> b",
    ]


def test_a_child_of_two_parents_is_refused_with_both_names() -> None:
    found = said(leaf("rack"), parent("spine-1", "rack"), parent("spine-2", "rack"))
    assert found == (
        "hyper_nodes[2].children[0]: 'rack' is a child of 'spine-1' and of 'spine-2', but a "
        "HyperNode has one parent; with two, Volcano places no group that has a network topology. "
        "Remove 'rack' from the children of 'spine-1' or of 'spine-2'. [hypernode-two-parents]"
    )


@pytest.mark.parametrize("tier", [1, 0], ids=["equal", "below"])
def test_a_parent_that_is_not_above_its_child_is_refused(tier: int) -> None:
    assert said(leaf("rack"), parent("spine", "rack", tier=tier)) == (
        f"hyper_nodes[1].children[0]: 'spine' has tier {tier} and its child 'rack' tier 1, but a "
        "parent's tier must be higher; Volcano accepts this and then silently drops topology "
        "constraints. Give 'spine' at least tier 2, or 'rack' a lower one. "
        "[hypernode-tier-order]"
    )


def test_a_tier_name_for_two_tiers_is_refused() -> None:
    found = said(leaf("rack", tier_name="close"), parent("spine", "rack", tier_name="close"))
    assert found == (
        "hyper_nodes[1].tier_name: 'close' names tier 2 here and tier 1 before, but a tier name "
        "belongs to one tier; Volcano picks one of the two at random. Give tier 2 another "
        "tier_name. [hypernode-tier-name]"
    )


def test_leaves_of_two_tiers_get_advice() -> None:
    entries = (
        leaf("host", "n-1"),
        leaf("rack", "n-2", tier=2),
        parent("spine", "host", "rack", tier=3),
    )
    assert said(*entries) == (
        "hyper_nodes[1].tier: the leaf 'rack' has tier 2 and the leaf 'host' tier 1, but Volcano "
        "scores only those nodes that are in a HyperNode of the lowest tier. Put its nodes into "
        "HyperNodes of tier 1 below it. [hypernode-leaf-tiers]"
    )
    assert only_level(*entries) is Level.ADVISORY


def test_a_node_in_two_leaves_gets_advice() -> None:
    entries = (leaf("rack-1", "n"), leaf("rack-2", "n"))
    assert said(*entries) == (
        "hyper_nodes[1].nodes[0]: node 'n' is in 'rack-1' and in 'rack-2', but a node belongs in "
        "one place; Volcano accepts this and counts the node for each HyperNode. Remove one of the "
        "two. [hypernode-node-twice]"
    )
    assert only_level(*entries) is Level.ADVISORY


def test_a_node_listed_twice_in_one_leaf_gets_advice() -> None:
    assert said({"name": "rack", "tier": 1, "nodes": ["n", "n"]}) == (
        "hyper_nodes[0].nodes[1]: node 'n' is twice in 'rack', but a node belongs in one "
        "place; Volcano "
        "accepts this and counts the node for each HyperNode. Remove one of the two. "
        "[hypernode-node-twice]"
    )


def test_advice_stops_no_plan() -> None:
    assert len(build_topology(topology(leaf("a", "n"), leaf("b", "n"))).hyper_nodes) == 2


def test_all_refusals_come_at_once_and_advice_stays_out() -> None:
    spec = topology(leaf("Rack", "n"), leaf("b", "n"), parent("spine", "c", tier=1))
    with pytest.raises(SpecError) as caught:
        build_topology(spec)
    rules = [finding.rule for finding in caught.value.findings]
    assert rules == ["hypernode-name", "hypernode-unknown-child"]
    assert caught.value.findings == tuple(
        finding for finding in check_topology(spec) if finding.level is Level.MANDATORY
    )


def test_the_tree_can_be_checked_without_its_entries() -> None:
    mixed = HyperNodeSpec(name="row", tier=2, nodes=["n-1"], children=["rack"])
    assert check_tree([HyperNodeSpec(name="rack", tier=1, nodes=["n-2"]), mixed]) == []
