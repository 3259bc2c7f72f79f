"""Whether any assignment of a group's pods exists, whatever a scheduler's choices are. Pure.

Equal pods are counted, which is exact. For others, a solver is asked if it is installed.
"""

from kthena_components.placement.exact_solver import solve
from kthena_components.placement.free_nodes import slots
from kthena_components.placement.model import PodGroup
from kthena_components.placement.volcano.scheduler import Scheduler


def exists(scheduler: Scheduler, group: PodGroup) -> bool | None:
    """Say whether an assignment exists in a cluster with nothing else that waits.

    Args:
        scheduler: The scheduler of the cluster, before it places the group.
        group: The only group of that scheduler.

    Returns:
        None: not known. The pods differ, or form subgroups, and the solver is not installed or
        finds no answer; or other pods decide where they can be.
    """
    job = scheduler.jobs[0]
    if job.invalid() or (job.missing and not job.minimum):
        return False
    if not job.by_volcano or scheduler.others_decide(job):
        return None
    shapes = {task.shape.number: task.shape for task in job.tasks}
    if len(shapes) != 1 or group.subgroups or group.task_minimum:
        return solve(scheduler, job)
    (shape,) = shapes.values()
    wanted = group.minimum or len(job.tasks)
    tree = scheduler.tree
    cap = tree.top if job.cap is None or shape.empty else job.cap
    counts = slots(scheduler, shape)
    return wanted <= len(job.tasks) and any(
        sum(counts[node] for node in one.nodes) >= wanted for one in tree.all if one.tier <= cap
    )
