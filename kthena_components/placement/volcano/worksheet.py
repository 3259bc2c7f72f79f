"""Which pods of a group still need a node, and which of its subgroups is placed next.

Source: Volcano v1.14.1 pkg/scheduler/actions/allocate/allocate.go, organizeJobWorksheet.
"""

from collections.abc import Iterable

from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.volcano.jobs import Job, Task
from kthena_components.placement.volcano.neighbours import Neighbours, Refuses
from kthena_components.placement.volcano.room import Room


@dataclass(slots=True)
class Worksheet:
    """The subgroups of a job with the pods that have no node yet."""

    left: dict[str, list[Task]]
    required: frozenset[str]
    """Subgroups without which minSubGroups is not reached."""

    def copy(self) -> "Worksheet":
        """Copy it for an attempt."""
        return Worksheet(dict(self.left), self.required)

    def next(self, job: Job) -> str:
        """Choose the subgroup that is placed next (SubJobOrderFn)."""

        def rank(name: str) -> tuple[bool, bool, int, int, str]:
            one = job.subgroups[name]
            return (name not in self.required, one.ready, -one.priority, one.index, name)

        return min(self.left, key=rank)


def worksheet(job: Job) -> Worksheet:
    """List the pods that need a node, and the subgroups that the gang needs most."""
    counts: dict[str, int] = {}
    waiting = []
    for one in job.subgroups.values():
        one.failed_roles.clear()
        if one.ready:
            counts[one.policy] = counts.get(one.policy, 0) + 1
        else:
            waiting.append(one)
    required = set()
    wanted = job.policies()
    for one in sorted(waiting, key=lambda one: (-one.priority, one.index, one.name)):
        if counts.get(one.policy, 0) < wanted.get(one.policy, 0):
            required.add(one.name)
            counts[one.policy] = counts.get(one.policy, 0) + 1
    left = {name: list(_in_order(one.tasks)) for name, one in job.subgroups.items()}
    return Worksheet({name: tasks for name, tasks in left.items() if tasks}, frozenset(required))


def _in_order(tasks: Iterable[Task]) -> list[Task]:
    """Sort the pods that are placed by requests: by priority, then as they were created."""
    open_ = [task for task in tasks if task.node is None and not task.shape.empty]
    return sorted(open_, key=lambda task: (-task.priority, task.position))


# The nodes on which pods of a role have failed in one attempt: others of it are not tried there.
#
# Source: Volcano v1.14.1 pkg/scheduler/util/predicate_helper.go, taskPredicateErrorCache. It
# matters where a node that refuses one pod of a role accepts the next one: if their requests
# differ, or if pods that were placed in between change what other pods decide.


class Tried:
    """One attempt to place pods of a job."""

    def __init__(self, job: Job, room: Room, neighbours: Neighbours) -> None:
        """Begin without failures."""
        self._job = job
        self._room = room
        self._neighbours = neighbours
        self._failed: dict[str, set[int]] = {}

    def refused(self, task: Task, hyper: int) -> Refuses | None:
        """Return which nodes a pod cannot have, besides its own demands. None: all that fit it."""
        refuses = self._neighbours.refused(task.peer)
        if not task.role or (refuses is None and task.role not in self._job.mixed):
            return refuses
        failed = self._failed.setdefault(task.role, set())
        failed |= {
            node
            for node in self._room.tree.all[hyper].nodes
            if (refuses and refuses(node)) or not self._room.takes(task.shape, node)
        }
        return failed.__contains__
