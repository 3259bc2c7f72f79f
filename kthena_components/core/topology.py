"""From a HyperNode topology to the HyperNodes in the order in which they are applied.

Volcano accepts nearly every tree and then ignores what it cannot use, so the whole tree is
judged here: each entry alone, then all together. Inventories come in through topology_spec.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from kthena_components.core.findings import Finding, Level, SpecError, nearest
from kthena_components.core.known import is_late
from kthena_components.core.topology_spec import (
    HyperNodeSpec,
    HyperNodeTopologySpec,
    check_inventory,
    check_name,
    check_node_name,
    check_regex,
    expand_inventory,
    must_be_known,
)

DISCOVERY_LABEL = "volcano.sh/network-topology-source"
ENOUGH = 20  # near names and cycles take long to find; more of them have the same cause
MEMBER_KINDS = ("nodes", "node_regex", "node_labels", "children")


@dataclass(frozen=True, slots=True)
class TopologyPlan:
    """All HyperNodes: leaves first, then tier by tier, so that no parent precedes a child."""

    hyper_nodes: tuple[HyperNodeSpec, ...]

    @property
    def tiers(self) -> dict[int, str | None]:
        """The tiers in ascending order, each with the first name that it was given."""
        names: dict[int, str | None] = {}
        for entry in sorted(self.hyper_nodes, key=lambda entry: entry.tier):
            names[entry.tier] = names.get(entry.tier) or entry.tier_name
        return names

    @property
    def lowest_tier(self) -> int:
        """The closest tier."""
        return min(self.tiers)

    @property
    def highest_tier(self) -> int:
        """The farthest tier; Volcano's virtual root over all nodes is one above it."""
        return max(self.tiers)

    def tier_of(self, tier_name: str) -> int | None:
        """Resolve a tier name as the scheduler does, or None when no HyperNode has it."""
        named = (entry.tier for entry in self.hyper_nodes if entry.tier_name == tier_name)
        return next(named, None)


def build_topology(spec: HyperNodeTopologySpec) -> TopologyPlan:
    """Order the HyperNodes of a topology; those of equal rank stay in the order of the input.

    Raises:
        SpecError: with every mandatory finding, when there is one.
    """
    refusals = [finding for finding in check_topology(spec) if finding.level is Level.MANDATORY]
    if refusals:
        raise SpecError(refusals)
    entries = expand_inventory(spec.inventory) if spec.inventory else spec.hyper_nodes
    # A parent's tier is above its children's, so this order needs no walk of the tree.
    ordered = sorted(entries, key=lambda entry: (bool(entry.children), entry.tier))
    return TopologyPlan(tuple(ordered))


def check_topology(spec: HyperNodeTopologySpec) -> list[Finding]:
    """Say everything that is wrong with a topology."""
    if bool(spec.hyper_nodes) == bool(spec.inventory):
        both = "are both given" if spec.inventory else "are both empty"
        return [
            Finding(
                path="", seen=f"hyper_nodes and inventory {both}, but a topology has one of them",
                remedy="list HyperNodes in hyper_nodes, or nodes and tiers in inventory",
                rule="hypernode-source",
            )
        ]  # fmt: skip
    if spec.inventory:
        return check_inventory(spec.inventory)
    entries = spec.hyper_nodes
    alone = [found for i, entry in enumerate(entries) for found in _check_entry(entry, _at(i))]
    return alone + check_tree(entries)


def check_tree(entries: Sequence[HyperNodeSpec]) -> list[Finding]:
    """Say what is wrong between HyperNodes, whatever each says for itself."""
    links = list(_links(entries))
    cycles = _cycles(links)
    return [
        *_check_names_unique(entries),
        *_check_children_exist(entries),
        *_check_cycles(links, cycles),
        *_check_one_parent(links),
        *_check_tier_order(links, cycles),
        *_check_tier_names(entries),
        *_check_leaf_tiers(entries),
        *_check_nodes_once(entries),
    ]


