"""Builds the HyperNodes of a topology, in the order in which they are applied.

Volcano accepts nearly every tree and then ignores what it cannot use, so the whole tree is checked:
each entry here, then all together in tree.py. spec.py reads inventories.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.remedies import remove
from kthena_components.core.topology.names import (
    DISCOVERY_LABEL,
    MEMBER_KINDS,
    check_name,
    check_node_name,
    check_regex,
)
from kthena_components.core.topology.spec import (
    HyperNodeSpec,
    HyperNodeTopologySpec,
    check_inventory,
    expand_inventory,
)
from kthena_components.core.topology.tree import check_tree, place_of


@dataclass(frozen=True, slots=True)
class TopologyPlan:
    """All HyperNodes: leaves first, then tier by tier, so that no parent precedes a child."""

    hyper_nodes: tuple[HyperNodeSpec, ...]

    @property
    def tiers(self) -> dict[int, str | None]:
        """The tiers in ascending order, each with its first name."""
        names: dict[int, str | None] = {}
        for entry in sorted(self.hyper_nodes, key=lambda entry: entry.tier):
            names[entry.tier] = names.get(entry.tier) or entry.tier_name
        return names


def build_topology(spec: HyperNodeTopologySpec) -> TopologyPlan:
    """Sort the HyperNodes of a topology by tier; equal tiers keep the order of the input.

    Raises:
        SpecError: With all mandatory findings, if there are any.
    """
    refusals = [finding for finding in check_topology(spec) if finding.level is Level.MANDATORY]
    if refusals:
        raise SpecError(refusals)
    entries = expand_inventory(spec.inventory) if spec.inventory else spec.hyper_nodes
    # A parent's tier is above its children's, so this order needs no walk of the tree.
    ordered = sorted(entries, key=lambda entry: (bool(entry.children), entry.tier))
    return TopologyPlan(tuple(ordered))


def check_topology(spec: HyperNodeTopologySpec) -> list[Finding]:
    """Report everything that is wrong with a topology."""
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
    alone = [f for i, entry in enumerate(entries) for f in _check_entry(entry, place_of(i))]
    return alone + check_tree(entries)


def _check_entry(entry: HyperNodeSpec, path: str) -> Iterator[Finding]:
    yield from check_name(entry.name, f"{path}.name")
    if DISCOVERY_LABEL in entry.labels:
        yield Finding(
            path=f"{path}.labels", rule="hypernode-discovery-label",
            seen=f"'{DISCOVERY_LABEL}' marks what Volcano's discovery made, and discovery deletes "
            "a HyperNode with this label that it does not find itself",
            remedy=remove("remove the label"),
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
