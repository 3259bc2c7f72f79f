"""Names of HyperNodes and nodes, and the nodes that a HyperNode's selectors find.

Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go GetMembers. Nodes are found by name,
pattern or labels, children only by name.
"""

import re
import warnings
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from kthena_components.core.findings import Finding, Level
from kthena_components.core.naming import NAME_LIMIT, dns_name, is_dns_name
from kthena_components.core.remedies import write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import anchored, regex, trouble_in_go
from kthena_components.core.values.unknown import is_unresolved

Labels = Mapping[str, str]
_BEGINS = regex(r"\^([a-z0-9-]+)(?![a-z0-9*?{-])")
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
    """Return the nodes in a HyperNode and in all below it; cycles end where they begin."""
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
        self._by_value: dict[str, dict[str, list[str]]] = {}
        """The nodes by the values of a label."""

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
        names = self._candidates(wanted) if any(wanted.values()) else ()
        return [name for name in names if matches(wanted, self._nodes[name])]

    def _candidates(self, selector: Mapping[str, Any]) -> Iterable[str]:
        """List the nodes with the first label that a selector states; all if it states none."""
        for key, value in mapping(selector.get("matchLabels")).items():
            if key not in self._by_value:
                found = self._by_value[key] = {}
                for name, labels in self._nodes.items():
                    if key in labels:
                        found.setdefault(labels[key], []).append(name)
            return self._by_value[key].get(value, []) if isinstance(value, str) else []
        return self._nodes

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


def matches(selector: Mapping[str, Any], labels: Mapping[Any, Any]) -> bool:
    """Match a label selector as Kubernetes does: all requirements must hold."""
    plain = mapping(selector.get("matchLabels"))
    if any(labels.get(key) != value for key, value in plain.items()):
        return False
    return all(holds(mapping(item), labels) for item in sequence(selector.get("matchExpressions")))


OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def holds(expression: Mapping[str, Any], labels: Mapping[Any, Any]) -> bool:
    """Evaluate one expression of a label selector; unknown operators never match."""
    value, values = labels.get(str(expression.get("key"))), sequence(expression.get("values"))
    match expression.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
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


# Checks the names of HyperNodes and nodes, and the patterns that find nodes by their names.


DISCOVERY_LABEL = "volcano.sh/network-topology-source"
MEMBER_KINDS = ("nodes", "node_regex", "node_labels", "children")
DNS_1123 = (
    f"a DNS-1123 subdomain (at most {NAME_LIMIT} of a-z, 0-9, '-' and '.', "
    "each part starting and ending with a letter or digit)"
)

# Go's regexp has neither, and Volcano's webhook rejects a pattern that does not compile.
_NOT_IN_GO = regex(r"\(\?<?[=!]|\\[1-9]")


def not_judged(path: str) -> Finding:
    """Report that a value is known too late to be checked."""
    return Finding(
        path=path, seen="not checked, because the value is known only after the deployment",
        rule="hypernode-late-value", level=Level.UNKNOWN,
    )  # fmt: skip


def must_be_known(path: str, use: str) -> Finding:
    """Reject a name that is known too late for the tree."""
    return Finding(
        path=path, seen=f"the value is known only after the deployment, but {use}",
        remedy="write it as plain text", rule="known-when-planned",
    )  # fmt: skip


def check_name(name: str, path: str) -> Iterator[Finding]:
    """Report an invalid name of a HyperNode."""
    if is_unresolved(name):
        yield must_be_known(path, "parents list their children by name")
    elif not is_dns_name(name):
        yield Finding(
            path=path, seen=f"'{name}' is not {DNS_1123}, as the name of a HyperNode must be",
            remedy=write(dns_name(name[:NAME_LIMIT]) or "rack-1"), rule="hypernode-name",
        )  # fmt: skip


def check_node_name(name: str, path: str) -> Iterator[Finding]:
    """Report a name that no Kubernetes node can have."""
    if is_unresolved(name):
        yield not_judged(path)
    elif not is_dns_name(name):
        yield Finding(
            path=path, seen=f"'{name}' is not {DNS_1123}, so no node has this name",
            remedy="write the name that 'kubectl get nodes' shows", rule="hypernode-node-name",
        )  # fmt: skip


def check_regex(pattern: str, path: str) -> Iterator[Finding]:
    """Report a node pattern that Volcano reads differently than it looks, or rejects."""
    level = Level.MANDATORY
    if is_unresolved(pattern):
        yield not_judged(path)
        return
    trouble = trouble_in_go(pattern)
    if trouble and (alien := _NOT_IN_GO.search(pattern)):
        seen = f"'{pattern}' contains '{alien[0]}': Go has no look-around and no back-references"
        remedy = "write the pattern without it, or list the nodes"
    elif trouble:
        seen = f"Go cannot read '{pattern}' ({trouble}), and Volcano's webhook rejects it"
        remedy = "rewrite the pattern, or list the nodes"
    elif whole := anchored(pattern):
        seen = f"'{pattern}' does not reach from ^ to $ in every alternative, but Volcano finds "
        seen += "a pattern anywhere in a node's name"
        remedy = write(whole, f"write '{whole}', with .* where any string may be")
    elif trouble := _trouble_in_python(pattern):
        level = Level.ADVISORY
        seen = f"Go reads '{pattern}' and Python does not ({trouble}), so its nodes are not checked"
        remedy = "write it so that both can read it, or list the nodes"
    else:
        return
    yield Finding(path=path, seen=seen, remedy=remedy, rule="hypernode-node-regex", level=level)


def _trouble_in_python(pattern: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python warns about [[:alpha:]], which is valid in Go
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    return ""
