"""The HyperNodes of a stack as one tree, and the network topologies that refer to it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kthena_components.core.checks.hypernode_reading import read_hyper_node
from kthena_components.core.checks.kthena_reading import LATE, not_checked, show
from kthena_components.core.checks.stack_pods import Entry
from kthena_components.core.checks.stack_reading import Stack
from kthena_components.core.checks.volcano_reading import (
    HYPER_NODE,
    JOB,
    MODEL_SERVING,
    POD_GROUP,
    Topology,
    items,
    topologies,
)
from kthena_components.core.findings import Finding, Level, nearest
from kthena_components.core.known import Unknown, is_late
from kthena_components.core.topology_spec import HyperNodeSpec
from kthena_components.core.topology_tree import check_tree

_PLACE = re.compile(r"hyper_nodes\[([0-9]+)\]\.([a-z_]+)(?:\[([0-9]+)\])?")
_FIELDS = {"name": "metadata.name", "tier": "spec.tier", "tier_name": "spec.tierName"}
_KINDS = {"children": "HyperNode", "nodes": "Node"}
_ELSEWHERE = frozenset({"hypernode-unknown-child", "known-when-planned"})


@dataclass(frozen=True, slots=True)
class _Tree:
    """The HyperNodes that could be read, each with its object."""

    owners: list[Entry]
    nodes: list[HyperNodeSpec]
    gap: Unknown | None
    """Why some of them could not be read."""

    @property
    def tiers(self) -> list[int]:
        """List the tiers, each as often as it is used."""
        return [node.tier for node in self.nodes]


def _read(stack: Stack) -> _Tree:
    owners, nodes, gap = list[Entry](), list[HyperNodeSpec](), None
    seen: set[str] = set()
    for entry in stack.of(HYPER_NODE):
        node, _ = read_hyper_node(entry.manifest)
        if node is None or is_late(node.name) or is_late(node.tier_name):
            gap = Unknown("a HyperNode of this stack is not known yet or has no tier")
        elif node.name not in seen:  # which of two counts, nobody knows: object-twice tells
            seen.add(node.name)
            owners.append(entry)
            nodes.append(node)
    return _Tree(owners, nodes, gap)


def hypernode_tree(stack: Stack) -> Iterator[Finding]:
    """The HyperNodes of a stack make a tree: one parent each, no cycle, tiers that rise.

    The rules are those of core/topology_tree.py.
    """
    tree = _read(stack)
    for finding in check_tree(tree.nodes):
        match = _PLACE.match(finding.path)
        if match is None:
            yield finding
            continue
        entry, path = tree.owners[int(match[1])], _place(tree, match)
        if finding.rule in _ELSEWHERE:
            because = (
                LATE
                if finding.rule == "known-when-planned"
                else Unknown(
                    "the HyperNode that it names is not in this stack, and Volcano ignores a name "
                    "that none has"
                )
            )
            yield not_checked(entry.at(path), because, "hypernode-unknown-child")
        else:
            yield replace(finding, path=entry.at(path))


def _place(tree: _Tree, match: re.Match[str]) -> str:
    """Find in the manifest what check_tree calls `hyper_nodes[0].children[1]`."""
    index, part, number = int(match[1]), match[2], match[3]
    kind = _KINDS.get(part)
    if kind is None or number is None:
        return _FIELDS.get(part, "spec.members")
    wanted = getattr(tree.nodes[index], part)[int(number)]
    same = getattr(tree.nodes[index], part)[: int(number)].count(wanted)
    for i, member in enumerate(items(tree.owners[index].spec.get("members"))):
        match member:
            case {"type": str(of), "selector": {"exactMatch": {"name": str(name)}}} if (
                of == kind and name == wanted
            ):
                if not same:
                    return f"spec.members[{i}].selector.exactMatch.name"
                same -= 1
    return "spec.members"


def topology_tier_exists(stack: Stack) -> Iterator[Finding]:
    """The tier that a hard topology names is a tier of the HyperNodes in the stack.

    A number above the highest tier reaches Volcano's virtual root over all nodes, and a name that
    no HyperNode has is dropped: the pods are then placed anywhere. Below the lowest tier there is
    nothing, and they are never placed. Without HyperNodes in the stack nothing is compared.

    Pass: highestTierAllowed 2, HyperNodes of the tiers 1 and 2.
    Fail: highestTierAllowed 3, or highestTierName spine where only rack is a tier's name.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go; run on 1.14.1.
    """
    tree = _read(stack)
    if not stack.of(HYPER_NODE):
        return
    for kind in (POD_GROUP, JOB, MODEL_SERVING):
        for entry in stack.of(kind):
            for topology in topologies(entry.manifest):
                if topology.mode != "soft":
                    found = _judge(topology, tree)
                    yield from (f.under(entry.path) for f in found)


def _judge(topology: Topology, tree: _Tree) -> Iterator[Finding]:
    tier, name, rule = topology.tier, topology.tier_name, "topology-tier-exists"
    if isinstance(topology.mode, Unknown):
        yield not_checked(topology.path, topology.mode, rule)
    elif tier is not None:
        path = f"{topology.path}.highestTierAllowed"
        if isinstance(tier, Unknown):
            yield not_checked(path, tier, rule)
        else:
            yield from _judge_number(tier, path, tree)
    elif name is not None:
        path = f"{topology.path}.highestTierName"
        if isinstance(name, Unknown):
            yield not_checked(path, name, rule)
        else:
            yield from _judge_name(name, path, tree)


def _judge_number(tier: int, path: str, tree: _Tree) -> Iterator[Finding]:
    rule, lowest, top = (
        "topology-tier-exists",
        min(tree.tiers, default=0),
        max(tree.tiers, default=0),
    )
    if lowest <= tier <= top and tree.tiers:
        return
    if tree.gap or not tree.tiers:
        yield not_checked(path, tree.gap or LATE, rule)
    elif tier > top:
        yield Finding(
            path=path,
            seen=f"is {tier}, but the highest tier of the HyperNodes in this stack is {top}; above "
            "it Volcano takes the whole cluster, so the constraint is void",
            remedy=f"write at most {top}",
            rule=rule,
        )
    elif tier > 0:  # of 0, topology-cap-reachable speaks
        yield Finding(
            path=path,
            seen=f"is {tier}, but the lowest tier of the HyperNodes in this stack is {lowest}, so "
            "Volcano never places these pods",
            remedy=f"write at least {lowest}",
            rule=rule,
        )


def _judge_name(name: str, path: str, tree: _Tree) -> Iterator[Finding]:
    names = {node.tier_name for node in tree.nodes if node.tier_name}
    if name in names:
        return
    if tree.gap:
        yield not_checked(path, tree.gap, "topology-tier-exists")
        return
    close = nearest(name[:253], sorted(names)[:100])
    listed = ", ".join(sorted(names)[:10]) or "none"
    yield Finding(
        path=path,
        seen=f"is {show(name)}, but no HyperNode in this stack has that tierName, and Volcano then "
        "drops the whole constraint",
        remedy=f"write '{close}'" if close else f"known: {listed}",
        rule="topology-tier-exists",
        level=Level.MANDATORY,
    )
