"""What happens to running groups if nodes are lost, and how many more copies of one fit. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from kthena_components.core.topology.domains import lowest
from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.changes import starts
from kthena_components.placement.model import Cluster, Placement, PodGroup, Running
from kthena_components.placement.rivals import among_others, hold
from kthena_components.placement.volcano.jobs import Job
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
