"""Places groups of pods into a cluster, as its scheduler will, and reports what does not fit. Pure.

`place` answers for each group: it fits, it waits, or it never fits; where, and if not why.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date

from kthena_components.cluster.objects import accelerators
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.topology.domains import lowest
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.changes import after, fits, starts
from kthena_components.placement.exact_solver import solve
from kthena_components.placement.model import (
    Change,
    Cluster,
    Obstacle,
    Outcome,
    Placement,
    PodGroup,
    Verdict,
)
from kthena_components.placement.node_loss_and_growth import among_others
from kthena_components.placement.quotas_and_limit_ranges import released
from kthena_components.placement.reasons import explain
from kthena_components.placement.relief import slots
from kthena_components.placement.volcano.jobs import Job, policy_of
from kthena_components.placement.volcano.neighbours import asks_others, selects_namespaces
from kthena_components.placement.volcano.scheduler import Scheduler

RULE = "placement-fits"
MOST_DAYS = 7
"""After so many days, what a cluster had says little."""
FITTED = frozenset({Verdict.FITS, Verdict.UNKNOWN})
_TELLS = {Verdict.PARTLY: "fits in part", Verdict.WAITS: "waits", Verdict.NEVER: "never fits"}


def unplaced(outcome: Outcome, cluster: Cluster, level: Level = Level.MANDATORY) -> Finding:
    """Report a group that waits or never fits."""
    why = why_not(outcome)
    seen = f"{outcome.group.title} {_TELLS[outcome.verdict]} on {cluster.source}"
    return Finding(
        path="",
        seen=f"{seen}: {why}" if why else seen,
        remedy=first_change(outcome) or "run `kthena-components fit` to see what is free",
        rule=RULE,
        level=level,
    )


def stale(cluster: Cluster, today: date) -> Iterator[Finding]:
    """Report a snapshot that is old, or that says it was read after today."""
    if cluster.taken is None:
        return
    days, read = (today - cluster.taken.date()).days, f"the snapshot of {cluster.source}"
    message = f"{read} is {count_of(days, 'day')} old, and may be out of date after {MOST_DAYS}"
    if days < 0:
        message = f"{read} is dated {cluster.taken.date()}, after today, so its age is not known"
    if not 0 <= days <= MOST_DAYS:
        yield Finding(
            path="",
            seen=message,
            remedy="run `kthena-components inventory` again",
            rule=RULE,
            level=Level.ADVISORY,
            most=Level.ADVISORY,
        )


def why_not(outcome: Outcome) -> str:
    """Say why a group does not fit, or what else must be known about it."""
    gap = outcome.group.unknown
    said = [outcome.note, *(obstacle.text for obstacle in outcome.obstacles)]
    return gap.because if gap else ". ".join(text.rstrip(".") for text in said if text)


def first_change(outcome: Outcome) -> str:
    """Return the smallest change after which a group fits."""
    changes = (change.text for each in outcome.obstacles for change in each.changes)
    return next(changes, "").rstrip(".")


_EXPLAINED, _EXPLAINED_NODES = 20, 20_000
"""Reasons are looked for in at most this many different groups; in fewer, if nodes are many."""


def place(cluster: Cluster, groups: Sequence[PodGroup]) -> list[Outcome]:
    """Answer for each group whether it fits, in the order given.

    Groups that wait in the cluster already are placed first if their priority is equal.

    Args:
        cluster: What is there.
        groups: What shall run.
    """
    groups = [with_gap(cluster, group) for group in groups]
    known = [group for group in groups if group.unknown is None]
    scheduler, found = among_others(cluster, known)
    scheduler.run()
    jobs = iter(found)
    asked = _Answers(cluster, scheduler)
    return [
        Outcome(group=group, verdict=Verdict.UNKNOWN, note=group.unknown.because)
        if group.unknown is not None
        else asked.outcome(group, next(jobs))
        for group in groups
    ]


def emptied(cluster: Cluster) -> Cluster:
    """Take away everything that runs or waits."""
    return replace(
        cluster,
        nodes=[replace(node, used={}) for node in cluster.nodes],
        queues=[replace(queue, used={}) for queue in cluster.queues],
        quotas=[replace(quota, used={}) for quota in cluster.quotas],
        running=(), waiting=(), neighbours=(),
    )  # fmt: skip


class _Answers:
    """What is asked about one cluster. Equal groups get equal answers."""

    def __init__(self, cluster: Cluster, scheduler: Scheduler) -> None:
        self._cluster = cluster
        self._scheduler = scheduler
        self._left = after(cluster, scheduler)
        self._empty = emptied(cluster)
        self._known: dict[Hashable, tuple[Verdict, tuple[Obstacle, ...], bool | None]] = {}

    def outcome(self, group: PodGroup, job: Job) -> Outcome:
        """Answer for one group."""
        where = _placement(self._cluster, job)
        if starts(job):
            who = "a LimitRange" if any(one.refusals for one in group.pods) else "a quota"
            note = f"{who} keeps {count_of(job.missing, 'pod')} from being created"
            return Outcome(group=group, verdict=Verdict.FITS, placement=where, exists=True,
                           note=note if job.missing else "")  # fmt: skip
        alike = likeness(self._cluster, group, others=self._scheduler.others_decide(job))
        placed = sum(task.node is not None for task in job.tasks)
        key = alike, job.missing, placed
        if key not in self._known:
            verdict = Verdict.WAITS if fits(self._empty, group, choices=None) else Verdict.NEVER
            reasons: list[Obstacle] = []
            nodes = max(1, len(self._cluster.nodes))
            left = self._left_for(group, job)
            if len(self._known) < min(_EXPLAINED, max(2, _EXPLAINED_NODES // nodes)):
                reasons = explain(left, self._empty, _rest(group, job))
            possible = exists(Scheduler(left, [group]), group)
            self._known[key] = verdict, tuple(reasons), possible
        verdict, obstacles, found = self._known[key]
        version = self._cluster.scheduler.version
        note = f"a place exists, but Volcano {version} leaves it waiting" if found else ""
        if not job.minimum and where is not None:
            verdict, note = Verdict.PARTLY, _partly(group, where, verdict)
        return Outcome(group=group, verdict=verdict, placement=where, exists=found,
                       obstacles=obstacles_of(group, obstacles), note=note)  # fmt: skip

    def _left_for(self, group: PodGroup, job: Job) -> Cluster:
        """Return the cluster as it is for a group: its own pods without nodes do not count."""
        own = [group.pods[task.source] for task in job.tasks if task.node is None]
        return replace(self._left, quotas=released(self._left.quotas, {group.namespace: own}))


def _partly(group: PodGroup, where: Placement, rest: Verdict) -> str:
    """Say what the placed pods of a group without a gang hold, and what becomes of the others."""
    each = [pods.requests for pods in group.pods for _ in range(pods.count)]
    held = [requests for requests, node in zip(each, where.nodes, strict=True) if node]
    gpus, left = sum(map(accelerators, held)), len(each) - len(held)
    having = f" and hold {count_of(gpus, 'GPU')}" if gpus else ""
    keep = "" if rest is Verdict.WAITS else ", also on a cluster with nothing else on it"
    others = f"{count_of(left, 'pod')} {'is' if left == 1 else 'are'} not"
    return (
        f"{len(held)} of {count_of(len(each), 'pod')} are placed{having}; {others}{keep}. No "
        "gang keeps them together: an engine with pods among both does not start, and its placed "
        "pods keep what they hold"
    )


def _rest(group: PodGroup, job: Job) -> PodGroup:
    """Leave out the placed pods of a group whose pods start alone."""
    if job.minimum:
        return group
    placed = Counter(task.source for task in job.tasks if task.node is not None)
    pods = (replace(one, count=one.count - placed[at]) for at, one in enumerate(group.pods))
    return replace(group, pods=tuple(one for one in pods if one.count))


def _placement(cluster: Cluster, job: Job) -> Placement | None:
    """Return where the pods of a job run, with the lowest domain of them all; None if nowhere."""
    names = [""] * job.group.size
    for task in job.tasks:
        if task.node is not None:
            names[task.position] = cluster.nodes[task.node].name
    if not any(names):
        return None
    domain = lowest(cluster.domains, frozenset(filter(None, names)))
    return Placement(nodes=tuple(names), domain=domain)


# Finds groups about which a cluster does not state enough.


_NEIGHBOURS = Unknown(
    "other pods decide where its pods can be (host ports, affinity, spread constraints), and the "
    "inventory does not list the pods that run, in `neighbours`"
)
_NAMESPACES = Unknown("an affinity chooses namespaces by labels, which an inventory does not have")


def with_gap(cluster: Cluster, group: PodGroup) -> PodGroup:
    """Return a group with the reason why nothing can be said about it, if there is one."""
    if group.unknown is not None:
        return group
    specs = [pods.spec for pods in group.pods]
    if any(map(selects_namespaces, specs)):
        return replace(group, unknown=_NAMESPACES)
    hidden = cluster.neighbours is None and any(node.used for node in cluster.nodes)
    if hidden and any(map(asks_others, specs)):
        return replace(group, unknown=_NEIGHBOURS)
    return group


# Whether any assignment of a group's pods exists, whatever a scheduler's choices are.
#
# Equal pods are counted, which is exact. For others, a solver is asked if it is installed.


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


# Finds groups that get equal answers, so that each question is asked once.


def likeness(cluster: Cluster, group: PodGroup, *, others: bool = False) -> Hashable:
    """Return what decides where the pods of a group fit: all but names.

    Its namespace decides, too, if a cluster has quotas or volumes. Of the labels of its pods, only
    those that form its subgroups do, unless other pods decide where they can be.
    """
    pods = tuple(replace(one, name="", labels=one.labels if others else {}) for one in group.pods)
    policies = tuple(replace(one, match_labels={}) for one in group.subgroups)
    found = replace(group, name="", namespace="", owner="", pods=pods, subgroups=policies)
    space = group.namespace if others or cluster.quotas or cluster.volumes else ""
    return repr(found), space, tuple(_subgroups(group))


def _subgroups(group: PodGroup) -> Iterator[tuple[int, tuple[str, ...]]]:
    for pods in group.pods if group.subgroups else ():
        at, values = policy_of(group, pods.labels)
        yield at, tuple(values)


def obstacles_of(group: PodGroup, found: Iterable[Obstacle]) -> tuple[Obstacle, ...]:
    """Return the obstacles of an equal group with this group's names."""
    return tuple(
        replace(one, changes=tuple(_change(group, change) for change in one.changes))
        for one in found
    )


def _change(group: PodGroup, change: Change) -> Change:
    """Give a change of a renamed group the names of the user's own group back."""
    other = change.group
    if other is None or len(other.pods) != len(group.pods):
        return change
    pods = tuple(
        replace(new, name=own.name, labels=own.labels)
        for new, own in zip(other.pods, group.pods, strict=True)
    )
    policies = tuple(
        replace(new, match_labels=own.match_labels)
        for new, own in zip(other.subgroups, group.subgroups, strict=True)
    )
    own = replace(other, namespace=group.namespace, name=group.name, owner=group.owner,
                  pods=pods, subgroups=policies)  # fmt: skip
    return replace(change, group=own)
