"""Groups as the scheduler sees them: jobs with tasks and subgroups, and which comes next.

Source: Volcano v1.14.1 pkg/scheduler/api/job_info.go, sub_job_info.go, and
pkg/scheduler/plugins/gang/gang.go; pkg/scheduler/actions/allocate/allocate.go,
organizeJobWorksheet.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from kthena_components.core.findings import count_of
from kthena_components.core.topology.domains import holds
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.model import PodGroup, PodSet, SubGroupPolicy, Topology
from kthena_components.placement.volcano.amounts_and_shapes import Shape, Shapes, Vector, plus
from kthena_components.placement.volcano.neighbours import Neighbours, Peer, Refuses
from kthena_components.placement.volcano.room import Room
from kthena_components.placement.volcano.tree import Caps


@dataclass(slots=True, eq=False)
class Task:
    """One pod."""

    position: int
    """Among the pods of its group."""
    shape: Shape
    role: str
    priority: int
    subgroup: "Subgroup"
    peer: Peer
    """What other pods see of it."""
    source: int = 0
    """Which entry of the group's pods it comes from."""
    node: int | None = None
    runs: bool = False
    """Whether it had its node before."""


@dataclass(slots=True, eq=False)
class Subgroup:
    """Pods of a group that are placed together, or all pods of a group without subgroups."""

    name: str
    policy: str
    """Its policy counts it. Empty: none does."""
    minimum: int
    topology: Topology | None
    cap: int | None
    index: int = 0
    tasks: list[Task] = field(default_factory=list)
    allocated: int | None = None
    """The HyperNode that its pods have. Later pods stay with it."""
    placed: int = 0
    unscheduled: int = 0
    """Pods without requests, which count as placed."""
    failed_roles: set[str] = field(default_factory=set)

    @property
    def ready(self) -> bool:
        """Whether enough of its pods have a node."""
        return self.placed + self.unscheduled >= self.minimum

    @property
    def priority(self) -> int:
        """The highest priority of its pods."""
        return max((0, *(task.priority for task in self.tasks)))


@dataclass(slots=True, eq=False)
class Job:
    """One group that shall be placed."""

    group: PodGroup
    order: int
    """Earlier ones were created earlier."""
    cap: int | None
    tasks: list[Task]
    subgroups: dict[str, Subgroup]
    minimum: int
    min_resources: Vector | None
    by_volcano: bool = True
    missing: int = 0
    """Pods that a quota keeps from being created."""
    enqueued: bool = False
    """Whether it may be scheduled: its phase is no longer Pending."""
    allocated: int | None = None
    placed: int = 0
    roles: Counter[str] = field(default_factory=Counter)
    held: Counter[Shape] = field(default_factory=Counter)
    """The placed pods, by what they request."""
    unscheduled: int = 0
    mixed: frozenset[str] = frozenset()
    """Roles whose pods differ in what they request."""

    @property
    def ready(self) -> bool:
        """Whether its pods may start: the gang, its tasks and its subgroups have their minima."""
        return self.enough and self._tasks_ready() and self._subgroups(ready=True)

    @property
    def enough(self) -> bool:
        """Whether as many pods as minMember have a node."""
        return self.placed + self.unscheduled >= self.minimum

    @property
    def judges_tasks(self) -> bool:
        """Whether minTaskMember holds: not if minMember is lower than its sum."""
        return self.minimum >= sum(self.group.task_minimum.values())

    def invalid(self) -> str:
        """Say why the scheduler never looks at it. Empty: it does."""
        counts = Counter(task.role for task in self.tasks)
        if self.judges_tasks:
            for role, least in self.group.task_minimum.items():
                if counts[role] < least:
                    return (
                        f"minTaskMember wants {count_of(least, 'pod')} of {role}, and "
                        f"it has {counts[role]}"
                    )
        if not self._subgroups(ready=False):
            return next(self._too_few())
        if len(self.tasks) < self.minimum:
            return f"minMember is {self.minimum}, and it has {count_of(len(self.tasks), 'pod')}"
        return ""

    def continues(self, subgroup: Subgroup) -> bool:
        """Say whether other pods are tried after one found no node (NeedContinueAllocating)."""
        if self.minimum == len(self.tasks) or subgroup.minimum >= len(subgroup.tasks):
            return False
        if self.group.subgroups:
            return True
        failed = subgroup.failed_roles
        if not self.judges_tasks:
            left = sum(task.node is None and task.role not in failed for task in self.tasks)
            return self.placed + left >= self.minimum
        return all(self.roles[role] >= self.group.task_minimum.get(role, 0) for role in failed)

    def _tasks_ready(self) -> bool:
        wanted = self.group.task_minimum.items() if self.judges_tasks else ()
        return all(self.roles[role] >= least for role, least in wanted)

    def _subgroups(self, *, ready: bool) -> bool:
        return not any(self._too_few(ready=ready))

    def _too_few(self, *, ready: bool = False) -> Iterator[str]:
        counts = Counter(one.policy for one in self.subgroups.values() if one.ready or not ready)
        for name, least in self.policies().items():
            if counts[name] < least:
                yield f"minSubGroups of {name[1:]} is {least}, and it has {counts[name]} subgroups"

    def policies(self) -> dict[str, int]:
        """Return minSubGroups by policy; of two with one name, the later one holds."""
        return {f"/{policy.name}": policy.minimum for policy in self.group.subgroups}


