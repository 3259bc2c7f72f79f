"""Checks the HyperNodes of a cluster as one tree, and the topologies that refer to it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from kthena_components.core.findings import Finding, Level, nearest, not_checked, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import HYPER_NODE, JOB, MODEL_SERVING, POD_GROUP, Object
from kthena_components.core.remedies import at_least, at_most, write
from kthena_components.core.topology.hypernode_tree import check_tree
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    NOT_YET_KNOWN,
    first_unknown,
    inside,
    require_known,
    sequence,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown, is_unresolved, known
from kthena_components.systems.volcano.view import Topology, read_hyper_node, topologies

if TYPE_CHECKING:  # most files that are checked have no HyperNode
    from kthena_components.core.topology.spec import HyperNodeSpec

_PLACE = regex(r"hyper_nodes\[([0-9]+)\]\.([a-z_]+)(?:\[([0-9]+)\])?")
_FIELDS = {"name": "metadata.name", "tier": "spec.tier", "tier_name": "spec.tierName"}
_KINDS = {"children": "HyperNode", "nodes": "Node"}
_ELSEWHERE = frozenset({"hypernode-unknown-child", "known-when-planned"})


@dataclass(frozen=True, slots=True)
class _Tree:
    """The readable HyperNodes, each with its object."""

    owners: list[Object]
    nodes: list["HyperNodeSpec"]
    gap: Unknown | None
    """Why some of them could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tiers:
    """The tiers of a tree, looked up once for all topologies."""

    gap: Unknown | None
    lowest: int
    top: int
    names: Mapping[str, None]
    """In alphabetical order."""


def _tiers(tree: _Tree) -> _Tiers:
    tiers = [node.tier for node in tree.nodes]
    return _Tiers(
        gap=tree.gap or (None if tiers else NOT_YET_KNOWN),
        lowest=min(tiers, default=0),
        top=max(tiers, default=-1),
        names=dict.fromkeys(sorted({node.tier_name for node in tree.nodes if node.tier_name})),
    )


def _read(cluster: ClusterObjects) -> _Tree:
    """Read the HyperNodes as one tree; it has a gap if any of them is not known."""
    owners, nodes, gap = list[Object](), list["HyperNodeSpec"](), None
    seen: set[str] = set()
    for entry in cluster.of(HYPER_NODE):
        node, _ = read_hyper_node(entry.body)
        late = node is None or is_unresolved(node.name) or is_unresolved(node.tier_name)
        if node is None or late or _hidden_members(entry.spec.get("members")):
            gap = Unknown("one of these HyperNodes is not known yet or has no tier")
        elif node.name not in seen:  # it is unknown which of two applies: object-twice reports them
            seen.add(node.name)
            owners.append(entry)
            nodes.append(node)
    return _Tree(owners, nodes, gap)


def _hidden_members(listed: object) -> Unknown | None:
    """Explain why members may be missing in what was read; None if only their names are unknown."""
    for member in sequence(listed):
        selector = inside(member, "selector")
        if gap := first_unknown(member, inside(member, "type")) or unknown_inside(selector):
            return gap
    return first_unknown(listed)


def hypernode_tree(cluster: ClusterObjects) -> Iterator[Finding]:
    """The HyperNodes of a stack form a tree: one parent each, no cycle, rising tiers.

    The rules are those of core/topology/hypernode_tree.py.
    """
    if not cluster.of(HYPER_NODE):
        return
    tree, places = _read(cluster), dict[tuple[int, str], list[str]]()
    for finding in check_tree(tree.nodes):
        match = _PLACE.match(finding.path)
        if match is None:
            yield finding
            continue
        entry, path = tree.owners[int(match[1])], _place(tree, match, places)
        if finding.rule in _ELSEWHERE:
            because = (
                NOT_YET_KNOWN
                if finding.rule == "known-when-planned"
                else Unknown(
                    "the HyperNode that it names is not here, and Volcano ignores missing "
                    "HyperNodes"
                )
            )
            yield not_checked(entry.at(path), because, "hypernode-unknown-child")
        else:
            yield replace(finding, path=entry.at(path))


