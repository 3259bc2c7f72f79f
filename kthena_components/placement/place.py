"""Places groups of pods into a cluster, as its scheduler will. Pure.

`place` answers for each group: it fits, it waits, or it never fits; where, and if not why.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace

from kthena_components.cluster.objects import accelerators
from kthena_components.core.findings import count_of
from kthena_components.core.topology.domains import lowest
from kthena_components.placement.alike import likeness, obstacles_of
from kthena_components.placement.changes import after, fits, starts
from kthena_components.placement.exact import exists
from kthena_components.placement.model import (
    Cluster,
    Obstacle,
    Outcome,
    Placement,
    PodGroup,
    Verdict,
)
from kthena_components.placement.quotas import released
from kthena_components.placement.reasons import explain
from kthena_components.placement.rivals import among_others
from kthena_components.placement.unstated import with_gap
from kthena_components.placement.volcano.jobs import Job
from kthena_components.placement.volcano.scheduler import Scheduler

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
    asked = _Asked(cluster, scheduler)
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


class _Asked:
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
    names = [""] * job.group.size
    for task in job.tasks:
        if task.node is not None:
            names[task.position] = cluster.nodes[task.node].name
    if not any(names):
        return None
    domain = lowest(cluster.domains, frozenset(filter(None, names)))
    return Placement(nodes=tuple(names), domain=domain)