@dataclass(frozen=True, slots=True)
class Reading:
    """What finds equal pods, and reads topologies."""

    shapes: Shapes
    neighbours: Neighbours
    caps: Caps


def read_job(group: PodGroup, order: int, reading: Reading, counts: Sequence[int]) -> Job:
    """Form the tasks and subgroups of a group.

    Args:
        order: Earlier ones were created earlier.
        reading: Finds equal pods, and reads topologies.
        counts: How many pods of each set are created.
    """
    shapes, caps = reading.shapes, reading.caps
    cap = caps.of_group(group.topology)
    stated = group.min_resources
    job = Job(group, order, cap, [], {}, group.minimum,
              None if stated is None else shapes.dimensions.request(stated, pods=0))  # fmt: skip
    first = 0
    for source, (pods, number) in enumerate(zip(group.pods, counts, strict=True)):
        start, first = first, first + pods.count
        job.missing += pods.count - number
        if not number:
            continue
        shape = shapes.of(pods, group.namespace)
        peer = reading.neighbours.peer(pods, group.namespace)
        subgroup = _subgroup(job, pods, caps)
        for position in range(start, start + number):
            task = Task(position, shape, pods.task, pods.priority, subgroup, peer, source)
            job.tasks.append(task)
            subgroup.tasks.append(task)
        if shape.empty:
            job.unscheduled += number
            subgroup.unscheduled += number
            job.roles[pods.task] += number
    kinds = {(task.role, task.shape.number) for task in job.tasks}
    several = Counter(role for role, _ in kinds if role)
    job.mixed = frozenset(role for role, number in several.items() if number > 1)
    return job


def total(tasks: Iterable[Task], nothing: Vector) -> Vector:
    """Add up what pods request."""
    for task in tasks:
        nothing = plus(nothing, task.shape.request)
    return nothing


def _subgroup(job: Job, pods: PodSet, caps: Caps) -> Subgroup:
    """Find the subgroup of a pod: the first policy that matches, or all others together."""
    at, values = policy_of(job.group, pods.labels)
    if values:
        policy = job.group.subgroups[at]
        name = f"/{policy.name}-{'-'.join(values)}"
        if name not in job.subgroups:
            index = int(values[0]) if _is_number(values[0]) else 0
            job.subgroups[name] = Subgroup(
                name, f"/{policy.name}", policy.size, policy.topology,
                caps.of_subgroup(policy.topology, job.cap), index,
            )  # fmt: skip
        return job.subgroups[name]
    if "" not in job.subgroups:
        topology = job.group.topology
        least = 1 if job.group.subgroups else job.minimum
        cap = caps.of_subgroup(topology, job.cap)
        job.subgroups[""] = Subgroup("", "", least, topology, cap)
    return job.subgroups[""]


def policy_of(group: PodGroup, labels: Mapping[str, str]) -> tuple[int, list[str]]:
    """Find the first policy that matches a pod, and the values that name its subgroup."""
    for at, policy in enumerate(group.subgroups):
        if values := _values(policy, labels):
            return at, values
    return -1, []


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _values(policy: SubGroupPolicy, labels: Mapping[str, str]) -> list[str]:
    """Return the values that name a subgroup; without matchLabelKeys, no pod matches."""
    plain = mapping(policy.match_labels.get("matchLabels"))
    expressions = sequence(policy.match_labels.get("matchExpressions"))
    if any(labels.get(key) != value for key, value in plain.items()):
        return []
    if not all(holds(mapping(item), labels) for item in expressions):
        return []
    values = [labels.get(key, "") for key in policy.match_label_keys]
    return values if all(values) else []


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
        """Return the nodes that others take from a pod; None if it may have all that fit it."""
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
