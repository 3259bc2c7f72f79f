"""Sessions of the scheduler, one after another, until nothing changes any more.

Source: Volcano v1.14.1 pkg/scheduler/actions/{enqueue,allocate,backfill}; JobOrderFn of
pkg/scheduler/plugins/{priority,gang,drf}: minMember alone decides whether a group counts as ready.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count as numbers

from kthena_components.placement.model import VOLCANO, Cluster, PodGroup
from kthena_components.placement.quotas_and_limit_ranges import Quotas
from kthena_components.placement.volcano.allocate import Allocator, Step, count, uncount
from kthena_components.placement.volcano.amounts_and_shapes import Dimensions, Shapes
from kthena_components.placement.volcano.jobs import Job, Reading, Worksheet, read_job, worksheet
from kthena_components.placement.volcano.neighbours import Neighbours
from kthena_components.placement.volcano.queues import Queues
from kthena_components.placement.volcano.room import Room
from kthena_components.placement.volcano.scores import read_scores
from kthena_components.placement.volcano.tree import Caps, Tree

TOPOLOGY = "network-topology-aware"
_SESSIONS = 200
_CHOICES = 16
_FEW_CHOICES = 2
"""How often other choices between equal nodes are tried, in small clusters and in large ones."""
_SMALL = 4000
"""Nodes × groups of a small cluster."""
Rank = tuple[int, bool, float, int]
"""What decides which group comes first: the lowest one."""


class Scheduler:
    """The scheduler of one cluster."""

    def __init__(self, cluster: Cluster, groups: Iterable[PodGroup]) -> None:
        """Read the cluster and its groups. Earlier groups were created earlier."""
        groups = list(groups)
        plugins = cluster.scheduler.plugins
        self.cluster = cluster
        self.dimensions = dimensions_of(cluster, groups)
        self.tree = _tree(cluster)
        self.shapes = Shapes(cluster, self.dimensions)
        active = TOPOLOGY in plugins
        self._drf = "drf" in plugins
        self.caps = Caps(self.tree, active, soft_walks=since(cluster.scheduler.version, 1, 15))
        scores = read_scores(cluster.scheduler, self.dimensions)
        self.room = Room(cluster, self.tree, self.dimensions, scores)
        self.queues = Queues(cluster, self.dimensions, self.room.hyper_allocatable[self.tree.root])
        self.neighbours = Neighbours(cluster)
        self._reading = Reading(self.shapes, self.neighbours, self.caps)
        self.allocator = Allocator(self.room, self.queues, self.neighbours, topology=active)
        self.quotas = Quotas(cluster.quotas)
        self._created = {id(one) for one in cluster.waiting}
        self._created |= {id(one.group) for one in cluster.running}
        self.jobs = [self._job(group, order) for order, group in enumerate(groups)]

    def _job(self, group: PodGroup, order: int) -> Job:
        """Read a group as a job; without Volcano its pods need no gang and are enqueued."""
        exists = id(group) in self._created
        counts = [one.count for one in group.pods] if exists else self.quotas.create(group)
        if group.scheduler == VOLCANO:
            return read_job(group, order, self._reading, counts)
        alone = PodGroup(
            namespace=group.namespace, name=group.name, owner=group.owner, pods=group.pods,
            minimum=0, priority=group.priority, scheduler=group.scheduler,
        )  # fmt: skip
        job = read_job(alone, order, self._reading, counts)
        job.by_volcano, job.enqueued = False, True
        return job

    def run(self, *, most: int | None = None) -> None:
        """Schedule until sessions change nothing, however they choose between equal nodes.

        Volcano chooses one of the best at random, and tries again each second.

        Args:
            most: How many other choices are tried. None: as many as the size allows.
        """
        few = len(self.cluster.nodes) * len(self.jobs) <= _SMALL
        usual = _CHOICES if few else _FEW_CHOICES
        choices = iter(range(usual if most is None else most))
        for _ in range(_SESSIONS):
            if self._session():
                continue
            choice = next(choices, None)
            if choice is None or not any(map(self._depends_on_choices, self.jobs)):
                return
            self.room.shuffle(choice)
            self.allocator.forget()

    def _session(self) -> bool:
        """Run the actions enqueue, allocate and backfill once."""
        self.queues.open_session(self.jobs, self.room.hyper_used[self.tree.root])
        self.allocator.open_session()
        self.neighbours.open_session()
        changed = self._enqueue()
        held: list[tuple[Job, Step]] = []
        changed |= self._allocate(held)
        changed |= self._backfill()
        for job, step in held:
            self._let_go(job, step)
        return self._complete() or changed

    def _complete(self) -> bool:
        """Let groups without a minimum out of the phase Pending when a session ends.

        As many pods as minMember are scheduled, so the phase becomes Completed or Running
        (pkg/scheduler/framework/session.go, getPodGroupPhase).
        """
        late = [job for job in self.jobs if not job.minimum and not job.enqueued]
        late = [job for job in late if not self.queues.missing(job)]
        for job in late:
            job.enqueued = True
        return bool(late)

    def _enqueue(self) -> bool:
        """Let groups out of the phase Pending, queue by queue."""
        waiting = [job for job in self.jobs if not job.enqueued and not self.queues.missing(job)]
        lines = _Lines(waiting, self.queues.shares, self.queues.order, self._rank)
        for job in iter(lambda: lines.next(lambda _: False), None):
            job.enqueued = self.queues.enqueue(job)
        return any(job.enqueued for job in waiting)

    def _allocate(self, held: list[tuple[Job, Step]]) -> bool:
        """Place the groups, queue by queue, until none is left to try."""
        sheets: dict[int, Worksheet] = {}
        for one in self.jobs:
            if one.enqueued and not one.invalid() and not self._blocked(one):
                sheet = worksheet(one)
                if sheet.left:
                    sheets[one.order] = sheet
        changed = False
        waiting = [job for job in self.jobs if job.order in sheets]
        lines = _Lines(waiting, self.queues.shares, self.queues.order, self._rank)
        for job in iter(lambda: lines.next(self._skips), None):
            found = self.allocator.allocate(job, sheets[job.order])
            if found is None:
                continue
            step, rest = found
            if not job.ready:
                held.append((job, step))
                continue
            changed |= bool(step.tasks)
            if rest.left:
                sheets[job.order] = rest
                lines.push(job)
        return changed

    def _rank(self, job: Job) -> Rank:
        """Order jobs (JobOrderFn of the plugins priority, gang and drf, then of the session)."""
        return (-job.group.priority, job.enough, self._share(job), job.order)

    def _share(self, job: Job) -> float:
        """Return the largest share that a job holds of any resource of the cluster."""
        if not self._drf or not job.placed:
            return 0.0
        whole = self.room.hyper_allocatable[self.tree.root]
        return max(
            sum(shape.request[at] * number for shape, number in job.held.items()) / amount
            for at, amount in enumerate(whole) if amount
        )  # fmt: skip

    def _skips(self, job: Job) -> bool:
        return job.by_volcano and self.queues.overused(job.group.queue)

    def _blocked(self, job: Job) -> bool:
        """Say whether a broken tree of HyperNodes keeps a group from being scheduled."""
        topologies = [job.group.topology, *(one.topology for one in job.group.subgroups)]
        return not self.tree.ready and any(one is not None for one in topologies)

    def _backfill(self) -> bool:
        """Place pods without requests, on any node with a slot."""
        changed = False
        for job in sorted(self.jobs, key=self._rank):
            if not job.enqueued or not job.ready or job.invalid():
                continue
            for task in job.tasks:
                if task.shape.empty and task.node is None:
                    refuses = self.neighbours.refused(task.peer)
                    node = self.room.choose(task.shape, self.tree.root, None, refuses)
                    if node is not None:
                        self.neighbours.arrive(task.peer, node)
                        self.room.take(node, task.shape.request)
                        count(job, task, node)
                        changed = True
        return changed

    def _let_go(self, job: Job, step: Step) -> None:
        """Free what a group took that does not start, when the session ends."""
        for task, taken in zip(step.tasks, step.taken, strict=True):
            self.room.release(taken.node, taken.request)
            self.neighbours.leave(task.peer, taken.node)
            uncount(job, task)
            if job.by_volcano:
                self.queues.account(job.group.queue, task.shape.request, sign=-1)
            self.allocator.preference.left(task.subgroup, taken.node)

    def has_room(self, hyper: int | None = None, like: int = 0, added: int = 0) -> bool:
        """Say whether the first group may start: no, if too few of its pods find room.

        Each shape is counted as if the others were not there.

        Args:
            hyper: Only in this HyperNode.
            like: The position of a node that added ones equal.
            added: How many nodes are added.
        """
        job, room = self.jobs[0], self.room
        within = self.tree.all[self.tree.root if hyper is None else hyper].nodes
        needed = (job.minimum or len(job.tasks)) - job.unscheduled
        for shape, number in Counter(task.shape for task in job.tasks).items():
            if needed > 0 and not shape.empty:
                found = added * room.slots(shape, room.allocatable[like]) if added else 0
                found += sum(room.slots(shape, room.idle[node])
                             for node in within if shape.accepted[node])  # fmt: skip
                needed -= min(number, found)
        return needed <= 0

    def others_decide(self, job: Job) -> bool:
        """Say whether other pods may decide where the pods of a group can be."""
        return any(map(self.neighbours.decide, {task.peer for task in job.tasks}))

    def _depends_on_choices(self, job: Job) -> bool:
        """Say whether a group may fail because of earlier choices for its own pods."""
        if job.ready or not job.enqueued or job.invalid():
            return False
        shapes = {task.shape.number for task in job.tasks}
        return len(job.subgroups) > 1 or len(shapes) > 1 or self.others_decide(job)


class _Lines:
    """The groups of each queue in their order; the queue with the lowest share is next."""

    def __init__(
        self, jobs: Sequence[Job], names: Iterable[str], order: Callable[[str], tuple[int, float]],
        rank: Callable[[Job], Rank],
    ) -> None:  # fmt: skip
        """Sort the jobs of each queue by rank; queues are taken by their share."""
        self._order, self._rank = order, rank
        self._tick = numbers()
        self._jobs: dict[str, list[tuple[Rank, int, Job]]] = {}
        for job in jobs:
            self.push(job)
        self._queues = [name for name in names if name in self._jobs]
        """Of equal shares, the queue that was created first comes first."""

    def push(self, job: Job) -> None:
        line = self._jobs.setdefault(job.group.queue, [])
        heapq.heappush(line, (self._rank(job), next(self._tick), job))

    def next(self, skips: Callable[[Job], bool]) -> Job | None:
        """Return the next group. A queue that is empty or has all it deserves is left out."""
        while self._queues:
            name = min(self._queues, key=self._known_order)
            line = self._jobs[name]
            if line and not skips(line[0][2]):
                return heapq.heappop(line)[2]
            self._queues.remove(name)
        return None

    def _known_order(self, name: str) -> tuple[int, float]:
        return self._order(name) if len(self._queues) > 1 else (0, 0.0)


def _tree(cluster: Cluster) -> Tree:
    names = tuple(node.name for node in cluster.nodes)
    kept = (cluster.domains, cluster.hyper_nodes)
    return cluster.computed.of(("tree", names), kept, lambda: Tree(cluster))


def dimensions_of(cluster: Cluster, groups: Iterable[PodGroup]) -> Dimensions:
    """Collect the resources that matter: those that any pod or limit asks for."""
    stated = [pods.requests for group in groups for pods in group.pods]
    stated += [group.min_resources for group in groups if group.min_resources]
    return Dimensions.of([*stated, cluster.computed.of(
        "resources", (cluster.nodes,),
        lambda: {name: 0 for node in cluster.nodes for name in node.allocatable},
    )])  # fmt: skip


def since(version: str, major: int, minor: int) -> bool:
    """Say whether a version is at least another one; an unreadable one counts as older."""
    parts = version.removeprefix("v").split(".")
    try:
        return (int(parts[0]), int(parts[1])) >= (major, minor)
    except (IndexError, ValueError):
        return False