@dataclass(frozen=True, slots=True)
class _Link:
    """A child that exists, and the place that lists it."""

    path: str
    parent: HyperNodeSpec
    child: HyperNodeSpec


def _at(index: int) -> str:
    return f"hyper_nodes[{index}]"


def _links(entries: Sequence[HyperNodeSpec]) -> Iterator[_Link]:
    by_name = {entry.name: entry for entry in entries}
    for i, parent in enumerate(entries):
        for k, name in enumerate(parent.children):
            if name in by_name:
                yield _Link(f"{_at(i)}.children[{k}]", parent, by_name[name])


def _check_entry(entry: HyperNodeSpec, path: str) -> Iterator[Finding]:
    yield from check_name(entry.name, f"{path}.name")
    if DISCOVERY_LABEL in entry.labels:
        yield Finding(
            path=f"{path}.labels", rule="hypernode-discovery-label",
            seen=f"'{DISCOVERY_LABEL}' marks what Volcano's discovery made, and discovery deletes "
            "a HyperNode with this label that it does not find itself",
            remedy="remove the label",
        )  # fmt: skip
    yield from _check_kind(entry, path)
    if entry.node_regex:
        yield from check_regex(entry.node_regex, f"{path}.node_regex")
    for index, node in enumerate(entry.nodes):
        yield from check_node_name(node, f"{path}.nodes[{index}]")


def _check_kind(entry: HyperNodeSpec, path: str) -> Iterator[Finding]:
    kinds = [kind for kind in MEMBER_KINDS if getattr(entry, kind)]
    if len(kinds) != 1:
        yield Finding(
            path=path, rule="hypernode-members",
            seen=f"'{entry.name}' has {' and '.join(kinds) or 'no members'}, but a HyperNode has "
            "members of exactly one kind",
            remedy=f"keep one of {' and '.join(kinds)}" if kinds
            else f"give one of {', '.join(MEMBER_KINDS)}",
        )  # fmt: skip


def _check_names_unique(entries: Sequence[HyperNodeSpec]) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for i, entry in enumerate(entries):
        if first.setdefault(entry.name, i) != i:
            yield Finding(
                path=f"{_at(i)}.name", rule="hypernode-duplicate-name",
                seen=f"'{entry.name}' is already the name of {_at(first[entry.name])}, but "
                "HyperNodes belong to the whole cluster, and each has a name of its own",
                remedy="give one of the two another name",
            )  # fmt: skip


def _check_children_exist(entries: Sequence[HyperNodeSpec]) -> Iterator[Finding]:
    names = {entry.name for entry in entries}
    unknown = 0
    for i, entry in enumerate(entries):
        for k, child in enumerate(entry.children):
            path = f"{_at(i)}.children[{k}]"
            if is_late(child):
                yield must_be_known(path, "children are found by name")
            if child in names or is_late(child):
                continue
            unknown += 1
            close = nearest(child, sorted(names - {entry.name})) if unknown <= ENOUGH else None
            yield Finding(
                path=path, rule="hypernode-unknown-child",
                seen=f"no entry is named '{child}', but Volcano ignores a member that does not "
                "exist",
                remedy=f"write '{close}'" if close
                else f"add a HyperNode '{child}', or list it in nodes if it is a node",
            )  # fmt: skip


