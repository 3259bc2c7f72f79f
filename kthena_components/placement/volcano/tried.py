"""The nodes on which pods of a role have failed in one attempt: others of it are not tried there.

Source: Volcano v1.14.1 pkg/scheduler/util/predicate_helper.go, taskPredicateErrorCache. It matters
where a node that refuses one pod of a role accepts the next one: if their requests differ, or if
pods that were placed in between change what other pods decide.
"""

from kthena_components.placement.volcano.jobs import Job, Task
from kthena_components.placement.volcano.neighbours import Neighbours, Refuses
from kthena_components.placement.volcano.room import Room


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
