"""Uses CP-SAT to find out whether unequal pods, or pods in subgroups, have a placement.

The extra `exact` installs OR-Tools. Without it, and where the solver finds no answer within its
limit, the answer is not known. The limit counts steps and not seconds, so that each machine gives
the same answer.
"""

from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.volcano.amounts_and_shapes import Shape
from kthena_components.placement.volcano.jobs import Job, Subgroup
from kthena_components.placement.volcano.scheduler import Scheduler

_STEPS = 5.0
"""The limit of one question, in CP-SAT's deterministic time: about as many seconds."""
_MOST = 100_000
"""More variables are not tried."""


def installed() -> bool:
    """Say whether the solver is installed."""
    return find_spec("ortools") is not None


def solve(scheduler: Scheduler, job: Job, *, steps: float = _STEPS) -> bool | None:
    """Return whether an assignment of a job exists; None if that is not known."""
    sets = _sets(job)
    size = len(scheduler.cluster.nodes) * len(sets)
    if not installed() or size > _MOST or any(shape.empty for _, shape, _ in sets):
        return None
    tree, cap = scheduler.tree, scheduler.tree.top if job.cap is None else job.cap
    if not any(scheduler.has_room(at) for at, one in enumerate(tree.all) if one.tier <= cap):
        return False
    from ortools.sat.python import cp_model  # noqa: PLC0415 - large, and seldom needed

    question = _Question(cp_model.CpModel(), scheduler, job)
    question.place(sets)
    solver = cp_model.CpSolver()
    solver.parameters.max_deterministic_time = steps
    solver.parameters.num_workers = 1
    outcome = solver.status_name(solver.solve(question.model))
    return {"INFEASIBLE": False, "OPTIMAL": True, "FEASIBLE": True}.get(outcome)


Sets = dict[tuple[str, Shape, str], int]
"""How many equal pods each subgroup has in each role."""


def _sets(job: Job) -> Sets:
    return dict(Counter((task.subgroup.name, task.shape, task.role) for task in job.tasks))


@dataclass(slots=True)
class _Question:
    """The variables and the constraints of one job."""

    model: Any
    scheduler: Scheduler
    job: Job

    def place(self, sets: Sets) -> None:
        """Count the pods of each set on each node, and state what must hold."""
        started = {name: self.model.new_bool_var(f"{name} starts") for name in self.job.subgroups}
        counts = {
            key: self._on_nodes(key[1], number, f"{key[0]} {key[2]}")
            for key, number in sets.items()
        }
        for key, number in sets.items():
            self.model.add(sum(counts[key].values()) <= number * started[key[0]])
        self._capacity(counts)
        self._minima(counts, started)
        self._within(counts.values(), self.job.cap, True)
        for name, subgroup in self.job.subgroups.items():
            own = [on for key, on in counts.items() if key[0] == name]
            self._within(own, subgroup.cap, started[name])

    def _on_nodes(self, shape: Shape, number: int, title: str) -> dict[int, Any]:
        return {
            node: self.model.new_int_var(0, number, f"{title} {shape.number} on {node}")
            for node, accepted in enumerate(shape.accepted)
            if accepted
        }

    def _capacity(self, counts: dict[tuple[str, Shape, str], dict[int, Any]]) -> None:
        """No node holds more than it has left."""
        for node, idle in enumerate(self.scheduler.room.idle):
            held = [(key[1].request, on[node]) for key, on in counts.items() if node in on]
            for at, left in enumerate(idle):
                asked = [(request[at], number) for request, number in held if request[at]]
                if asked:
                    self.model.add(sum(each * number for each, number in asked) <= max(0, left))

    def _minima(self, counts: dict[Any, dict[int, Any]], started: dict[str, Any]) -> None:
        """The gang, its tasks and its subgroups have their minima; without any, all pods start."""
        job = self.job
        totals = {key: sum(on.values()) for key, on in counts.items()}
        self.model.add(sum(totals.values()) >= (job.minimum or len(job.tasks)))
        for role, least in job.group.task_minimum.items() if job.judges_tasks else ():
            self.model.add(sum(total for key, total in totals.items() if key[2] == role) >= least)
        for name, one in job.subgroups.items():
            own = [total for key, total in totals.items() if key[0] == name]
            self.model.add(sum(own) >= one.minimum * started[name])
        for policy, least in job.policies().items():
            chosen = [started[one.name] for one in self._of(policy)]
            self.model.add(sum(chosen) >= least)

    def _of(self, policy: str) -> list[Subgroup]:
        return [one for one in self.job.subgroups.values() if one.policy == policy]

    def _within(self, counts: Iterable[dict[int, Any]], cap: int | None, condition: Any) -> None:
        """If a condition holds, all pods are in one HyperNode of at most a tier."""
        if cap is None:
            return
        nodes: dict[int, list[Any]] = {}
        for on in counts:
            for node, number in on.items():
                nodes.setdefault(node, []).append(number)
        chosen = {at: self.model.new_bool_var(f"in {at}")
                  for at, one in enumerate(self.scheduler.tree.all) if one.tier <= cap}  # fmt: skip
        self.model.add(sum(chosen.values()) == condition)
        inside: dict[int, list[Any]] = {}
        for at, one in chosen.items():
            for node in self.scheduler.tree.all[at].nodes:
                inside.setdefault(node, []).append(one)
        for node, numbers in nodes.items():
            self.model.add(sum(numbers) <= len(self.job.tasks) * sum(inside.get(node, [])))
