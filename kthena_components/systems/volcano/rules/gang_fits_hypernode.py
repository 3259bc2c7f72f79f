"""Checks that a gang can be placed: its pods against the nodes of the HyperNodes it may use."""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from decimal import Decimal
from typing import TYPE_CHECKING

from kthena_components.core.findings import Finding, count_of, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import (
    HYPER_NODE,
    NODE,
    POD_GROUP,
    Amounts,
    PodSet,
    allocatable,
    requests_of,
)
from kthena_components.core.remedies import either
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    count,
    mapping,
    require_known,
    unknown_in,
    unknown_within,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeInt, Unknown, known
from kthena_components.systems.volcano.view import Topology, read_hyper_node

if TYPE_CHECKING:  # most files that are checked have no HyperNode
    from kthena_components.core.topology.spec import HyperNodeSpec

_SIMPLE = regex(r"\^?(?:[A-Za-z0-9-]|\\\.|\[[0-9a-z-]+\])*(?:(?:\.|\[0-9\]|\\d)[*+])?\$?")
"""Patterns for the names of nodes that Go and Python read alike, and that take no time."""
_MOST_COUNTED = 3_000_000
"""Maximum number of node counts: nodes × HyperNodes × sizes of pods."""
_TOO_MANY = Unknown("there are too many gangs and HyperNodes to compare them all")
_NODES = Unknown("not all nodes of the HyperNodes are here with their capacity")


@dataclass(frozen=True, slots=True)
class _Room:
    """How many pods fit into which HyperNode."""

    name: str
    tier: int
    slots: int
    sure: bool
    """Whether its nodes, and those of lower tiers, are known."""


def gang_fits_hypernode(cluster: ClusterObjects) -> Iterator[Finding]:
    """A gang with a hard topology fits into a HyperNode of a tier that it may use.

    The gang comes from a PodGroup, or from the object whose controller creates it: a Volcano Job, a
    ServingGroup of a ModelServing, or an engine of it under a rolePolicy. The nodes must be
    given, with their allocatable resources. The rule assumes empty nodes, and the smallest pod of
    the gang for every pod, so a gang that does not fit here never fits.

    Pass: minMember 2, pods of 8 GPUs, highestTierAllowed 1, racks of 2 nodes of 8 GPUs.
    Fail: minMember 3, the same pods, cap and racks.
    Level: mandatory; not checked if a node or its capacity is not given. The nodes that labels or a
    simple pattern select are known if these are all objects of the cluster.
    Source: Volcano v1.14 pkg/scheduler/actions/allocate; run on 1.14.1: such a gang stays Pending.
    """
    if not cluster.of(NODE) or not cluster.of(HYPER_NODE):
        return
    tree = _tree(cluster)
    tiers = _tiers(tree)
    labels = {str(node.name): node.metadata.get("labels") for node in cluster.of(NODE)}
    listed = labels if cluster.complete and not cluster.name_unknown(NODE) else None
    inside = _Inside(tree if isinstance(tree, dict) else {}, nodes_of(cluster), listed)
    for (namespace, name), entry in cluster.named(POD_GROUP).items():
        pods, member = (
            cluster.gangs.get((namespace, name), []),
            count(entry.spec.get("minMember"), 0),
        )
        topology = Topology(
            entry.at("spec.networkTopology"), mapping(entry.spec.get("networkTopology"))
        )
        gang = _Gang(topology, pods, member, "minMember")
        yield from _place(gang, _cap(topology, tiers), inside, unknown_in(tree))
    for made in cluster.made_gangs:
        topology = Topology(made.owner.at(made.topology_path), made.topology)
        if made.topology:
            pods = [item for item, number in made.pods if number != 0]
            gang = _Gang(topology, pods, made.size, f"the pods of {made.title}")
            yield from _place(gang, _cap(topology, tiers), inside, unknown_in(tree))


@dataclass(frozen=True, slots=True)
class _Gang:
    """Pods with one topology."""

    topology: Topology
    pods: list[PodSet]
    member: MaybeInt | None
    """How many of them start together."""
    number: str
    """What states that number, for a remedy."""


@part_of_rule
def _place(
    gang: _Gang, cap: int | Unknown | None, inside: "_Inside", late: Unknown | None
) -> Iterator[Finding]:
    """Check one gang of hard topology, if its pods, tiers and nodes are known."""
    at, member = gang.topology.path, gang.member
    if not gang.pods or cap is None or gang.topology.mode != "hard" or member in {None, 0}:
        return
    least = _smallest(gang.pods)
    require_known(at, least, member, cap, late)
    if isinstance(least, dict) and isinstance(member, int) and isinstance(cap, int) and least:
        yield from _check(at, member, cap, inside.rooms(least), gang.number)


def _tree(cluster: ClusterObjects) -> dict[str, "HyperNodeSpec"] | Unknown:
    found: dict[str, HyperNodeSpec] = {}
    for entry in cluster.of(HYPER_NODE):
        node, _ = read_hyper_node(entry.body)
        if node is None or unknown_within(entry.spec.get("members")):
            return Unknown("one of these HyperNodes is not known yet or has no tier")
        found.setdefault(node.name, node)
    return found


def nodes_of(cluster: ClusterObjects) -> dict[str, Amounts]:
    """Return what each Node of the cluster can allocate, if it is stated."""
    return {
        str(entry.name): amounts
        for entry in cluster.of(NODE)
        if isinstance(entry.name, str) and (amounts := allocatable(entry.body))
    }


def _tiers(tree: dict[str, "HyperNodeSpec"] | Unknown) -> dict[str, int] | Unknown:
    """Return the highest tier of each tier's name."""
    if isinstance(tree, Unknown):
        return Unknown("the tier is not known yet")
    found: dict[str, int] = {}
    for node in tree.values():
        if node.tier_name:
            found[node.tier_name] = max(found.get(node.tier_name, node.tier), node.tier)
    return found


