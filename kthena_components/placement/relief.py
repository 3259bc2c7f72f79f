"""Finds the fewest nodes to uncordon, free or add, or smaller pods, so that a group fits. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import islice

from kthena_components.core.findings import count_of
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.display import listing
from kthena_components.core.values.quantity import render_quantity
from kthena_components.placement.changes import (
    copy_of,
    fits,
    helps,
    with_allocatable,
    with_open_nodes,
)
from kthena_components.placement.model import Change, Cluster, Node, PodGroup
from kthena_components.placement.volcano.amounts_and_shapes import PODS, Shape
from kthena_components.placement.volcano.scheduler import Scheduler

_PLENTY = Decimal(2**60)
_TRIED, _TRIED_IF_LARGE = (24, 8), (6, 3)
"""Sets of nodes that are tried for one group, and of these with one number of nodes."""
_LIKED, _MORE = 3, 8
"""Kinds of nodes of which more are tried, and numbers from the smallest on that may suffice."""
_LARGE = 300
"""Nodes of a large cluster."""


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
    return text + (_compare_with_freest_node(scheduler, shape, resources) if resources else "")


def _finding(found: int, needed: int) -> str:
    if not found:
        return (
            "1 pod cannot be placed"
            if needed == 1
            else f"none of {count_of(needed, 'pod')} can be placed"
        )
    return f"{min(found, needed)} of {count_of(needed, 'pod')} can be placed"


def _compare_with_freest_node(scheduler: Scheduler, shape: Shape, resources: Sequence[str]) -> str:
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
    """Copy a group without its requests of one resource."""
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


def opened_nodes(cluster: Cluster, group: PodGroup) -> tuple[Change, ...]:
    """Return the fewest nodes that are cordoned or not ready, and with which a group fits."""
    closed = {node.name for node in cluster.nodes if not node.accepts_pods}
    if not closed:
        return ()
    opened = with_open_nodes(cluster, closed)
    if not fits(opened, group):
        return ()
    changes = (
        Change(text=f"Uncordon or repair {_node_list(where, names)}", opened_nodes=tuple(names))
        for where, names in _fewest(opened, group, lambda node: node.name in closed, frees=False)
    )
    found = next((one for one in changes if helps(cluster, group, one)), None)
    every = f"Uncordon or repair all nodes that are cordoned or not ready ({len(closed)})"
    return (found or Change(text=every, opened_nodes=tuple(sorted(closed))),)


def freed_nodes(cluster: Cluster, group: PodGroup) -> tuple[Change, ...]:
    """Return the fewest nodes in one HyperNode after whose end of work a group fits."""

    def usable(node: Node) -> bool:
        return bool(node.used) and node.name not in cluster.taken_by_others

    changes = (
        Change(text=f"Free {_node_list(where, names)}", freed_nodes=tuple(names))
        for where, names in _fewest(cluster, group, usable, frees=True)
    )
    return tuple(islice((one for one in changes if helps(cluster, group, one)), 1))


def _node_list(where: str, names: Sequence[str]) -> str:
    nodes = "one node" if len(names) == 1 else count_of(len(names), "node")
    return f"{nodes}{f' in {where}' if where else ''}: {', '.join(names)}"


def _fewest(
    cluster: Cluster, group: PodGroup, usable: Callable[[Node], bool], *, frees: bool
) -> Iterator[tuple[str, list[str]]]:
    """List some nodes of one HyperNode with its name, the fewest first, as many as are tried."""
    most, of_each = _TRIED if len(cluster.nodes) < _LARGE else _TRIED_IF_LARGE
    sets = _Sets(cluster, Scheduler(cluster, [group]), usable, frees=frees)
    seen = Counter[int]()
    for where, nodes in sorted(sets.all(), key=lambda one: (len(one[1]), not one[0])):
        seen[len(nodes)] += 1
        if seen[len(nodes)] <= of_each and most:
            most -= 1
            yield where, [cluster.nodes[node].name for node in nodes]


class _Sets:
    """Sets of nodes that may suffice for a group if they are freed or opened.

    Each shape of pods is counted as if the others were not there, so none that suffices is missed
    for its size.
    """

    def __init__(
        self, cluster: Cluster, scheduler: Scheduler, usable: Callable[[Node], bool], *, frees: bool
    ) -> None:
        """Count the slots that each node has, and those that each usable node would have.

        Args:
            cluster: If nodes are to be opened, with these nodes open.
            scheduler: Of the group alone.
            usable: Which nodes can be freed or opened.
            frees: Whether they are freed.
        """
        job, room = scheduler.jobs[0], scheduler.room
        self._tree, self._cap, self._most = scheduler.tree, job.cap, len(job.tasks)
        self._needed = (job.minimum or len(job.tasks)) - job.unscheduled
        self._shapes = Counter(task.shape for task in job.tasks if not task.shape.empty)
        self._usable = {at for at, node in enumerate(cluster.nodes) if usable(node)
                        and any(shape.accepted[at] for shape in self._shapes)}  # fmt: skip
        self._now = {shape: slots(scheduler, shape) for shape in self._shapes}
        self._gains = dict[Shape, dict[int, int]]()
        for shape, now in self._now.items():
            gains = self._gains[shape] = {}
            for at in self._usable:
                then = room.allocatable[at] if frees and shape.accepted[at] else None
                gains[at] = room.slots(shape, then) - now[at] if then else 0
                if not frees:
                    gains[at], now[at] = now[at], 0

    def all(self) -> Iterator[tuple[str, list[int]]]:
        """For each HyperNode, list its usable nodes: as many as may suffice, and more and more."""
        everywhere = {shape: sum(now) for shape, now in self._now.items()}
        for one in self._tree.all:
            if self._cap is not None and one.tier > self._cap:
                continue
            within = sorted(self._usable & one.nodes, key=lambda node: (-self._gain(node), node))
            have = everywhere
            if self._cap is not None:
                have = {shape: sum(now[node] for node in one.nodes)
                        for shape, now in self._now.items()}  # fmt: skip
            name = one.domain.name if one.domain else ""
            least = self._nodes_needed(within, have)
            for number in range(least, min(len(within), self._most) + 1):
                yield name, within[:number]

    def _gain(self, node: int) -> int:
        return sum(min(number, self._gains[shape][node]) for shape, number in self._shapes.items())

    def _nodes_needed(self, within: Sequence[int], have: Mapping[Shape, int]) -> int:
        """Return how many of some nodes may suffice; more than there are if they never do."""
        slots_left = dict(have)
        for number in range(len(within) + 1):
            for shape, gains in self._gains.items() if number else ():
                slots_left[shape] += gains[within[number - 1]]
            found = sum(min(wanted, slots_left[shape]) for shape, wanted in self._shapes.items())
            if found >= self._needed:
                return max(1, number)
        return len(within) + 1


def freed_or_added_nodes(cluster: Cluster, group: PodGroup) -> tuple[Change, ...]:
    """Return the fewest nodes to open, to free where that does not help, or else to add."""
    return (
        opened_nodes(cluster, group) or freed_nodes(cluster, group) or added_nodes(cluster, group)
    )


def added_nodes(cluster: Cluster, group: PodGroup) -> tuple[Change, ...]:
    """Return the fewest nodes with which a group fits: like one, and in its HyperNodes."""
    scheduler = Scheduler(cluster, [group])
    tried = ((number, at) for at in _liked(cluster, scheduler) for number in _more(scheduler, at))
    for number, at in sorted(tried, key=lambda pair: pair[0]):
        node = cluster.nodes[at]
        added = tuple(copy_of(node, f"{node.name}-new-{n}") for n in range(number))
        nodes = "one node" if number == 1 else count_of(number, "node")
        change = Change(text=f"Add {nodes} like {node.name}{_to(scheduler, at)}",
                        added_nodes=added, like=node.name)  # fmt: skip
        if helps(cluster, group, change):
            return (change,)
    return ()


def _more(scheduler: Scheduler, at: int) -> list[int]:
    """List how many nodes like one may suffice: the fewest, some more, and one for each pod."""
    job, tree = scheduler.jobs[0], scheduler.tree
    within = None
    if job.cap is not None and at in tree.leaf_of:
        above = [one for one in tree.above(tree.leaf_of[at]) if tree.all[one].tier <= job.cap]
        within = above[-1] if above else None
    most = len(job.tasks)
    numbers = range(1, most + 1)
    least = numbers.start + bisect_left(
        numbers, x=True, key=lambda number: scheduler.has_room(within, at, number)
    )
    return list(dict.fromkeys((*range(least, min(least + _MORE, most)), most)))


def smaller_pods_or_larger_nodes(
    cluster: Cluster, group: PodGroup, names: Sequence[str]
) -> Iterator[Change]:
    """Offer to request what a node has of some resources, and nodes that have what is requested.

    Only for pods that request more of one than any node that accepts them has.
    """
    scheduler = Scheduler(cluster, [group])
    shape, job = largest(scheduler), scheduler.jobs[0]
    source = next(task.source for task in job.tasks if task.shape is shape)
    asked = group.pods[source].requests
    accepting = [at for at, accepted in enumerate(shape.accepted) if accepted]

    def has(at: int) -> list[Decimal]:
        return [cluster.nodes[at].allocatable.get(name, Decimal(0)) for name in names]

    at = max(accepting, key=has, default=None)
    if at is None:
        return
    best, own = cluster.nodes[at], dict(zip(names, has(at), strict=True))
    most = {name: amount for name, amount in own.items() if amount < asked.get(name, 0)}
    if not most:
        return
    if all(most.values()):
        text = f"Request at most {_amounts(most)} per pod, as the node {best.name} has"
        yield Change(text=text, group=_at_most(group, most))
    more = {name: asked[name] for name in most}
    yield from _larger_nodes(best, _to(scheduler, at), more, len(job.tasks))


def _larger_nodes(like: Node, to: str, more: Amounts, pods: int) -> Iterator[Change]:
    """Offer one to eight nodes, or one for each pod, that have more of some resources."""
    for number in dict.fromkeys((*range(1, min(8, pods) + 1), pods)):
        nodes = "one node" if number == 1 else count_of(number, "node")
        each = f"with {_amounts(more)}{'' if number == 1 else ' each'}"
        added = (copy_of(like, f"{like.name}-new-{n}") for n in range(number))
        yield Change(text=f"Add {nodes} like {like.name}{to} {each}", like=like.name,
                     added_nodes=tuple(with_allocatable(node, more) for node in added))  # fmt: skip


def _to(scheduler: Scheduler, at: int) -> str:
    """Say into which HyperNode a node comes that is like one. Empty: into none."""
    leaf = scheduler.tree.leaf_of.get(at)
    domain = scheduler.tree.all[leaf].domain if leaf is not None else None
    return f" to {domain.name}" if domain else ""


def _amounts(amounts: Amounts) -> str:
    return listing(named_amount(*pair) for pair in amounts.items())


def _at_most(group: PodGroup, most: Amounts) -> PodGroup:
    """Lower the requests of pods, and minResources by as much."""
    pods = tuple(
        replace(one, requests={key: min(amount, most.get(key, amount))
                               for key, amount in one.requests.items()})
        for one in group.pods
    )  # fmt: skip
    least = group.min_resources
    if least is not None:
        gone = dict.fromkeys((key for one in group.pods for key in one.requests), Decimal(0))
        for old, new in zip(group.pods, pods, strict=True):
            for key, amount in old.requests.items():
                gone[key] += old.count * (amount - new.requests[key])
        least = {key: max(Decimal(0), amount - gone.get(key, 0)) for key, amount in least.items()}
    return replace(group, pods=pods, min_resources=least)


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
