"""Compares the two answers of `fit` about random gangs: the scheduler's model, and the solver.

The model chooses as Volcano's scheduler does, and may miss a place; the exact answer may not. So no
gang may fit of which the exact answer says that it has no place. This needs no cluster.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from conformance.fit.constraints import broken
from conformance.fit.drawn_case import draw_cases
from conformance.fit.random_clusters import Case
from conformance.fit.verdicts import read
from kthena_components.placement.exact_solver import installed
from kthena_components.placement.model import Cluster, PodGroup, Queue, Verdict
from kthena_components.placement.place import exists, place
from kthena_components.placement.volcano.scheduler import Scheduler
from kthena_components.placement.workloads import pod_groups_of

if TYPE_CHECKING:
    from conformance.__main__ import Context

Body = dict[str, Any]
NUMBER = 1_000
"""Number of cases at scale 1."""
_READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@dataclass(slots=True)
class TwoAnswers:
    """What both say about the gangs of some cases, each gang alone in its cluster."""

    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def hold(self, case: Case) -> None:
        """Ask both about each gang of a case."""
        cluster, groups = _question(case)
        self.seen["cases"] += 1
        for group in groups:
            (outcome,) = place(cluster, [group])
            exact = exists(Scheduler(cluster, [group]), group)
            self.seen["gangs"] += 1
            self.seen[f"gangs that '{outcome.verdict}', place exists: {_WORDS[exact]}"] += 1
            title = f"{case.title}, {group.name}"
            if outcome.verdict is Verdict.FITS and exact is False:
                self.wrong.append(f"{title} fits, and has no place")
            placed = {group.name: outcome.placement.nodes} if outcome.placement else {}
            self.wrong += [f"{title}: {told}" for told in broken(cluster, [group], placed)]


_WORDS = {True: "yes", False: "no", None: "not known"}


def _question(case: Case) -> tuple[Cluster, list[PodGroup]]:
    """Return the cluster of a case without its queues, and its gangs."""
    nodes = [{**body, "status": {**body["status"], **_READY}} for body in case.nodes]
    objects = [*nodes, *case.hyper_nodes, *case.fillers]
    pods = list(_bodies(case, written=True))
    there = replace(read([*objects, *pods]), queues=(Queue(name="default"),))
    groups = [*there.waiting, *pod_groups_of(list(_bodies(case, written=False)))]
    known = [replace(one, queue="default") for one in groups if one.unknown is None and one.size]
    return replace(there, waiting=()), known


def _bodies(case: Case, *, written: bool) -> Iterator[Body]:
    for gang in case.gangs:
        if (gang.kind == "written") is written:
            yield from gang.bodies


def run(context: "Context") -> None:
    """Ask about every case."""
    if not installed():
        context.part.leave_out("the extra `exact` is not installed, so nothing is exact")
        return
    found = TwoAnswers()
    for case in draw_cases(context.seed, context.many(NUMBER)):
        found.hold(case)
    for what, number in sorted(found.seen.items()):
        context.part.count(what, number)
    told = f"{found.seen['gangs']} gangs: what fits has a place, and keeps every constraint"
    context.part.check(told, holds=not found.wrong, seen=found.wrong)
