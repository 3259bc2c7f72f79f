"""What happens if nodes are lost, how many more copies fit, and what else waits for nodes. Pure.

Source: Volcano v1.14.1 pkg/scheduler/actions/allocate/allocate.go (a group that runs is a job as
long as it has pending pods) and pkg/scheduler/framework/session.go (recoverAllocatedHyperNode):
while any pod of a group with a topology runs, its other pods must stay below the highest allowed
ancestor of the HyperNode that the group has.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kthena_components.core.topology.domains import lowest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.changes import starts
from kthena_components.placement.model import Cluster, Placement, PodGroup, Running
from kthena_components.placement.volcano.allocate import count
from kthena_components.placement.volcano.jobs import Job, Task
from kthena_components.placement.volcano.scheduler import Scheduler

MOST_COPIES = 1000
"""More copies than this are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A running group that loses pods."""

    running: Running
    lost: int
    """Its pods on lost nodes."""
    placement: Placement | None
    """Where all of its pods are afterwards. None: some find no node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The loss of nodes."""

    nodes: tuple[str, ...]
    hits: tuple[Hit, ...]

    @property
    def stranded(self) -> int:
        """The number of groups that do not come back."""
        return sum(hit.placement is None for hit in self.hits)


def lose(cluster: Cluster, nodes: Iterable[str]) -> Loss:
    """Say which running groups come back after a loss of nodes, and where."""
    gone = frozenset(nodes)
    hit = [one for one in cluster.running if gone & set(one.nodes)]
    left = replace(cluster, nodes=[
        replace(node, accepts_pods=False) if node.name in gone else node for node in cluster.nodes
    ])  # fmt: skip
    scheduler = Scheduler(left, [*(one.group for one in hit), *cluster.waiting])
    for one, job in zip(hit, scheduler.jobs, strict=False):
        hold(scheduler, job, one.nodes, gone)
    scheduler.run()
    hits = tuple(
        Hit(running=one, lost=sum(name in gone for name in one.nodes),
            placement=_placement(left, job))
        for one, job in zip(hit, scheduler.jobs, strict=False)
    )  # fmt: skip
    return Loss(nodes=tuple(sorted(gone)), hits=hits)


def worst(cluster: Cluster) -> Loss:
    """Find the single node whose loss keeps the most groups from coming back."""
    used = sorted({name for one in cluster.running for name in one.nodes if name})
    losses = [lose(cluster, [name]) for name in used] or [Loss(nodes=(), hits=())]
    return max(losses, key=lambda loss: (loss.stranded, len(loss.hits)))


def nodes_of(cluster: Cluster, domain: str) -> tuple[str, ...]:
    """List the nodes of a HyperNode; empty if there is no such HyperNode."""
    return next((tuple(sorted(one.nodes)) for one in cluster.domains if one.name == domain), ())


def grow(cluster: Cluster, groups: Sequence[PodGroup]) -> list[int]:
    """Count how many more copies of each group fit into a cluster, each group alone."""
    return [_copies(cluster, group) for group in groups]


def _copies(cluster: Cluster, group: PodGroup) -> int:
    """Double the copies until some do not fit. Groups that wait already come first."""
    number = 1
    while True:
        copies = [replace(group, name=f"{group.name}-copy-{n}") for n in range(number)]
        scheduler, jobs = among_others(cluster, copies)
        scheduler.run(most=0)
        fitting = sum(map(starts, jobs))
        if fitting < number or number >= MOST_COPIES:
            return fitting
        number *= 2


def _placement(cluster: Cluster, job: Job) -> Placement | None:
    if any(task.node is None for task in job.tasks):
        return None
    names = tuple(cluster.nodes[task.node].name for task in job.tasks if task.node is not None)
    return Placement(nodes=names, domain=lowest(cluster.domains, frozenset(names)))


def among_others(cluster: Cluster, groups: Sequence[PodGroup]) -> tuple[Scheduler, list[Job]]:
    """Return the scheduler of a cluster with all that waits in it, and the jobs of some groups.

    What waits in the cluster was created first; the scheduler then orders all of them.
    """
    partly = [one for one in cluster.running if not all(one.nodes)]
    first = [*(one.group for one in partly), *cluster.waiting]
    scheduler = Scheduler(cluster, [*first, *groups])
    for one, job in zip(partly, scheduler.jobs, strict=False):
        hold(scheduler, job, one.nodes)
    return scheduler, scheduler.jobs[len(first) :]


def hold(
    scheduler: Scheduler, job: Job, nodes: Sequence[str], gone: frozenset[str] = frozenset()
) -> None:
    """Keep the pods of a running group on their nodes, except those that are lost.

    The cluster's use contains the lost pods, too, but on nodes that take no pods any more.
    """
    place = {node.name: at for at, node in enumerate(scheduler.cluster.nodes)}
    job.enqueued = True
    for task, name in zip(job.tasks, nodes, strict=True):
        if name in gone and job.by_volcano and job.group.queue in scheduler.queues.shares:
            scheduler.queues.account(job.group.queue, task.shape.request, sign=-1)
        if name in gone:
            scheduler.neighbours.leave(task.peer, place[name])
        if name in place and name not in gone:
            count(job, task, place[name])
            task.runs = True
            scheduler.allocator.preference.landed(task.subgroup, place[name])
    for subgroup in job.subgroups.values():
        if subgroup.topology is not None and any(t.node is not None for t in subgroup.tasks):
            subgroup.allocated = _holding(scheduler, subgroup.tasks, nodes, place)
            job.allocated = scheduler.tree.common(job.allocated, subgroup.allocated)
    if job.group.topology is not None and any(task.node is not None for task in job.tasks):
        job.allocated = _holding(scheduler, job.tasks, nodes, place)


def _holding(
    scheduler: Scheduler, tasks: Iterable[Task], nodes: Sequence[str], place: Mapping[str, int]
) -> int:
    """Return the lowest HyperNode that contains the nodes of some pods, lost ones too.

    The scheduler remembers the HyperNode that it has chosen for the group. After a restart it
    knows less: only subgroups with a topology then have one.
    """
    tree = scheduler.tree
    had = {place[nodes[task.position]] for task in tasks if nodes[task.position] in place}
    holding = [at for at, one in enumerate(tree.all) if had <= one.nodes]
    return min(holding, key=lambda at: tree.all[at].tier)
