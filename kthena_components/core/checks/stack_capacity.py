"""Whether a gang can be placed at all: its pods against the nodes of the HyperNodes it may use."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from kthena_components.core.checks.hypernode_reading import read_hyper_node
from kthena_components.core.checks.kthena_reading import count, gap_of, mapping, not_checked, show
from kthena_components.core.checks.stack_pods import Entry, Kind, Pods
from kthena_components.core.checks.stack_reading import Stack
from kthena_components.core.checks.stack_requests import Amounts, requests_of
from kthena_components.core.checks.volcano_reading import HYPER_NODE, POD_GROUP, Topology, pairs
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.known import Unknown
from kthena_components.core.quantity import parse_quantity
from kthena_components.core.topology_spec import HyperNodeSpec

NODE: Kind = ("", "Node")
_RULE = "gang-fits-hypernode"
_NODES = Unknown("not all nodes of the HyperNodes are in this stack with what they can hold")


@dataclass(frozen=True, slots=True)
class _Room:
    """How many pods fit where."""

    name: str
    tier: int
    slots: int


def gang_fits_hypernode(stack: Stack) -> Iterator[Finding]:
    """A gang with a hard topology fits into a HyperNode of a tier that it may use.

    The nodes must be in the stack, with what is allocatable. They are taken as empty and every pod
    as the smallest of the gang, so what does not fit here never fits.

    Pass: minMember 2, pods of 8 GPUs, highestTierAllowed 1, racks of 2 nodes of 8 GPUs.
    Fail: minMember 3, the same pods, cap and racks.
    Level: mandatory; not checked where a node or its capacity is not in the stack.
    Source: Volcano v1.14 pkg/scheduler/actions/allocate; run on 1.14.1: such a gang stays Pending.
    """
    if not stack.of(NODE) or not stack.of(HYPER_NODE):
        return
    tree, nodes = _tree(stack), _nodes(stack)
    for (namespace, name), entry in stack.named(POD_GROUP).items():
        pods, member = stack.gangs.get((namespace, name), []), count(entry.spec.get("minMember"), 0)
        topology = Topology("", mapping(entry.spec.get("networkTopology")))
        cap = _cap(topology, tree)
        if not pods or cap is None or topology.mode != "hard" or member in {None, 0}:
            continue
        least = _smallest(pods)
        at = entry.at("spec.networkTopology")
        if gap := gap_of(least) or gap_of(member) or gap_of(cap) or gap_of(tree):
            yield not_checked(at, gap, _RULE)
        elif isinstance(least, Mapping) and isinstance(member, int) and isinstance(cap, int):
            yield from _judge(at, least, member, cap, _rooms(tree, nodes, least))


def _tree(stack: Stack) -> dict[str, HyperNodeSpec] | Unknown:
    found: dict[str, HyperNodeSpec] = {}
    for entry in stack.of(HYPER_NODE):
        node, _ = read_hyper_node(entry.manifest)
        if node is None:
            return Unknown("a HyperNode of this stack is not known yet or has no tier")
        found.setdefault(node.name, node)
    return found


def _nodes(stack: Stack) -> dict[str, Amounts]:
    return {
        str(entry.name): _amounts(entry)
        for entry in stack.of(NODE)
        if isinstance(entry.name, str) and _amounts(entry)
    }


def _amounts(entry: Entry) -> dict[str, Decimal]:
    status = mapping(entry.manifest.get("status"))
    stated = status.get("allocatable") or status.get("capacity")
    read = ((key, parse_quantity(value)) for key, value in pairs(stated))
    return {str(key): amount for key, amount in read if amount is not None}


def _cap(topology: Topology, tree: object) -> int | Unknown | None:
    """Give the highest tier that is allowed; None where there is no such constraint."""
    if topology.tier is not None or topology.tier_name is None:
        return topology.tier
    if isinstance(topology.tier_name, Unknown) or not isinstance(tree, dict):
        return Unknown("the tier is not known yet")
    tiers = (node.tier for node in tree.values() if node.tier_name == topology.tier_name)
    return max(tiers, default=None)


def _smallest(pods: list[Pods]) -> dict[str, Decimal] | Unknown:
    """Give the least that every pod of a gang asks for."""
    asked = [requests_of(item) for item in pods if item.count != 0]
    gap = next((one for one in asked if isinstance(one, Unknown)), None)
    known = [one for one in asked if not isinstance(one, Unknown)]
    if gap or not known:
        return gap or {}
    shared = set(known[0]).intersection(*known[1:])
    return {key: min(one[key] for one in known) for key in shared}


def _rooms(
    tree: dict[str, HyperNodeSpec] | Unknown, nodes: Mapping[str, Amounts], least: Amounts
) -> list[_Room] | Unknown:
    rooms: list[_Room] = []
    for name, spec in tree.items() if isinstance(tree, dict) else ():
        inside = _inside(name, tree if isinstance(tree, dict) else {})
        if inside is None or not inside <= nodes.keys():
            rooms.append(_Room(name, spec.tier, -1))
            continue
        slots = sum(_slots(nodes[node], least) for node in inside)
        rooms.append(_Room(name, spec.tier, slots))
    return rooms


def _inside(name: str, tree: Mapping[str, HyperNodeSpec]) -> set[str] | None:
    """List the nodes in a HyperNode and below it; None where names do not tell them."""
    found: set[str] = set()
    left, seen = [name], set[str]()
    while left:
        at = left.pop()
        spec = tree.get(at)
        if at in seen or spec is None:
            continue
        seen.add(at)
        if spec.node_regex or spec.node_labels:
            return None
        found.update(spec.nodes)
        left += spec.children
    return found


def _slots(room: Amounts, least: Amounts) -> int:
    """Say how many pods fit on an empty node."""
    fits = (room.get(key, Decimal(0)) / amount for key, amount in least.items())
    pods = room.get("pods", Decimal("Infinity"))
    most = min((*fits, pods))
    return math.floor(most) if most.is_finite() else 0


def _judge(
    at: str, least: Amounts, member: int, cap: int, rooms: list[_Room] | Unknown
) -> Iterator[Finding]:
    usable = [room for room in rooms if room.tier <= cap] if isinstance(rooms, list) else []
    best = max(usable, key=lambda room: room.slots, default=None)
    top = max((room.tier for room in rooms), default=0) if isinstance(rooms, list) else 0
    if best is None or not least or best.slots >= member or cap > top:
        return  # of a cap below or above every tier, topology-tier-exists speaks
    if any(room.slots < 0 for room in usable):
        yield not_checked(at, _NODES, _RULE)
        return
    yield Finding(
        path=at,
        seen=f"lets {count_of(member, 'pod')} start together in one HyperNode of tier {cap} or "
        f"below, but the largest, {show(best.name)}, has room for {best.slots} when it is empty, "
        "so none of them ever starts",
        remedy=f"allow a higher tier, or lower minMember to {best.slots}",
        rule=_RULE,
    )
