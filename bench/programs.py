"""Compares the package's program with the raw program, in alternating runs."""

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.engine import Engine, Run

PROGRAMS: Final = ("raw", "package")
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One command on one number of servings."""

    command: str
    backend: str
    servings: int
    repeats: int
    warm: int
    """Warm-up runs: the first one compiles modules and fills the disk cache."""

    def __str__(self) -> str:
        """Return the name of the case."""
        return f"{self.command} of {self.servings} on {self.backend}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The measurements of both programs. Runs with the same index were adjacent."""

    case: Case
    resources: int
    """Registered resources, including components, the provider and the stack."""
    same: bool | None
    """Whether both left the same resources in the state. None if they left none."""
    raw: list[Run]
    package: list[Run]

    def median(self, program: str, measure: str) -> float:
        """Return the median of one measure of one program."""
        return statistics.median(self._values(program, measure))

    def ratio(self, measure: str) -> float:
        """Return package / raw, of medians."""
        return self.median("package", measure) / self.median("raw", measure)

    def _values(self, program: str, measure: str) -> list[float]:
        runs: list[Run] = getattr(self, program)
        return [float(getattr(run, measure)) for run in runs]


def compare(engine: Engine, case: Case, progress: Progress) -> Comparison:
    """Record the package's program once, then run it and the raw one alternately."""
    job: dict[str, Any] = {"backend": case.backend, "servings": case.servings}
    recording = engine.recorded(**job)
    runs: dict[str, list[Run]] = {program: [] for program in PROGRAMS}
    left: dict[str, Any] = {}
    for turn in range(case.warm + case.repeats):
        for program in PROGRAMS if turn % 2 else reversed(PROGRAMS):
            run = engine.run(case.command, program, recording=str(recording), **job)
            left[program] = engine.resources() if case.command == "up" else None
            progress(f"{case}: {program} {run.total:.2f} s")
            if turn >= case.warm:
                runs[program].append(run)
    same = left["raw"] == left["package"] if case.command == "up" else None
    resources = sum("type" in event for event in json.loads(recording.read_text())) + 1
    return Comparison(case=case, resources=resources, same=same, **runs)


def growth(found: Sequence[Comparison], program: str) -> tuple[float, float, float]:
    """Return the milliseconds per serving in the lower and upper range, and their ratio.

    They are processor time of the program's process. A ratio of 1 is linear growth.
    """
    small, middle, large = sorted(found, key=lambda item: item.case.servings)[:3]
    low, high = _slope(small, middle, program), _slope(middle, large, program)
    return low, high, high / low


def _slope(low: Comparison, high: Comparison, program: str) -> float:
    more = high.case.servings - low.case.servings
    return (high.median(program, "cpu") - low.median(program, "cpu")) / more * 1000