def _place(tree: _Tree, match: re.Match[str], places: dict[tuple[int, str], list[str]]) -> str:
    """Find the path in the manifest of check_tree's path `hyper_nodes[0].children[1]`."""
    index, part, number = int(match[1]), match[2], match[3]
    kind = _KINDS.get(part)
    if kind is None or number is None:
        return _FIELDS.get(part, "spec.members")
    if (index, part) not in places:
        names = getattr(tree.nodes[index], part)
        places[index, part] = list(_places(names, kind, tree.owners[index]))
    return places[index, part][int(number)]


def _places(names: list[str], kind: str, owner: Object) -> Iterator[str]:
    """Find the path of each name in an object's lists; the second of two equal names is last."""
    found: dict[str, list[int]] = {}
    for i, member in enumerate(sequence(owner.spec.get("members"))):
        match member:
            case {"type": str(of), "selector": {"exactMatch": {"name": str(name)}}} if of == kind:
                found.setdefault(name, []).append(i)
    left = {name: iter(numbers) for name, numbers in found.items()}
    for name in names:
        number = next(left.get(name, iter(())), None)
        where = "spec.members"
        yield where if number is None else f"{where}[{number}].selector.exactMatch.name"


def topology_tier_exists(cluster: ClusterObjects) -> Iterator[Finding]:
    """The tier that a hard topology names exists among the given HyperNodes.

    A number above the highest tier means Volcano's virtual root over all nodes, and an unknown name
    is dropped: the pods are then placed anywhere. With a number below the lowest tier, they are
    never placed. Without HyperNodes nothing is compared.

    Pass: highestTierAllowed 2, HyperNodes of the tiers 1 and 2.
    Fail: highestTierAllowed 3, or highestTierName spine if the only tier name is rack.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/hyper_node_info.go; run on 1.14.1.
    """
    if not cluster.of(HYPER_NODE):
        return
    tiers = _tiers(_read(cluster))
    for kind in (POD_GROUP, JOB, MODEL_SERVING):
        for entry in cluster.of(kind):
            for topology in topologies(entry.body):
                if topology.mode != "soft":
                    found = _check(topology, tiers)
                    yield from (f.under(entry.path) for f in found)


@part_of_rule
def _check(topology: Topology, tiers: _Tiers) -> Iterator[Finding]:
    """Check the highest tier that a topology allows, by number or by name."""
    tier, name = topology.tier, topology.tier_name
    require_known(topology.path, topology.mode)
    if tier is not None:
        path = f"{topology.path}.highestTierAllowed"
        tier = known(tier, path)
        yield from _check_number(tier, path, tiers)
    elif name is not None:
        path = f"{topology.path}.highestTierName"
        name = known(name, path)
        yield from _judge_name(name, path, tiers)


def _check_number(tier: int, path: str, tiers: _Tiers) -> Iterator[Finding]:
    """Check a tier's number against the lowest and the highest tier of the HyperNodes."""
    lowest, top = tiers.lowest, tiers.top
    if lowest <= tier <= top:
        return
    require_known(path, tiers.gap)
    if tier > top:
        yield Finding(
            path=path,
            seen=f"is {tier}, but the highest tier of these HyperNodes is {top}; above "
            "it Volcano uses the whole cluster, so the constraint has no effect",
            remedy=at_most(top),
        )
    elif tier > 0:  # topology-cap-reachable reports 0
        yield Finding(
            path=path,
            seen=f"is {tier}, but the lowest tier of these HyperNodes is {lowest}, so "
            "Volcano never places these pods",
            remedy=at_least(lowest),
        )


@part_of_rule
def _judge_name(name: str, path: str, tiers: _Tiers) -> Iterator[Finding]:
    """Report a tier's name that no HyperNode has; Volcano then drops the constraint."""
    if name in tiers.names:
        return
    require_known(path, tiers.gap)
    first = list(islice(tiers.names, 100))
    close = nearest(name[:253], first)
    listed = ", ".join(first[:10]) or "none"
    yield Finding(
        path=path,
        seen=f"is {display(name)}, but none of these HyperNodes has that tierName, and "
        "Volcano then "
        "drops the whole constraint",
        remedy=write(close) if close else f"known: {listed}",
        level=Level.MANDATORY,
    )
