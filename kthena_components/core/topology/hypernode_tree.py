"""Checks that HyperNodes together form a tree that Volcano can use.

Each function of TREE_RULES is one rule, and its docstring is its documentation.
"""

from collections.abc import Callable, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import TYPE_CHECKING

from kthena_components.core.findings import Finding, Level, checked_by, nearest
from kthena_components.core.remedies import write
from kthena_components.core.topology.domains import must_be_known
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import is_unresolved

if TYPE_CHECKING:  # most files that are checked have no HyperNode
    from kthena_components.core.topology.spec import HyperNodeSpec

ENOUGH = 20  # similar names and cycles are expensive to find; more of them have the same cause


@dataclass(frozen=True, slots=True)
class Link:
    """A child that exists, and the path that lists it."""

    path: str
    parent: "HyperNodeSpec"
    child: "HyperNodeSpec"


@dataclass(frozen=True, slots=True)
class Tree:
    """HyperNodes, and their parents and children."""

    entries: Sequence["HyperNodeSpec"]
    links: Sequence[Link]
    cycles: Sequence[list[str]]
    """Cycles; each starts and ends with the name of its highest HyperNode."""


def check_tree(entries: Sequence["HyperNodeSpec"]) -> list[Finding]:
    """Report what is wrong between HyperNodes; each alone is checked elsewhere."""
    links = list(_links(entries))
    tree = Tree(entries, links, _cycles(links))
    alike = list(_names_unique(entries))
    return alike + checked_by(TREE_RULES, tree)


def place_of(index: int) -> str:
    """Return the path of an entry."""
    return f"hyper_nodes[{index}]"


def _links(entries: Sequence["HyperNodeSpec"]) -> Iterator[Link]:
    by_name = {entry.name: entry for entry in entries}
    for i, parent in enumerate(entries):
        for k, name in enumerate(parent.children):
            if name in by_name:
                yield Link(f"{place_of(i)}.children[{k}]", parent, by_name[name])


def _names_unique(entries: Sequence["HyperNodeSpec"]) -> Iterator[Finding]:
    """Report HyperNodes of the same name."""
    first: dict[str, int] = {}
    for i, entry in enumerate(entries):
        if first.setdefault(entry.name, i) != i:
            yield Finding(
                path=f"{place_of(i)}.name", rule="hypernode-duplicate-name",
                seen=f"'{entry.name}' is already the name of {place_of(first[entry.name])}, but "
                "HyperNodes are cluster-scoped, and their names must be unique",
                remedy="give one of the two another name",
            )  # fmt: skip


def hypernode_unknown_child(tree: Tree) -> Iterator[Finding]:
    """Each child of a HyperNode exists; Volcano ignores missing ones.

    Pass: children rack-1 and rack-2, and 2 HyperNodes of these names.
    Fail: children rack-1 and rack-3, where no HyperNode is named rack-3.
    Level: mandatory in a component's topology; not checked in a stack, because the cluster may have
    other HyperNodes.
    Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go BuildHyperNodeCache.
    """
    names = {entry.name for entry in tree.entries}
    unknown = 0
    for i, entry in enumerate(tree.entries):
        for k, child in enumerate(entry.children):
            path = f"{place_of(i)}.children[{k}]"
            if is_unresolved(child):
                yield must_be_known(path, "children are found by name")
            if child in names or is_unresolved(child):
                continue
            unknown += 1
            close = nearest(child, sorted(names - {entry.name})) if unknown <= ENOUGH else None
            yield Finding(
                path=path, rule="hypernode-unknown-child",
                seen=f"no entry is named '{child}', but Volcano ignores a member that does not "
                "exist",
                remedy=write(close) if close
                else f"add a HyperNode '{child}', or list it in nodes if it is a node",
            )  # fmt: skip


def _cycles(links: Sequence[Link]) -> list[list[str]]:
    """Find a cycle, remove the edge that closes it, and repeat.

    Each cycle goes from its highest tier down, so the last edge is the one that goes up.
    """
    tiers: dict[str, int] = {}
    graph: dict[str, dict[str, None]] = {}
    for link in links:
        tiers.setdefault(link.parent.name, link.parent.tier)
        graph.setdefault(link.parent.name, {})[link.child.name] = None
    cycles: list[list[str]] = []
    for _ in range(ENOUGH):
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # graphlib goes from child to parent, and lists the first one twice.
            ring: list[str] = error.args[1][:0:-1]
            top = ring.index(max(ring, key=lambda name: tiers[name]))
            cycles.append([*ring[top:], *ring[: top + 1]])
            del graph[cycles[-1][-2]][cycles[-1][-1]]
        else:
            break
    return cycles


def hypernode_cycle(tree: Tree) -> Iterator[Finding]:
    """HyperNodes form no cycle; otherwise Volcano places no group that has a topology.

    This affects every group in the cluster, whichever HyperNodes it would use.

    Pass: spine above rack-1 and rack-2.
    Fail: spine above rack-1, and rack-1 above spine.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go BuildHyperNodeCache; run on 1.14.1.
    """
    places = {(link.parent.name, link.child.name): link.path for link in tree.links}
    for cycle in tree.cycles:
        low, top = cycle[-2:]
        yield Finding(
            path=places[low, top], rule="hypernode-cycle",
            seen=f"the children form a cycle, {' -> '.join(cycle)}, but a HyperNode cannot be in "
            "itself, and with a cycle Volcano places no group that has a network topology",
            remedy=f"remove '{top}' from the children of '{low}'",
        )  # fmt: skip


