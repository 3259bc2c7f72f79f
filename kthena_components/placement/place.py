"""Places groups of pods into a cluster, as its scheduler will. Pure.

`place` answers for each group: it fits, it waits, or it never fits; where, and if not why.
"""

from collections.abc import Sequence
from dataclasses import replace

from kthena_components.core.topology.domains import lowest
from kthena_components.placement.model import Cluster, Outcome, Placement, PodGroup, Verdict
from kthena_components.placement.volcano.jobs import Job
from kthena_components.placement.volcano.scheduler import Scheduler


def place(
    cluster: Cluster, groups: Sequence[PodGroup], *, exact_seconds: float = 2.0
) -> list[Outcome]:
    """Answer for each group whether it fits, in the order given.

    Groups that wait in the cluster already are placed first if their priority is equal.

    Args:
        cluster: What is there.
        groups: What shall run.
        exact_seconds: How long a solver may look for an assignment that the scheduler misses.
    """
    del exact_seconds
    known = [group for group in groups if group.unknown is None]
    scheduler = Scheduler(cluster, [*cluster.waiting, *known])
    scheduler.run()
    jobs = iter(scheduler.jobs[len(cluster.waiting) :])
    empty = emptied(cluster)
    return [
        Outcome(group=group, verdict=Verdict.UNKNOWN, note=group.unknown.because)
        if group.unknown is not None
        else _outcome(cluster, group, next(jobs), empty)
        for group in groups
    ]


def emptied(cluster: Cluster) -> Cluster:
    """Take away everything that runs or waits."""
    return replace(
        cluster,
        nodes=[replace(node, used={}) for node in cluster.nodes],
        queues=[replace(queue, used={}) for queue in cluster.queues],
        quotas=[replace(quota, used={}) for quota in cluster.quotas],
        running=(), waiting=(),
    )  # fmt: skip


def _outcome(cluster: Cluster, group: PodGroup, job: Job, empty: Cluster) -> Outcome:
    where = _placement(cluster, job)
    if starts(job):
        return Outcome(group=group, verdict=Verdict.FITS, placement=where, exists=True)
    alone = Scheduler(empty, [group])
    alone.run()
    verdict = Verdict.WAITS if starts(alone.jobs[0]) else Verdict.NEVER
    return Outcome(group=group, verdict=verdict, placement=where)


def starts(job: Job) -> bool:
    """Say whether the pods of a group that start together have nodes.

    Of a group without a minimum, each pod starts alone, so that all of them count.
    """
    if job.minimum:
        return job.ready
    return all(task.node is not None for task in job.tasks)


def _placement(cluster: Cluster, job: Job) -> Placement | None:
    names = [cluster.nodes[task.node].name if task.node is not None else "" for task in job.tasks]
    if not any(names):
        return None
    domain = lowest(cluster.domains, frozenset(filter(None, names)))
    return Placement(nodes=tuple(names), domain=domain)
