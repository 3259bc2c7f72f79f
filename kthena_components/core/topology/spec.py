"""The input schema of a HyperNode topology and its inventory, and the HyperNodes of a topology."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from kthena_components.core.findings import Finding, Level, SpecError
from kthena_components.core.naming import NAME_LIMIT, dns_name, is_dns_name
from kthena_components.core.remedies import remove
from kthena_components.core.spec.fields import Count, LabelValue, Spec, Text
from kthena_components.core.topology.domains import (
    DISCOVERY_LABEL,
    DNS_1123,
    MEMBER_KINDS,
    check_name,
    check_node_name,
    check_regex,
    must_be_known,
)
from kthena_components.core.topology.hypernode_tree import check_tree, place_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import is_unresolved

Word = Annotated[str, Field(min_length=1, max_length=NAME_LIMIT)]


class HyperNodeSpec(Spec):
    """One network domain; exactly one of the last four fields states its members.

    A parent lists the name in a member's exactMatch, so two rules limit it to a DNS-1123 subdomain
    of at most 253 characters: the limit of object names, and the limit of the selector.
    """

    name: str
    tier: Count
    """Lower is closer. The lowest is usually 1."""
    tier_name: Word | None = None
    labels: dict[str, LabelValue] = Field(default_factory=dict)
    nodes: list[str] = Field(default_factory=list)
    node_regex: Text | None = None
    node_labels: dict[str, LabelValue] = Field(default_factory=dict)
    children: list[str] = Field(default_factory=list)


class InventoryNodeSpec(Spec):
    """One node, with at least the labels that the tiers name."""

    name: str
    labels: dict[str, str] = Field(default_factory=dict)


class InventoryTierSpec(Spec):
    """One tier: each value of a node label is a HyperNode."""

    label: Word
    tier_name: Word | None = None

    @property
    def title(self) -> str:
        """The tier's name: as given, or the part of the label key after `/`."""
        return self.tier_name or self.label.rpartition("/")[2] or self.label

    def domain(self, value: str) -> str:
        """Name the HyperNode of a label value."""
        return dns_name(f"{self.title}-{value}")


class InventorySpec(Spec):
    """Nodes, and the labels from the closest domain to the farthest, which become tiers 1 to n."""

    nodes: Annotated[list[InventoryNodeSpec], Field(min_length=1)]
    tiers: Annotated[list[InventoryTierSpec], Field(min_length=1)]


class HyperNodeTopologySpec(Spec):
    """The network of a cluster, from exactly one of two sources."""

    hyper_nodes: list[HyperNodeSpec] = Field(default_factory=list)
    inventory: InventorySpec | None = None


def check_inventory(inventory: InventorySpec) -> list[Finding]:
    """Report everything that keeps an inventory from being a tree."""
    findings = [
        *_check_tiers(inventory),
        *_check_nodes(inventory),
        *_check_labels_present(inventory),
    ]
    if any(finding.level is Level.MANDATORY for finding in findings):
        return findings  # names and parents come from labels that may be missing
    return [*findings, *_check_one_parent(inventory), *_check_names_apart(inventory)]


def expand_inventory(inventory: InventorySpec) -> list[HyperNodeSpec]:
    """Create the HyperNodes of an inventory without findings, tier by tier."""
    levels: list[dict[str, dict[str, None]]] = [{} for _ in inventory.tiers]
    for node in inventory.nodes:
        domains = [tier.domain(node.labels[tier.label]) for tier in inventory.tiers]
        for level, (member, domain) in zip(levels, pairwise([node.name, *domains]), strict=True):
            level.setdefault(domain, {})[member] = None
    return [
        HyperNodeSpec(
            name=domain,
            tier=index + 1,
            tier_name=tier.title,
            nodes=[] if index else list(members),
            children=list(members) if index else [],
        )
        for index, (tier, level) in enumerate(zip(inventory.tiers, levels, strict=True))
        for domain, members in level.items()
    ]


def _check_tiers(inventory: InventorySpec) -> Iterator[Finding]:
    """Report tiers of an inventory with the same title, or a label that is not known yet."""
    first: dict[str, int] = {}
    for t, tier in enumerate(inventory.tiers):
        path = f"inventory.tiers[{t}]"
        if is_unresolved(tier.label) or is_unresolved(tier.title):
            yield must_be_known(path, "HyperNodes are named after it")
        elif first.setdefault(tier.title, t) != t:
            yield Finding(
                path=path, rule="hypernode-tier-name",
                seen=f"'{tier.title}' is already the name of tier {first[tier.title] + 1}, but a "
                "tier name belongs to one tier",
                remedy=f"give tier {t + 1} its own tier_name, or remove it",
            )  # fmt: skip