def hypernode_two_parents(tree: Tree) -> Iterator[Finding]:
    """A HyperNode has one parent; with two, Volcano places no group that has a topology.

    This affects every group in the cluster, whichever HyperNodes it would use.

    Pass: rack-1 below 1 spine.
    Fail: rack-1 below 2 spines.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go addChild; run on 1.14.1.
    """
    first: dict[str, str] = {}
    for link in tree.links:
        child, other = link.child.name, link.parent.name
        one = first.setdefault(child, other)
        if one != other:
            yield Finding(
                path=link.path, rule="hypernode-two-parents",
                seen=f"'{child}' is a child of '{one}' and of '{other}', but a HyperNode has one "
                "parent; with two, Volcano places no group that has a network topology",
                remedy=f"remove '{child}' from the children of '{one}' or of '{other}'",
            )  # fmt: skip


def hypernode_tier_order(tree: Tree) -> Iterator[Finding]:
    """A parent's tier is higher than its children's; otherwise Volcano silently drops constraints.

    Pass: racks of tier 1 below a spine of tier 2.
    Fail: racks of tier 2 below a spine of tier 2.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go
    getHighestAllowedHyperNode; run on 1.14.1.
    """
    in_cycle = {pair for cycle in tree.cycles for pair in pairwise(cycle)}
    for link in tree.links:
        parent, child = link.parent, link.child
        if child.tier >= parent.tier and (parent.name, child.name) not in in_cycle:
            yield Finding(
                path=link.path, rule="hypernode-tier-order",
                seen=f"'{parent.name}' has tier {parent.tier} and its child '{child.name}' tier "
                f"{child.tier}, but a parent's tier must be higher; Volcano accepts this and then "
                "silently drops topology constraints",
                remedy=f"give '{parent.name}' at least tier {child.tier + 1}, or '{child.name}' a "
                "lower one",
            )  # fmt: skip


def hypernode_tier_name(tree: Tree) -> Iterator[Finding]:
    """A tier name belongs to one tier; of two, Volcano uses the one that it reads last.

    Pass: tierName rack in tier 1, spine in tier 2.
    Fail: tierName rack in tier 1 and in tier 2.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go HyperNodeTierNameMap.
    """
    tiers: dict[str, int] = {}
    for i, entry in enumerate(tree.entries):
        if entry.tier_name and tiers.setdefault(entry.tier_name, entry.tier) != entry.tier:
            yield Finding(
                path=f"{place_of(i)}.tier_name", rule="hypernode-tier-name",
                seen=f"'{entry.tier_name}' names tier {entry.tier} here and tier "
                f"{tiers[entry.tier_name]} before, but a tier name belongs to one tier; Volcano "
                "picks one of the two at random",
                remedy=f"give tier {entry.tier} another tier_name",
            )  # fmt: skip


def hypernode_leaf_tiers(tree: Tree) -> Iterator[Finding]:
    """All HyperNodes with nodes are of the lowest tier: Volcano only scores their nodes.

    Pass: every node in a rack of tier 1.
    Fail: some nodes in racks of tier 1, others in a spine of tier 2 alone.
    Level: advisory.
    Source: Volcano v1.14 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go
    batchNodeOrderFn.
    """
    first: dict[int, int] = {}
    for i, entry in enumerate(tree.entries):
        if not entry.children:
            first.setdefault(entry.tier, i)
    for tier, i in sorted(first.items())[1:]:
        lowest = min(first)
        yield Finding(
            path=f"{place_of(i)}.tier", rule="hypernode-leaf-tiers", level=Level.ADVISORY,
            seen=f"the leaf '{tree.entries[i].name}' has tier {tier} and the leaf "
            f"'{tree.entries[first[lowest]].name}' tier {lowest}, but Volcano scores only those "
            "nodes that are in a HyperNode of the lowest tier",
            remedy=f"put its nodes into HyperNodes of tier {lowest} below it",
        )  # fmt: skip


def hypernode_node_twice(tree: Tree) -> Iterator[Finding]:
    """A node is in one HyperNode; Volcano counts a node in two for each of them.

    Pass: gpu-1 in rack-1, gpu-2 in rack-2.
    Fail: gpu-1 in rack-1 and in rack-2.
    Level: advisory.
    Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go BuildHyperNodeCache.
    """
    first: dict[str, str] = {}
    for i, entry in enumerate(tree.entries):
        for k, node in enumerate(entry.nodes):
            if node not in first:
                first[node] = entry.name
                continue
            both = f"in '{first[node]}' and in '{entry.name}'"
            where = both if first[node] != entry.name else f"twice in '{entry.name}'"
            yield Finding(
                path=f"{place_of(i)}.nodes[{k}]", rule="hypernode-node-twice", level=Level.ADVISORY,
                seen=f"node '{node}' is {where}, but a node belongs in one place; Volcano "
                "accepts this and counts the node for each HyperNode",
                remedy="remove one of the two",
            )  # fmt: skip


TREE_RULES: tuple[Callable[[Tree], Iterator[Finding]], ...] = (
    hypernode_unknown_child,
    hypernode_cycle,
    hypernode_two_parents,
    hypernode_tier_order,
    hypernode_tier_name,
    hypernode_leaf_tiers,
    hypernode_node_twice,
)
