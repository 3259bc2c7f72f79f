"""The package's program against the raw program, taking turns."""

import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
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
    """Runs before those that count: the first one compiles modules and fills the disk's cache."""

    def __str__(self) -> str:
        """Name the case for people."""
        return f"{self.command} of {self.servings} on {self.backend}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What both programs took, run by run. Runs of the same index stood next to each other."""

    case: Case
    resources: int
    """Registered resources: components, the provider and the stack included."""
    same: bool | None
    """Whether both left the same resources in the state; None when nothing was left."""
    raw: list[Run]
    package: list[Run]

    def median(self, program: str, measure: str) -> float:
        """Return the median of one measure of one program."""
        return statistics.median(self._values(program, measure))

    def ratio(self, measure: str) -> float:
        """Return the median of package / raw, pair by pair: both had the machine in one state."""
        pairs = zip(self._values("package", measure), self._values("raw", measure), strict=True)
        return statistics.median(package / raw for package, raw in pairs)

    def _values(self, program: str, measure: str) -> list[float]:
        runs: list[Run] = getattr(self, program)
        return [float(getattr(run, measure)) for run in runs]


def compare(case: Case, progress: Progress) -> Comparison:
    """Record the package's program once, then run it and the raw one in turns."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder))
        recording = Path(folder) / "recording.json"
        job: dict[str, Any] = {
            "backend": case.backend,
            "servings": case.servings,
            "recording": str(recording),
        }
        engine.run("preview", "record", **job)
        runs: dict[str, list[Run]] = {program: [] for program in PROGRAMS}
        left: dict[str, Any] = {}
        for turn in range(case.warm + case.repeats):
            for program in PROGRAMS if turn % 2 else reversed(PROGRAMS):
                run = engine.run(case.command, program, **job)
                left[program] = engine.resources() if case.command == "up" else None
                progress(f"{case}: {program} {run.seconds:.2f} s")
                if turn >= case.warm:
                    runs[program].append(run)
        same = left["raw"] == left["package"] if case.command == "up" else None
        resources = sum("type" in event for event in json.loads(recording.read_text())) + 1
    return Comparison(case=case, resources=resources, same=same, **runs)


def growth(found: Sequence[Comparison], program: str) -> tuple[float, float, float]:
    """Give milliseconds for one more serving, low and high in the range, and high / low.

    A ratio of 1 is linear growth.
    """
    small, middle, large = sorted(found, key=lambda item: item.case.servings)[:3]
    low, high = _slope(small, middle, program), _slope(middle, large, program)
    return low, high, high / low


def _slope(low: Comparison, high: Comparison, program: str) -> float:
    more = high.case.servings - low.case.servings
    return (high.median(program, "program") - low.median(program, "program")) / more * 1000