def _check_nodes(inventory: InventorySpec) -> Iterator[Finding]:
    """Check the names of nodes, and report a node that is listed twice."""
    first: dict[str, int] = {}
    for i, node in enumerate(inventory.nodes):
        path = f"inventory.nodes[{i}].name"
        yield from check_node_name(node.name, path)
        if first.setdefault(node.name, i) != i:
            yield Finding(
                path=path, rule="inventory-node-twice",
                seen=f"'{node.name}' is already the name of inventory.nodes[{first[node.name]}], "
                "but a node has one place",
                remedy="remove one of the two",
            )  # fmt: skip


def _check_labels_present(inventory: InventorySpec) -> Iterator[Finding]:
    """Report nodes without the label of a tier, which decides their place in the tree."""
    for i, node in enumerate(inventory.nodes):
        for tier in inventory.tiers:
            value = node.labels.get(tier.label)
            if is_unresolved(value):
                yield must_be_known(f"inventory.nodes[{i}].labels", "it places the node")
            elif not value:
                yield Finding(
                    path=f"inventory.nodes[{i}].labels", rule="inventory-label-missing",
                    seen=f"node '{node.name}' has no value for the label '{tier.label}', but it "
                    f"decides the node's place in the tier '{tier.title}'",
                    remedy="add the label, or leave the node out of the inventory",
                )  # fmt: skip


def _check_one_parent(inventory: InventorySpec) -> Iterator[Finding]:
    """Report a domain whose nodes are in two domains of the tier above."""
    for low, high in pairwise(inventory.tiers):
        parents: dict[str, dict[str, str]] = {}
        for i, node in enumerate(inventory.nodes):
            value, parent = node.labels[low.label], node.labels[high.label]
            examples = parents.setdefault(value, {parent: node.name})
            if parent in examples:
                continue
            examples[parent] = node.name
            other, example = next(iter(examples.items()))
            yield Finding(
                path=f"inventory.nodes[{i}].labels", rule="hypernode-two-parents",
                seen=f"{low.title} '{value}' is in {high.title} '{other}' by node '{example}' and "
                f"in {high.title} '{parent}' by node '{node.name}', but a domain has one parent",
                remedy=f"make the values of '{low.label}' unique, such as '{other}-{value}' and "
                f"'{parent}-{value}'",
            )  # fmt: skip


def _check_names_apart(inventory: InventorySpec) -> Iterator[Finding]:
    """Check the HyperNode names that label values give: DNS names, and each once."""
    sources: dict[str, str] = {}
    for t, tier in enumerate(inventory.tiers):
        for value in dict.fromkeys(node.labels[tier.label] for node in inventory.nodes):
            name, source = tier.domain(value), f"'{value}' of '{tier.label}'"
            if not is_dns_name(name):
                seen = f"{source} gives the name '{name}', which is not {DNS_1123}"
                remedy = "change the value or the tier_name"
            elif name in sources:
                seen = f"{sources[name]} and {source} both give the name '{name}', but each "
                seen += "HyperNode needs a unique name"
                remedy = "change one of the values, or give the tiers other tier names"
            else:
                sources[name] = source
                continue
            yield Finding(
                path=f"inventory.tiers[{t}]", seen=seen, remedy=remedy, rule="inventory-name"
            )


# Builds the HyperNodes of a topology, in the order in which they are applied.
#
# Volcano accepts nearly every tree and then ignores what it cannot use, so the whole tree is
# checked: each entry here, then all together in hypernode_tree.py.


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
    """Check one HyperNode: its name, labels, and members of one kind."""
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
    """Check that the members of a HyperNode are of exactly one kind."""
    kinds = [kind for kind in MEMBER_KINDS if getattr(entry, kind)]
    if len(kinds) != 1:
        yield Finding(
            path=path, rule="hypernode-members",
            seen=f"'{entry.name}' has {' and '.join(kinds) or 'no members'}, but a HyperNode has "
            "members of exactly one kind",
            remedy=f"keep one of {' and '.join(kinds)}" if kinds
            else f"give one of {', '.join(MEMBER_KINDS)}",
        )  # fmt: skip