def _cycles(links: Sequence[_Link]) -> list[list[str]]:
    """Find a cycle, take away the edge that closes it, and look again.

    Each cycle goes from its highest tier down, so that the edge that goes up is the last.
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
            # graphlib goes from child to parent, and names the first one twice.
            ring: list[str] = error.args[1][:0:-1]
            top = ring.index(max(ring, key=lambda name: tiers[name]))
            cycles.append([*ring[top:], *ring[: top + 1]])
            del graph[cycles[-1][-2]][cycles[-1][-1]]
        else:
            break
    return cycles


def _check_cycles(links: Sequence[_Link], cycles: list[list[str]]) -> Iterator[Finding]:
    places = {(link.parent.name, link.child.name): link.path for link in links}
    for cycle in cycles:
        low, top = cycle[-2:]
        yield Finding(
            path=places[low, top], rule="hypernode-cycle",
            seen=f"the children go in a cycle, {' -> '.join(cycle)}, but a HyperNode cannot be in "
            "itself, and with a cycle Volcano places no group that has a network topology",
            remedy=f"remove '{top}' from the children of '{low}'",
        )  # fmt: skip


def _check_one_parent(links: Sequence[_Link]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for link in links:
        child, other = link.child.name, link.parent.name
        one = first.setdefault(child, other)
        if one != other:
            yield Finding(
                path=link.path, rule="hypernode-two-parents",
                seen=f"'{child}' is a child of '{one}' and of '{other}', but a HyperNode has one "
                "parent; with two, Volcano places no group that has a network topology",
                remedy=f"remove '{child}' from the children of '{one}' or of '{other}'",
            )  # fmt: skip


def _check_tier_order(links: Sequence[_Link], cycles: list[list[str]]) -> Iterator[Finding]:
    in_cycle = {pair for cycle in cycles for pair in pairwise(cycle)}
    for link in links:
        parent, child = link.parent, link.child
        if child.tier >= parent.tier and (parent.name, child.name) not in in_cycle:
            yield Finding(
                path=link.path, rule="hypernode-tier-order",
                seen=f"'{parent.name}' has tier {parent.tier} and its child '{child.name}' tier "
                f"{child.tier}, but a parent's tier is the higher one; Volcano accepts this and "
                "then drops topology constraints without a word",
                remedy=f"give '{parent.name}' at least tier {child.tier + 1}, or '{child.name}' a "
                "lower one",
            )  # fmt: skip


def _check_tier_names(entries: Sequence[HyperNodeSpec]) -> Iterator[Finding]:
    tiers: dict[str, int] = {}
    for i, entry in enumerate(entries):
        if entry.tier_name and tiers.setdefault(entry.tier_name, entry.tier) != entry.tier:
            yield Finding(
                path=f"{_at(i)}.tier_name", rule="hypernode-tier-name",
                seen=f"'{entry.tier_name}' names tier {entry.tier} here and tier "
                f"{tiers[entry.tier_name]} before, but a tier name stands for one tier; Volcano "
                "picks one of the two at random",
                remedy=f"give tier {entry.tier} another tier_name",
            )  # fmt: skip


def _check_leaf_tiers(entries: Sequence[HyperNodeSpec]) -> Iterator[Finding]:
    first: dict[int, int] = {}
    for i, entry in enumerate(entries):
        if not entry.children:
            first.setdefault(entry.tier, i)
    for tier, i in sorted(first.items())[1:]:
        lowest = min(first)
        yield Finding(
            path=f"{_at(i)}.tier", rule="hypernode-leaf-tiers", level=Level.ADVISORY,
            seen=f"the leaf '{entries[i].name}' has tier {tier} and the leaf "
            f"'{entries[first[lowest]].name}' tier {lowest}, but Volcano scores only those nodes "
            "that are in a HyperNode of the lowest tier",
            remedy=f"put its nodes into HyperNodes of tier {lowest} below it",
        )  # fmt: skip


def _check_nodes_once(entries: Sequence[HyperNodeSpec]) -> Iterator[Finding]:
    first: dict[str, str] = {}
    for i, entry in enumerate(entries):
        for k, node in enumerate(entry.nodes):
            if node not in first:
                first[node] = entry.name
                continue
            both = f"in '{first[node]}' and in '{entry.name}'"
            where = both if first[node] != entry.name else f"twice in '{entry.name}'"
            yield Finding(
                path=f"{_at(i)}.nodes[{k}]", rule="hypernode-node-twice", level=Level.ADVISORY,
                seen=f"node '{node}' is {where}, but a node is in one place; Volcano accepts this "
                "and counts the node for each HyperNode",
                remedy="remove one of the two",
            )  # fmt: skip
