"""What waits for nodes beside the groups that are asked about; some of its pods may run. Pure.

Source: Volcano v1.14.1 pkg/scheduler/actions/allocate/allocate.go (a group that runs is a job as
long as it has pending pods) and pkg/scheduler/framework/session.go (recoverAllocatedHyperNode):
while any pod of a group with a topology runs, its other pods must stay below the highest allowed
ancestor of the HyperNode that the group has.
"""

from collections.abc import Iterable, Mapping, Sequence

from kthena_components.placement.model import Cluster, PodGroup
from kthena_components.placement.volcano.allocate import count
from kthena_components.placement.volcano.jobs import Job, Task
from kthena_components.placement.volcano.scheduler import Scheduler


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
