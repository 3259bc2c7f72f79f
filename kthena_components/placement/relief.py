"""Finds the fewest nodes that must be freed or added so that a group fits. Pure."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from kthena_components.core.findings import count_of
from kthena_components.placement.changes import copy_of, helps
from kthena_components.placement.free_nodes import largest, slots
from kthena_components.placement.model import Change, Cluster, PodGroup
from kthena_components.placement.volcano.scheduler import Scheduler

_TRIED, _TRIED_IF_LARGE = 24, 6
"""Changes that are tried for one group, in small and large clusters."""
_LIKED = 3
"""Kinds of nodes of which more are tried."""
_LARGE = 300
"""Nodes of a large cluster."""


def freed_nodes(cluster: Cluster, group: PodGroup) -> tuple[Change, ...]:
    """Return the fewest nodes in one HyperNode after whose end of work a group fits."""
    scheduler = Scheduler(cluster, [group])
    options = sorted(_freeing(cluster, scheduler), key=lambda one: (len(one[1]), not one[0]))
    for where, names in islice(options, _TRIED if len(cluster.nodes) < _LARGE else _TRIED_IF_LARGE):
        nodes = "Free one node" if len(names) == 1 else f"Free {count_of(len(names), 'node')}"
        change = Change(text=f"{nodes}{f' in {where}' if where else ''}: {', '.join(names)}",
                        freed_nodes=tuple(names))  # fmt: skip
        if helps(cluster, group, change):
            return (change,)
    return ()


def _freeing(cluster: Cluster, scheduler: Scheduler) -> Iterator[tuple[str, list[str]]]:
    """For each HyperNode, list its used nodes that accept the pods: more and more of them."""
    shape = largest(scheduler)
    needed = len(scheduler.jobs[0].tasks)
    counts = slots(scheduler, shape)
    usable = {
        at for at, node in enumerate(cluster.nodes)
        if node.used and shape.accepted[at] and node.name not in cluster.taken_by_others
    }  # fmt: skip
    for one in scheduler.tree.all:
        used = sorted(
            (node for node in one.nodes if node in usable),
            key=lambda node: (counts[node] > 0, -sum(scheduler.room.allocatable[node][3:]), node),
        )
        name = one.domain.name if one.domain else ""
        for number in range(1, min(len(used), needed) + 1):
            yield name, [cluster.nodes[node].name for node in used[:number]]


def freed_or_added_nodes(cluster: Cluster, group: PodGroup) -> tuple[Change, ...]:
    """Return the fewest nodes to free, or to add where freeing nodes does not help."""
    return freed_nodes(cluster, group) or added_nodes(cluster, group)


def added_nodes(cluster: Cluster, group: PodGroup) -> tuple[Change, ...]:
    """Return the fewest nodes with which a group fits: like one, and in its HyperNodes."""
    scheduler = Scheduler(cluster, [group])
    liked = _liked(cluster, scheduler)
    pods = len(scheduler.jobs[0].tasks)
    for number in dict.fromkeys((*range(1, min(8, pods) + 1), pods)):
        for at in liked:
            if not scheduler.has_room(like=at, added=number):
                continue
            node, leaf = cluster.nodes[at], scheduler.tree.leaf_of.get(at)
            domain = scheduler.tree.all[leaf].domain if leaf is not None else None
            added = tuple(copy_of(node, f"{node.name}-new-{n}") for n in range(number))
            nodes = "one node" if number == 1 else count_of(number, "node")
            where = f" to {domain.name}" if domain else ""
            change = Change(text=f"Add {nodes} like {node.name}{where}",
                            added_nodes=added, like=node.name)  # fmt: skip
            if helps(cluster, group, change):
                return (change,)
    return ()


def _liked(cluster: Cluster, scheduler: Scheduler) -> list[int]:
    """Choose nodes that accept the pods and differ, those in HyperNodes with most room first."""
    shape, leaf_of = largest(scheduler), scheduler.tree.leaf_of
    room: Counter[int | None] = Counter()
    for at, number in enumerate(slots(scheduler, shape)):
        room[leaf_of.get(at)] += number
    liked: dict[object, int] = {}
    for at in sorted(range(len(cluster.nodes)), key=lambda at: -room[leaf_of.get(at)]):
        if shape.accepted[at]:
            liked.setdefault(tuple(scheduler.room.allocatable[at]), at)
    return list(liked.values())[:_LIKED]
