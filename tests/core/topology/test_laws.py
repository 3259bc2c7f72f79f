"""Laws of topologies, over random trees and inventories."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.topology.hypernode_tree import check_tree
from kthena_components.core.topology.spec import (
    HyperNodeTopologySpec,
    build_topology,
    check_topology,
    expand_inventory,
)

Entry = dict[str, Any]


@st.composite
def trees(draw: st.DrawFn) -> list[Entry]:
    """Draw one to four levels of HyperNodes under any number of roots, in any order."""
    entries: list[Entry] = []
    orphans: list[str] = []
    for tier in range(1, draw(st.integers(1, 4)) + 1):
        parents: dict[str, list[str]] = {}
        members = orphans or [f"node-{i}" for i in range(draw(st.integers(1, 6)))]
        for member in members:
            parents.setdefault(f"t{tier}-{draw(st.integers(0, 3))}", []).append(member)
        kind = "children" if orphans else "nodes"
        entries += [{"name": name, "tier": tier, kind: below} for name, below in parents.items()]
        orphans = list(parents)
    return draw(st.permutations(entries))


@st.composite
def nested_inventories(draw: st.DrawFn) -> Entry:
    """Draw nodes whose label values name the whole way down, so that each has one parent."""
    depth = draw(st.integers(1, 4))
    places = draw(st.lists(st.lists(st.integers(0, 2), min_size=depth, max_size=depth), min_size=1))
    tiers = [f"example.com/l{level}" for level in range(depth)]
    return {
        "tiers": [{"label": label} for label in tiers],
        "nodes": [
            {
                "name": f"node-{i}",
                "labels": {
                    label: "-".join(map(str, place[: depth - level]))
                    for level, label in enumerate(tiers)
                },
            }
            for i, place in enumerate(places)
        ],
    }


def topology(entries: list[Entry]) -> HyperNodeTopologySpec:
    return HyperNodeTopologySpec.model_validate({"hyper_nodes": entries})


@given(trees())
def test_a_tree_is_accepted(entries: list[Entry]) -> None:
    assert check_topology(topology(entries)) == []


@given(trees())
def test_a_plan_holds_each_entry_once_and_children_before_parents(entries: list[Entry]) -> None:
    spec = topology(entries)
    planned = build_topology(spec).hyper_nodes
    place = {entry.name: index for index, entry in enumerate(planned)}
    assert sorted(place) == sorted(entry.name for entry in spec.hyper_nodes)
    assert all(place[child] < place[entry.name] for entry in planned for child in entry.children)
    assert [bool(entry.children) for entry in planned] == sorted(
        bool(entry.children) for entry in planned
    )


@given(trees())
def test_planning_a_plan_changes_nothing(entries: list[Entry]) -> None:
    plan = build_topology(topology(entries))
    assert build_topology(HyperNodeTopologySpec(hyper_nodes=list(plan.hyper_nodes))) == plan


@given(trees(), st.data())
def test_an_edge_back_to_an_ancestor_is_named_as_a_cycle(
    entries: list[Entry], data: st.DataObject
) -> None:
    by_name = {entry["name"]: entry for entry in entries}
    upper = data.draw(st.sampled_from(entries))
    way = [upper["name"]]
    while below := by_name[way[-1]].get("children", []):
        way.append(data.draw(st.sampled_from(below)))
        if data.draw(st.booleans()):
            break
    low = by_name[way[-1]]
    low.pop("nodes", None)
    low.setdefault("children", []).append(upper["name"])
    found = {finding.rule: finding for finding in check_topology(topology(entries))}
    cycle = found["hypernode-cycle"]
    assert f"form a cycle, {' -> '.join([*way, way[0]])}, but" in cycle.seen
    assert cycle.path.endswith(f"children[{len(low['children']) - 1}]")
    assert "hypernode-tier-order" not in found


@given(nested_inventories())
def test_an_inventory_puts_each_node_into_exactly_one_leaf(inventory: Entry) -> None:
    spec = HyperNodeTopologySpec.model_validate({"inventory": inventory})
    planned = build_topology(spec).hyper_nodes
    names = [node for entry in planned for node in entry.nodes]
    assert sorted(names) == sorted(node["name"] for node in inventory["nodes"])
    assert {entry.tier for entry in planned if entry.nodes} == {1}


@given(nested_inventories())
def test_an_inventory_gives_a_tree_with_nothing_to_say_about(inventory: Entry) -> None:
    spec = HyperNodeTopologySpec.model_validate({"inventory": inventory})
    assert spec.inventory
    entries = expand_inventory(spec.inventory)
    assert check_topology(HyperNodeTopologySpec(hyper_nodes=entries)) == []


text = st.text(st.sampled_from("aA1-._/^$|( "), max_size=5)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"name": text, "tier": st.integers(0, 3)},
            optional={
                "nodes": st.lists(text, max_size=3),
                "node_regex": text.filter(bool),
                "node_labels": st.dictionaries(text, st.just("v"), max_size=2),
                "children": st.lists(text, max_size=3),
                "tier_name": text.filter(bool),
            },
        ),
        max_size=5,
    )
)
def test_no_input_makes_a_check_raise(entries: list[Entry]) -> None:
    spec = topology(entries)
    assert all(finding.path.startswith("hyper_nodes") for finding in check_tree(spec.hyper_nodes))
    assert all(str(finding) for finding in check_topology(spec))


@given(
    st.lists(
        st.builds(
            lambda name, labels: {"name": name, "labels": labels},
            st.sampled_from("abc"),
            st.dictionaries(st.sampled_from("xyz"), text, max_size=3),
        ),
        min_size=1,
        max_size=5,
    ),
    st.lists(st.sampled_from("xyz"), min_size=1, max_size=3),
)
def test_an_inventory_is_refused_or_gives_a_good_tree(nodes: list[Entry], tiers: list[str]) -> None:
    given_tiers = [{"label": label} for label in tiers]
    spec = HyperNodeTopologySpec.model_validate(
        {"inventory": {"nodes": nodes, "tiers": given_tiers}}
    )
    assert spec.inventory
    if check_topology(spec):
        return
    entries = expand_inventory(spec.inventory)
    assert check_topology(HyperNodeTopologySpec(hyper_nodes=entries)) == []


def test_of_very_many_cycles_the_first_twenty_are_named() -> None:
    pairs = [{"name": f"h-{i}", "tier": 1, "children": [f"h-{i ^ 1}"]} for i in range(60)]
    found = [finding.rule for finding in check_topology(topology(pairs))]
    assert found.count("hypernode-cycle") == 20
    assert found.count("hypernode-tier-order") == 20