def _cap(topology: Topology, tiers: dict[str, int] | Unknown) -> int | Unknown | None:
    """Return the highest tier that is allowed; None without a constraint."""
    if topology.tier is not None or topology.tier_name is None:
        return topology.tier
    if isinstance(topology.tier_name, Unknown) or isinstance(tiers, Unknown):
        return Unknown("the tier is not known yet")
    return tiers.get(topology.tier_name)


def _smallest(pods: list[PodSet]) -> dict[str, Decimal] | Unknown:
    """Return the smallest request of a gang's pods, for each resource."""
    asked = [requests_of(item) for item in pods if item.count != 0]
    gap = next((one for one in asked if isinstance(one, Unknown)), None)
    known = [one for one in asked if not isinstance(one, Unknown)]
    if gap or not known:
        return gap or {}
    shared = set(known[0]).intersection(*known[1:])
    return {key: min(one[key] for one in known) for key in shared}


@dataclass(slots=True)
class _Inside:
    """The nodes in each HyperNode, counted for each size of pods."""

    tree: Mapping[str, "HyperNodeSpec"]
    nodes: Mapping[str, Amounts]
    labels: Mapping[str, object] | None = None
    """The labels of all nodes of the cluster. None: there may be others."""
    left: int = field(default_factory=lambda: _MOST_COUNTED)
    """Remaining number of nodes to count."""
    _found: list[tuple[str, int, set[str] | None]] = field(default_factory=list)
    _rooms: dict[frozenset[tuple[str, Decimal]], list[_Room] | Unknown] = field(
        default_factory=dict
    )

    def rooms(self, least: Mapping[str, Decimal]) -> list[_Room] | Unknown:
        """Count the pods that fit into the best HyperNode of each tier and those below."""
        key = frozenset(least.items())
        if key not in self._rooms:
            if not self._found:
                self._found += [(name, spec.tier, self._nodes_of(name))
                                for name, spec in self.tree.items()]  # fmt: skip
            slots = {name: _slots(room, least) for name, room in self.nodes.items()}
            counted = sum(1 + len(nodes or ()) for *_, nodes in self._found)
            self.left -= counted + len(slots) * len(least)
            self._rooms[key] = _TOO_MANY if self.left < 0 else _best(self._found, slots)
        return self._rooms[key]

    def _nodes_of(self, name: str) -> set[str] | None:
        """List the nodes in a HyperNode and below it; None if these are not known."""
        found: set[str] = set()
        left, seen = [name], set[str]()
        while left and self.left > 0:
            at = left.pop()
            spec = self.tree.get(at)
            if at in seen or spec is None:
                continue
            seen.add(at)
            matching = self._matching(spec)
            if matching is None:
                return None
            self.left -= 1 + len(spec.nodes) + len(spec.children) + len(matching)
            found.update(spec.nodes, matching)
            left += spec.children
        return found if found <= self.nodes.keys() else None

    def _matching(self, spec: "HyperNodeSpec") -> set[str] | None:
        """Return the nodes that a pattern or labels select; None if these are not known."""
        pattern, wanted = spec.node_regex, spec.node_labels
        if not pattern and not wanted:
            return set()
        if self.labels is None or (pattern and not _SIMPLE.fullmatch(pattern)):
            return None
        self.left -= len(self.labels)
        if wanted and unknown_within(*self.labels.values()):
            return None
        search = re.compile(pattern).search if pattern else None
        return {
            name
            for name, labels in self.labels.items()
            if (search and search(name)) or (wanted and wanted.items() <= mapping(labels).items())
        }


def _best(
    found: Iterable[tuple[str, int, set[str] | None]], slots: Mapping[str, int]
) -> list[_Room]:
    """Return the HyperNode with the most room of each tier and those below, lowest tier first."""
    best: list[_Room] = []
    for name, tier, nodes in sorted(found, key=lambda one: one[1]):
        room = _Room(name, tier, sum(slots[node] for node in nodes or ()), nodes is not None)
        before = best[-1] if best else room
        roomier = room if room.slots > before.slots else before
        best.append(replace(roomier, tier=tier, sure=room.sure and before.sure))
    return best


def _slots(room: Amounts, least: Amounts) -> int:
    """Count the pods that fit on an empty node."""
    fits = (room.get(key, Decimal(0)) / amount for key, amount in least.items())
    pods = room.get("pods", Decimal("Infinity"))
    most = min((*fits, pods))
    return math.floor(most) if most.is_finite() else 0


@part_of_rule
def _check(
    at: str, member: int, cap: int, rooms: list[_Room] | Unknown, number: str
) -> Iterator[Finding]:
    """Compare a gang with the largest HyperNode that its cap allows."""
    rooms = known(rooms, at)
    usable = bisect_right(rooms, cap, key=lambda room: room.tier)
    best = rooms[usable - 1] if usable else None
    if best is None or best.slots >= member or cap > rooms[-1].tier:
        return  # topology-tier-exists reports a cap below or above every tier
    require_known(at, None if best.sure else _NODES)
    higher = next((room for room in rooms[usable:] if room.slots >= member and room.sure), None)
    yield Finding(
        path=at,
        seen=f"lets {count_of(member, 'pod')} start together in one HyperNode of tier {cap} or "
        f"below, but the largest, {display(best.name)}, has room for {best.slots} when it is "
        "empty, "
        "so none of them ever starts",
        remedy=either(
            f"allow tier {higher.tier}" if higher is not None else "",
            f"lower {number} to {best.slots}" if best.slots > 0 else "",
        )
        or "request less in each pod, or use larger nodes",
    )
