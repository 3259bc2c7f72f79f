"""Sentences about the room that a group needs and that nodes have. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Decimal

from kthena_components.core.findings import count_of
from kthena_components.core.values.display import listing
from kthena_components.core.values.quantity import render_quantity
from kthena_components.placement.changes import fits
from kthena_components.placement.model import Cluster, PodGroup
from kthena_components.placement.volcano.amounts_and_shapes import PODS, Shape
from kthena_components.placement.volcano.scheduler import Scheduler

_PLENTY = Decimal(2**60)


def largest(scheduler: Scheduler) -> Shape:
    """Return the shape of the pods of a group that fits into the fewest nodes."""
    shapes = {task.shape.number: task.shape for task in scheduler.jobs[0].tasks}
    return min(shapes.values(), key=lambda shape: sum(slots(scheduler, shape)))


def slots(scheduler: Scheduler, shape: Shape) -> list[int]:
    """Count how many pods of a shape each node has room for."""
    room = scheduler.room
    return [
        room.slots(shape, left) if accepted else 0
        for left, accepted in zip(room.idle, shape.accepted, strict=True)
    ]


def free_nodes(scheduler: Scheduler, cap: int | None, resources: Sequence[str] = ()) -> str:
    """Say how many pods there is room for, and in how many HyperNodes of the cap's tier."""
    shape, job = largest(scheduler), scheduler.jobs[0]
    counts = slots(scheduler, shape)
    needed = sum(task.shape is shape for task in job.tasks)
    nodes = sum(bool(number) for number in counts)
    text = _finding(sum(counts), needed) + (f", on {count_of(nodes, 'node')}" if nodes else "")
    if cap is not None:
        tree = scheduler.tree
        holding = [at for at, one in enumerate(tree.all) if one.tier == cap]
        within = {at: sum(counts[node] for node in tree.all[at].nodes) for at in holding}
        some = sum(bool(number) for number in within.values())
        text += f" in {count_of(some, 'HyperNode')} of tier {cap}; at most "
        text += f"{max(within.values(), default=0)} in one"
    return text + (_most(scheduler, shape, resources) if resources else "")


def _finding(found: int, needed: int) -> str:
    if not found:
        return (
            "1 pod cannot be placed"
            if needed == 1
            else f"none of {count_of(needed, 'pod')} can be placed"
        )
    return f"{min(found, needed)} of {count_of(needed, 'pod')} can be placed"


def _most(scheduler: Scheduler, shape: Shape, resources: Sequence[str]) -> str:
    """Say how much of some resources each pod requests, and what the freest node has of each."""
    dimensions, room = scheduler.dimensions, scheduler.room
    wanted, scarce = [], {}
    for resource in resources:
        at = dimensions.names.index(resource)
        most = max((room.idle[node][at] for node, ok in enumerate(shape.accepted) if ok), default=0)
        left = dimensions.amount(resource, max(0, most))
        if resource == PODS:
            return f": no node has more than {left} free slots for pods"
        each = dimensions.amount(resource, shape.request[at])
        wanted.append(named_amount(resource, each))
        if left < each:
            scarce[resource] = left
    text = f": each requests {listing(wanted)}"
    if not scarce:
        return text
    if len(resources) == 1:
        return f"{text}, and no node has more than {render_quantity(*scarce.values())} left"
    most_left = listing([named_amount(*pair) for pair in scarce.items()])
    return f"{text}, and no node has more than {most_left} left"


def refusals(scheduler: Scheduler, *beginnings: str) -> str:
    """Say which nodes refuse the pods of a group, and why."""
    shape = largest(scheduler)
    counts = Counter(why for each in shape.refusals for why in each if why.startswith(beginnings))
    listed = ", ".join(f"{count_of(number, 'node')} {why}" for why, number in counts.most_common())
    taken = sum(slots(scheduler, shape))
    needed = sum(task.shape is shape for task in scheduler.jobs[0].tasks)
    return f"{_finding(taken, needed)}; excluded: {listed}"


def lacking(cluster: Cluster, group: PodGroup) -> list[tuple[str, ...]]:
    """List the resources without whose request a group would fit: each alone, or some together."""
    names = list(dict.fromkeys(name for pods in group.pods for name in pods.requests))
    found: list[tuple[str, ...]]
    found = [(name,) for name in names if _lacks(cluster, group, name)]
    if not found and fits(_with_plenty(cluster, [PODS]), group):
        found = [(PODS,)]
    if not found and fits(_with_plenty(cluster, names), group):
        found = [_together(cluster, group, names)]
    return found


def _lacks(cluster: Cluster, group: PodGroup, name: str) -> bool:
    """Say whether a group would fit without the request of one resource.

    A pod that requests nothing else would need no place, so nodes get plenty of it there.
    """
    if any(not pods.requests.keys() - {name} for pods in group.pods):
        return fits(_with_plenty(cluster, [name]), group)
    return fits(cluster, _not_asking(group, name))


def _together(cluster: Cluster, group: PodGroup, names: Sequence[str]) -> tuple[str, ...]:
    """Return the fewest of some resources that a group lacks together, devices first."""
    left = sorted(names, key=lambda name: "/" not in name)
    for name in reversed(left.copy()):
        others = [one for one in left if one != name]
        if fits(_with_plenty(cluster, others), group):
            left = others
    return tuple(left)


def _with_plenty(cluster: Cluster, names: Iterable[str]) -> Cluster:
    """Give each node more of some resources than any pod requests."""
    more = dict.fromkeys(names, _PLENTY)
    nodes = [replace(node, allocatable={**node.allocatable, **more}) for node in cluster.nodes]
    return replace(cluster, nodes=nodes)


def _not_asking(group: PodGroup, name: str) -> PodGroup:
    pods = tuple(
        replace(one, requests={key: value for key, value in one.requests.items() if key != name})
        for one in group.pods
    )
    least = group.min_resources
    if least is not None:
        least = {key: value for key, value in least.items() if key != name}
    return replace(group, pods=pods, min_resources=least)


def named_amount(resource: str, amount: Decimal) -> str:
    """Write an amount with its resource: `8 GPUs`, `96 cpu`."""
    if resource == "nvidia.com/gpu":
        return count_of(amount, "GPU")
    return f"{render_quantity(amount)} {resource}"
