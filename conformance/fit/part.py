"""Asks Volcano's scheduler about random gangs on random clusters, and compares its answers."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from io import StringIO
from typing import Any

from conformance.__main__ import Context
from conformance.fit.changes import helps, is_possible, others_leave
from conformance.fit.constraints import broken
from conformance.fit.drawn_case import draw_cases
from conformance.fit.driven_cluster import Answer, DrivenCluster
from conformance.fit.random_clusters import Case
from conformance.fit.random_impossible import draw_impossible
from conformance.fit.shrink import shrink
from conformance.fit.verdicts import Compared, cluster_of, compare, groups_of, nodes_of, read
from conformance.report import Part
from kthena_components.cli.main import main
from kthena_components.placement.inventory import parse_inventory
from kthena_components.placement.model import Change, PodGroup, Verdict
from kthena_components.placement.place import place
from sandbox.cluster import Size

Body = dict[str, Any]

NUMBER = 50
"""Number of cases at scale 1."""
CHANGES = 20
"""Number of changes that are tried at scale 1."""
IMPOSSIBLE = 10
"""Number of gangs that never fit, of each reason as many, whose change is tried at scale 1."""
AGREEMENT = 0.99
"""Share of gangs about which the scheduler and the model must agree."""
LIVE = 10
"""Each so many cases, the command `inventory` reads the cluster."""
AGAIN = 3
"""How often the scheduler is asked again: it breaks ties at random, so that its answers differ."""


@dataclass(slots=True)
class _Run:
    """One run of this part."""

    driven: DrivenCluster
    part: Part
    changes: int
    """Number of changes still to try."""
    seen: Counter[str] = field(default_factory=Counter)
    differing: list[str] = field(default_factory=list)
    useless: list[str] = field(default_factory=list)
    """Changes after which the gang still waits."""

    def hold(self, case: Case) -> None:
        """Ask about one case, and try one change."""
        answer, compared = self._ask(case, self._look)
        self._judge(case, answer, compared)
        if self.changes > 0 and self._change(case, compared):
            self.changes -= 1
        self.driven.clear()
        for one in compared:
            if not one.agrees:
                self._explain(case, one)

    def hold_impossible(self, reason: str, case: Case) -> None:
        """See that a gang is told never to fit, and that the named change lets it."""
        answer, compared = self._ask(case)
        self._judge(case, answer, compared)
        (only,) = compared
        never = only.outcome.verdict is Verdict.NEVER and not only.placed
        self.part.check(f"{case.title}: never placed", holds=never, seen=only)
        tried = self._change(case, compared)
        self.part.check(f"{case.title}: a change is named", holds=tried, seen=only.outcome)
        self.seen[f"changes tried for {reason}"] += tried
        self.driven.clear()

    def _ask(
        self, case: Case, look: Callable[[list[Body]], object] = list
    ) -> tuple[Answer, list[Compared]]:
        """Ask about a case. The scheduler gets more time for gangs that should fit."""
        answer = self.driven.ask(case, look)
        compared = compare(answer, place)
        if any(one.outcome.verdict is Verdict.FITS and not one.starts for one in compared):
            answer = self.driven.later(answer)
            compared = compare(answer, place)
        return answer, compared

    def _look(self, objects: list[Body]) -> None:
        """See that `inventory` writes of some cases what the objects say."""
        self.seen["cases"] += 1
        if self.seen["cases"] % LIVE != 1:
            return
        told, kubeconfig = StringIO(), str(self.driven.sandbox.layout.kubeconfig)
        with redirect_stdout(told):
            status = main(["inventory", "--with-names", "--kubeconfig", kubeconfig])
        found = replace(parse_inventory(told.getvalue()), taken=None, source="", notes=())
        expected = replace(read(objects), source="", notes=())
        self.part.check("`inventory` of the cluster", holds=status == 0 and found == expected,
                        seen=told.getvalue())  # fmt: skip

    def _judge(self, case: Case, answer: Answer, compared: list[Compared]) -> None:
        cluster, groups = cluster_of(answer.objects), groups_of(answer.objects)
        placed = {group.name: nodes_of(answer, group) for group in groups}
        wrong = list(broken(cluster, groups, placed))
        self.part.check(f"{case.title}: Volcano keeps the constraints", holds=not wrong, seen=wrong)
        ours = {one.group.name: one.outcome.placement.nodes
                for one in compared if one.outcome.placement}  # fmt: skip
        wrong = list(broken(cluster, groups, ours))
        self.part.check(f"{case.title}: so does the model", holds=not wrong, seen=wrong)
        for one in compared:
            self.seen["gangs"] += 1
            self.seen[f"gangs that Volcano {'places' if one.starts else 'leaves waiting'}"] += 1
            self.seen[f"gangs of which we say '{one.outcome.verdict}'"] += 1

    def _explain(self, case: Case, one: Compared) -> None:
        """Ask again. If the answers stay different, find the smallest case and print it."""
        if not self._differs(case, one.group.name):
            self.seen["gangs about which Volcano's own answers differ"] += 1
            return
        self.part.say(f"{case.title}: {one}")
        small = shrink(case, lambda smaller: self._differs(smaller, one.group.name))
        self.differing.append(f"{case.title}: {one}\n{json.dumps(_shown(small))}")
        self.part.say(f"smallest case of a disagreement: {self.differing[-1]}")

    def _differs(self, case: Case, group: str) -> bool:
        """Return whether the two disagree about a gang each time."""
        for _ in range(AGAIN):
            compared = {one.group.name: one for one in self._ask(case)[1]}
            self.driven.clear()
            if group not in compared or compared[group].agrees:
                return False
        return True

    def _change(self, case: Case, compared: list[Compared]) -> bool:
        """Make a change that is named for one waiting gang, and see that it then is placed."""
        waiting = {one.group.name for one in compared if not one.placed and one.agrees}
        objects = self.driven.objects()
        draw = random.Random(f"change of {case.title}")  # noqa: S311 - to repeat, not to hide
        for group, changes in _changes(objects, waiting):
            possible = [one for one in changes if is_possible(self.driven, group, one)]
            if not possible:
                continue
            change = draw.choice(possible)
            others_leave(self.driven, group)
            self.seen["changes tried"] += 1
            if helps(self.driven, group, change):
                self.seen["changes after which Volcano places the gang"] += 1
            else:
                self.useless.append(f"{group.name}: {change.text}: {json.dumps(objects)}")
                self.part.say(f"a change after which the gang still waits: {self.useless[-1]}")
            return True
        return False


def run(context: Context) -> None:
    """Ask about every case."""
    sandbox = context.sandbox(Size(racks=1, nodes=1))
    try:
        found = _Run(DrivenCluster(sandbox), context.part, context.many(CHANGES))
        for case in draw_cases(context.seed, context.many(NUMBER)):
            found.hold(case)
        for reason, case in draw_impossible(context.seed, context.many(IMPOSSIBLE)):
            found.hold_impossible(reason, case)
    finally:
        sandbox.processes.stop_all()
    total, differing = found.seen["gangs"], len(found.differing)
    share = 1 - differing / total
    for what, number in sorted(found.seen.items()):
        context.part.count(what, number)
    context.part.count("gangs about which the two disagree", differing)
    allowed = max(1, round((1 - AGREEMENT) * total))
    context.part.check(f"at most {allowed} of {total} gangs differ", holds=differing <= allowed,
                       seen=f"{share:.1%} agree: {found.differing}")  # fmt: skip
    tried = found.seen["changes tried"]
    context.part.check(f"after each of {tried} named changes the gang is placed",
                       holds=not found.useless, seen=found.useless)  # fmt: skip


def _changes(objects: list[Body], waiting: set[str]) -> Iterator[tuple[PodGroup, list[Change]]]:
    """List the changes of each waiting gang, asked about alone beside what runs now."""
    cluster = cluster_of(objects)
    for group in groups_of(objects):
        if group.name not in waiting:
            continue
        outcome = place(cluster, [group])[0]
        yield group, [change for obstacle in outcome.obstacles for change in obstacle.changes]


def _shown(case: Case) -> dict[str, object]:
    """Return a case as the objects that make it."""
    bodies = [body for gang in case.gangs for body in gang.bodies]
    nodes = [case.nodes, case.hyper_nodes, case.fillers, bodies]
    objects = [body for part in nodes for body in part]
    return {"usual plugins": case.usual, "queues": case.queues, "objects": objects}
