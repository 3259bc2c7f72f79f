"""How the scheduler finds nodes for the pods of a group: HyperNode by HyperNode, pod by pod.

Source: Volcano v1.14.1 pkg/scheduler/actions/allocate/allocate.go. Nothing is taken back for
another choice: a subgroup that has its nodes keeps them, and a pod goes to the best node of now.
Where Volcano chooses one of equals at random, this takes the first one.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import field

from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.volcano.amounts_and_shapes import Vector, within
from kthena_components.placement.volcano.equal_and_preferred_hypernodes import (
    EqualCells,
    Preference,
)
from kthena_components.placement.volcano.jobs import Job, Subgroup, Task, Tried, Worksheet, total
from kthena_components.placement.volcano.neighbours import Neighbours
from kthena_components.placement.volcano.queues import Queues
from kthena_components.placement.volcano.room import Room, Taken


@dataclass(slots=True)
class Step:
    """Pods that were placed together, so that they can be taken away again."""

    tasks: list[Task] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    score: float = 0.0


class Allocator:
    """Places the pods of one job after another."""

    def __init__(
        self, room: Room, queues: Queues, neighbours: Neighbours, *, topology: bool
    ) -> None:
        """Remember what is free when the session begins: it decides which HyperNodes are tried."""
        self.room = room
        self.tree = room.tree
        self.queues = queues
        self.neighbours = neighbours
        self.topology = topology
        """Whether the plugin network-topology-aware runs."""
        self.preference = Preference(room, active=topology)
        self.equal = EqualCells(room, neighbours)
        self._idle: list[Vector] = []
        self._known: dict[tuple[object, ...], tuple[tuple[int, ...], bool]] = {}

    def open_session(self) -> None:
        """Sum up what each HyperNode has left. Volcano does not update it within a session."""
        self.equal.forget()
        room = self.room
        self._idle = [
            tuple(whole - used for whole, used in zip(*pair, strict=True))
            for pair in zip(room.hyper_allocatable, room.hyper_used, strict=True)
        ]

    def forget(self) -> None:
        """Forget how attempts ended, because nodes are chosen differently now."""
        self._known.clear()
        self.equal.forget()

    def allocate(self, job: Job, sheet: Worksheet) -> tuple[Step, Worksheet] | None:
        """Place a job, or as much of it as may start, and return what is left of it."""
        if job.cap is None and not job.group.subgroups:
            return self._anywhere(job, sheet)
        return self._by_tier(job, sheet)

    def _anywhere(self, job: Job, sheet: Worksheet) -> tuple[Step, Worksheet] | None:
        """Place a job without a cap: once, in the whole cluster."""
        subgroup, left = job.subgroups[""], list(sheet.left[""])
        step = self._place(job, subgroup, left, self.tree.root)
        if step is None:
            return None
        return step, Worksheet({"": left} if left else {}, sheet.required)

    def _by_tier(self, job: Job, sheet: Worksheet) -> tuple[Step, Worksheet] | None:
        """Try every HyperNode, lowest tiers first; the best of the first tier that fits wins."""
        for tier in self._tiers_for_job(job):
            scores = self._scores_of_job(job, sheet, tier)
            if scores:
                best = max(scores, key=scores.__getitem__)
                step, rest = self._try(job, sheet.copy(), best)
                job.allocated = self.tree.common(job.allocated, best)
                return step, rest
        return None

    def _scores_of_job(self, job: Job, sheet: Worksheet, tier: list[int]) -> dict[int, float]:
        """Try a job in each HyperNode of a tier, and score those in which it may start.

        Equal HyperNodes are tried once, unless a pod is placed or a soft topology remembers trials.
        """
        if not job.group.subgroups and not job.group.task_minimum:
            subgroup, left = job.subgroups[""], sheet.left[""]
            return self.preference.of_each(subgroup, self._fitting(job, subgroup, left, tier))
        scores: dict[int, float | None] = {}
        counts = Counter(task.shape for left in sheet.left.values() for task in left)
        needed = max(1, job.minimum - job.placed - job.unscheduled)
        tier = [at for at in tier if self.room.holds(counts, at, needed)]
        fresh = all(task.node is None for task in job.tasks)
        alike = fresh and not any(map(_soft, job.subgroups.values()))
        names = self.equal.names(tier, job.tasks) if alike else {}
        known: dict[Hashable, float | None] = {}
        for hyper in tier:
            name = names.get(hyper, hyper), self._idle[hyper]
            if name not in known:
                known[name] = self._score_of_job(job, sheet, hyper)
            scores[hyper] = known[name]
        return {hyper: score for hyper, score in scores.items() if score is not None}

    def _score_of_job(self, job: Job, sheet: Worksheet, hyper: int) -> float | None:
        held = {name: one.allocated for name, one in job.subgroups.items()}
        step, _ = self._try(job, sheet.copy(), hyper)
        score = step.score if step.tasks and job.ready else None
        self.take_back(job, step)
        for name, allocated in held.items():
            job.subgroups[name].allocated = allocated
        return score

    def _tiers_for_job(self, job: Job) -> list[list[int]]:
        root = self.tree.root
        if not self.topology or job.cap is None:
            return [[root]]
        return self._tiers(root, job.cap, job.allocated, job.min_resources)

    def _tiers(
        self, start: int, cap: int, allocated: int | None, least: Vector | None
    ) -> list[list[int]]:
        """List the HyperNodes to try; those without enough in total are left out."""

        def eligible(at: int) -> bool:
            return least is None or within(least, self._idle[at])

        return self.tree.gradient(start, cap, allocated, eligible)

    def _try(self, job: Job, sheet: Worksheet, hyper: int) -> tuple[Step, Worksheet]:
        """Place the subgroups of a job inside one HyperNode, until the job may start."""
        whole = Step()
        for one in job.subgroups.values():
            one.failed_roles.clear()
        while sheet.left:
            name = sheet.next(job)
            left = sheet.left.pop(name)
            found = self._subgroup(job, job.subgroups[name], left, hyper)
            if found is None:
                continue
            step, rest = found
            whole.tasks += step.tasks
            whole.taken += step.taken
            whole.score += step.score
            if rest:
                sheet.left[name] = rest
            if job.ready:
                break
        return whole, sheet

    def _subgroup(
        self, job: Job, subgroup: Subgroup, left: list[Task], hyper: int
    ) -> tuple[Step, list[Task]] | None:
        """Place one subgroup in the best HyperNode of the lowest tier that has room for it."""
        for tier in self._tiers_for_subgroup(job, subgroup, left, hyper):
            found = self._fitting(job, subgroup, left, tier)
            if found:
                scores = self.preference.of_hyper_nodes(subgroup, found)
                best = max(found, key=scores.__getitem__)
                rest = list(left)
                subgroup.failed_roles.clear()
                step = self._place(job, subgroup, rest, best)
                assert step is not None  # noqa: S101 - it succeeded a moment ago
                step.score = scores[best]
                subgroup.allocated = self.tree.common(subgroup.allocated, best)
                return step, rest
        return None

    def _fitting(
        self, job: Job, subgroup: Subgroup, left: list[Task], tier: list[int]
    ) -> list[int]:
        """List the HyperNodes of a tier in which some pods of a subgroup get nodes.

        Equal pods are counted: whichever nodes they take, the others find the same room. Others
        are tried, in equal HyperNodes once.
        """
        name, counts = self._name(job, subgroup, left), Counter(task.shape for task in left)
        needed = max(1, subgroup.minimum - subgroup.placed - subgroup.unscheduled)
        tier = [at for at in tier if self.room.holds(counts, at, needed)]
        if name is not None and len(counts) == 1:
            return tier
        names = {} if _soft(subgroup) else self.equal.names(tier, left)
        known: dict[Hashable, bool] = {}
        for at in tier:
            like = names.get(at, at)
            if like not in known:
                known[like] = self._fits(job, subgroup, left, at, name)
        return [at for at in tier if known[names.get(at, at)]]

    def _fits(
        self, job: Job, subgroup: Subgroup, left: list[Task], hyper: int,
        name: tuple[object, ...] | None,
    ) -> bool:  # fmt: skip
        """Try a subgroup in one HyperNode, or remember how it went with equal pods and contents."""
        remembered = name is not None and self.preference.decided_inside(subgroup, hyper)
        key, contents = (hyper, name), self.room.contents(hyper) if remembered else ()
        if remembered and (known := self._known.get(key)) and known[0] == contents:
            return known[1]
        subgroup.failed_roles.clear()
        step = self._place(job, subgroup, list(left), hyper)
        if step is not None:
            self.take_back(job, step)
        fits = step is not None and bool(step.tasks)
        if remembered:
            self._known[key] = contents, fits
        return fits

    def _tiers_for_subgroup(
        self, job: Job, subgroup: Subgroup, left: Sequence[Task], hyper: int
    ) -> list[list[int]]:
        if not self.topology or not job.group.subgroups or subgroup.cap is None:
            return [[hyper]]
        pending = [task for task in subgroup.tasks if task.node is None]
        least = total(pending, tuple(0 for _ in left[0].shape.request))
        return self._tiers(hyper, subgroup.cap, subgroup.allocated, least)

    def _place(self, job: Job, subgroup: Subgroup, left: list[Task], hyper: int) -> Step | None:
        """Place pods of a subgroup in a HyperNode until the subgroup is ready.

        The placed pods, and those that found no node, are removed from `left`.
        """
        step, tried = Step(), Tried(job, self.room, self.neighbours)
        self.preference.begin(subgroup)
        while left:
            task = left.pop(0)
            if job.by_volcano and self.queues.refuses(job.group.queue, task.shape.request):
                continue
            if task.role and task.role in subgroup.failed_roles:
                continue
            extra = self.preference.of_cells(task.shape, subgroup, hyper)
            node = self.room.choose(task.shape, hyper, extra, tried.refused(task, hyper))
            if node is None:
                subgroup.failed_roles.add(task.role)
                if job.continues(subgroup):
                    continue
                break
            self._put(job, task, node, step)
            if subgroup.ready:
                break
        if subgroup.ready:
            self.preference.end(subgroup)
            return step
        self.take_back(job, step)
        return None

    def _name(
        self, job: Job, subgroup: Subgroup, left: Sequence[Task]
    ) -> tuple[object, ...] | None:
        """Return a key of what decides an attempt besides the room; None if a queue does too."""
        whole = total(left, tuple(0 for _ in left[0].shape.request))
        if job.by_volcano and self.queues.refuses(job.group.queue, whole):
            return None
        if any(map(self.neighbours.decide, {task.peer for task in left})):
            return None
        pods = tuple((task.shape.number, task.role) for task in left)
        missing = subgroup.minimum - subgroup.placed - subgroup.unscheduled
        elastic = job.minimum != len(job.tasks) and subgroup.minimum < len(subgroup.tasks)
        if elastic and (job.group.task_minimum or job.group.subgroups):
            return None
        others = job.minimum - job.placed if elastic else 0
        return pods, missing, elastic, others, subgroup.topology is None, subgroup.allocated

    def _put(self, job: Job, task: Task, node: int, step: Step) -> None:
        step.taken.append(self.room.take(node, task.shape.request))
        step.tasks.append(task)
        count(job, task, node)
        self.neighbours.arrive(task.peer, node)
        if job.by_volcano:
            self.queues.account(job.group.queue, task.shape.request)
        self.preference.landed(task.subgroup, node)

    def take_back(self, job: Job, step: Step) -> None:
        """Undo the last step."""
        for task, taken in zip(reversed(step.tasks), reversed(step.taken), strict=True):
            self.room.undo(taken)
            self.neighbours.leave(task.peer, taken.node)
            uncount(job, task)
            if job.by_volcano:
                self.queues.account(job.group.queue, task.shape.request, sign=-1)
            self.preference.left(task.subgroup, taken.node)


def _soft(subgroup: Subgroup) -> bool:
    return subgroup.topology is not None and not subgroup.topology.hard


def count(job: Job, task: Task, node: int) -> None:
    """Note that a pod has a node."""
    task.node = node
    if not task.shape.empty:
        job.placed += 1
        task.subgroup.placed += 1
        job.roles[task.role] += 1
        job.held[task.shape] += 1


def uncount(job: Job, task: Task) -> None:
    """Note that a pod has no node any more."""
    task.node = None
    if not task.shape.empty:
        job.placed -= 1
        task.subgroup.placed -= 1
        job.roles[task.role] -= 1
        job.held[task.shape] -= 1
