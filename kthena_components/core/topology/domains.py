"""Finds the nodes of HyperNodes, by every kind of selector.

Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go GetMembers. Nodes are found by name,
pattern or labels, children only by name.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from kthena_components.core.values.read import mapping, sequence

Labels = Mapping[str, str]
_BEGINS = re.compile(r"\^([a-z0-9-]+)(?![a-z0-9*?{-])")
"""The literal prefix of every name that a pattern matches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """A HyperNode, and all nodes in it and below it."""

    name: str
    tier: int
    tier_name: str | None
    nodes: frozenset[str]

    def __str__(self) -> str:
        """Write its name and tier."""
        return f"{self.name} (tier {self.tier})"


def read_domains(
    hyper_nodes: Iterable[Mapping[str, Any]], nodes: Mapping[str, Labels]
) -> list[Domain]:
    """Find the nodes of each HyperNode, lowest tiers first.

    Args:
        hyper_nodes: As the cluster lists them; HyperNodes without a tier are skipped.
        nodes: The labels of every node, by name.
    """
    specs = {_name(body): mapping(body.get("spec")) for body in hyper_nodes}
    chosen = _Chosen(nodes)
    found = [
        Domain(name=name, tier=tier, tier_name=_text(spec.get("tierName")),
               nodes=_inside(name, specs, chosen))
        for name, spec in specs.items()
        if isinstance(tier := spec.get("tier"), int)
    ]  # fmt: skip
    return sorted(found, key=lambda domain: (domain.tier, domain.name))


def lowest(domains: Sequence[Domain], nodes: AbstractSet[str]) -> Domain | None:
    """Return the lowest HyperNode that contains all of some nodes, the smallest of its tier."""
    holding = [domain for domain in domains if nodes and nodes <= domain.nodes]
    return min(holding, key=lambda one: (one.tier, len(one.nodes), one.name), default=None)


def _inside(name: str, specs: Mapping[str, Any], chosen: "_Chosen") -> frozenset[str]:
    found: set[str] = set()
    left, seen = [name], set[str]()
    while left:
        at = left.pop()
        if at in seen or at not in specs:
            continue
        seen.add(at)
        for item in sequence(specs[at].get("members")):
            member = mapping(item)
            selector = mapping(member.get("selector"))
            if member.get("type") == "HyperNode":
                left.append(str(mapping(selector.get("exactMatch")).get("name")))
            elif member.get("type") == "Node":
                found.update(chosen.by(selector))
    return frozenset(found)


class _Chosen:
    """Finds the nodes that selectors match."""

    def __init__(self, nodes: Mapping[str, Labels]) -> None:
        """Sort the node names, so that names with a common prefix are adjacent."""
        self._nodes = nodes
        self._names = sorted(nodes)
        self._by_pattern: dict[str, list[str]] = {}

    def by(self, selector: Mapping[str, Any]) -> Iterable[str]:
        """List the nodes that one selector matches."""
        if "exactMatch" in selector:
            name = str(mapping(selector["exactMatch"]).get("name"))
            return [name] if name in self._nodes else []
        if "regexMatch" in selector:
            pattern = str(mapping(selector["regexMatch"]).get("pattern", ""))
            if pattern not in self._by_pattern:
                self._by_pattern[pattern] = self._by(pattern)
            return self._by_pattern[pattern]
        wanted = mapping(selector.get("labelMatch"))
        # An empty selector matches everything elsewhere in Kubernetes, but no node here.
        stated = any(wanted.values())
        nodes = self._nodes.items() if stated else ()
        return [name for name, labels in nodes if _matches(wanted, labels)]

    def _by(self, pattern: str) -> list[str]:
        try:
            found = re.compile(pattern)
        except re.error:  # Volcano's patterns are Go's; an invalid one matches nothing there, too
            return []
        begins = _BEGINS.match(pattern) if "|" not in pattern else None
        first = begins[1] if begins else ""
        low = bisect_left(self._names, first)
        high = bisect_left(self._names, f"{first}\U0010ffff") if first else len(self._names)
        return [name for name in self._names[low:high] if found.search(name)]


def _matches(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Match a label selector as Kubernetes does: all requirements must hold."""
    plain = mapping(selector.get("matchLabels"))
    if any(labels.get(key) != value for key, value in plain.items()):
        return False
    return all(holds(mapping(item), labels) for item in sequence(selector.get("matchExpressions")))


def holds(expression: Mapping[str, Any], labels: Labels) -> bool:
    """Evaluate one expression of a label selector; unknown operators never match."""
    value, values = labels.get(str(expression.get("key"))), sequence(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False


def _name(body: Mapping[str, Any]) -> str:
    return str(mapping(body.get("metadata")).get("name", ""))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
