"""Finds the fewest nodes that must be freed or added so that a group fits. Pure."""

from collections.abc import Iterator
from itertools import islice

from kthena_components.core.findings import count_of
from kthena_components.placement.changes import copy_of, helps
from kthena_components.placement.free_nodes import largest, slots
from kthena_components.placement.model import Change, Cluster, Node, PodGroup
from kthena_components.placement.volcano.scheduler import Scheduler

_TRIED, _TRIED_IF_LARGE = 24, 6
"""Changes that are tried for one group, in small and large clusters."""
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
    """Return the fewest nodes like one of the cluster with which a group fits."""
    scheduler = Scheduler(cluster, [group])
    shape = largest(scheduler)
    liked: dict[object, Node] = {}
    for at, node in enumerate(cluster.nodes):
        if shape.accepted[at]:
            liked.setdefault(tuple(scheduler.room.allocatable[at]), node)
    numbers = [*range(1, min(8, len(scheduler.jobs[0].tasks)) + 1)]
    if len(scheduler.jobs[0].tasks) not in numbers:
        numbers.append(len(scheduler.jobs[0].tasks))
    for number in numbers:
        for node in islice(liked.values(), 3):
            added = tuple(copy_of(node, f"{node.name}-new-{n}") for n in range(number))
            nodes = "one node" if number == 1 else count_of(number, "node")
            change = Change(text=f"Add {nodes} like {node.name}", added_nodes=added)
            if helps(cluster, group, change):
                return (change,)
    return ()
