"""Writes the measurements as tables and as JSON."""

import os
import platform
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from tabulate import tabulate

from bench.checking import CheckCost
from bench.growth import GROWTH_BUDGET, Growth, growth_rows
from bench.imports import ONE_CHECK
from bench.packs import PackCost
from bench.programs import Comparison, growth

PROGRAM_BUDGET: Final = 1.05
"""Maximum processor time of a preview, as a multiple of the same with the raw program."""
PACK_BUDGET: Final = 1.05
"""Maximum processor time of a preview with our policy pack, as a multiple of an empty pack."""
IMPORT_BUDGET: Final = 0.5
"""Maximum processor time of the package's import in addition to Pulumi's, as a multiple of it."""
CHECK_BUDGET: Final = 300
"""Maximum milliseconds of processor time of `check` of one Deployment."""
GROWTH_SIZES: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The measurements of one run."""

    programs: Sequence[Comparison]
    imports: dict[str, float]
    modules: Sequence[tuple[str, float]]
    compile: dict[str, float]
    commands: dict[str, dict[str, float]]
    packs: PackCost
    checks: Sequence[CheckCost]
    shapes: Sequence[Growth]

    def data(self) -> dict[str, Any]:
        """Return the raw numbers."""
        return {
            "machine": machine(),
            "programs": [
                asdict(item) | {"ratios": {field: item.ratio(field) for field in _MEASURES}}
                for item in self.programs
            ],
            "growth": {f"{row[0]} {row[1]}": row[-1] for row in self._growth()},
            "imports": self.imports,
            "modules": dict(self.modules),
            "compile": self.compile,
            "commands": self.commands,
            "packs": asdict(self.packs) | {"ratio": self.packs.ratio()},
            "checks": [asdict(item) | {"ratio": item.ratio()} for item in self.checks],
            "shapes": {item.name: asdict(item) | {"ratio": item.ratio} for item in self.shapes},
        }

    def text(self) -> str:
        """Write the tables."""
        sections = {
            "Program against raw Pulumi: medians, package and package / raw": _table(
                _PROGRAM_HEADERS, [_program_row(item) for item in self.programs]
            ),
            "Growth: processor time of the program in milliseconds for one more serving": _table(
                ("backend", "program", "lower range", "upper range", "upper / lower"),
                self._growth(),
            ),
            "Import in a fresh interpreter, processor time": _table(
                ("import", "ms", "above pulumi", "× pulumi"), self._import_rows()
            ),
            "Modules that cost most, Pulumi's own left out": _table(
                ("module", "ms by -X importtime"), self.modules
            ),
            "From args to checked manifests, processor time for one serving": _table(
                ("backend", "µs"), self.compile.items()
            ),
            "Commands of the dev stack, seconds": _table(
                ("command", "start-up", "program", "engine after it", "whole command"),
                [(command, *parts.values()) for command, parts in self.commands.items()],
            ),
            "Growth: processor time in milliseconds for ten times as much": _table(
                ("what grows", "small", "large", "×"), growth_rows(list(self.shapes))
            ),
            "Budgets": _table(("budget", "measured", ""), self._budgets()),
        }
        about = ", ".join(f"{key} {value}" for key, value in machine().items())
        return "\n\n".join([about, *(f"{name}\n\n{table}" for name, table in sections.items())])

    def _import_rows(self) -> list[tuple[str, float, float, float]]:
        base = self.imports["pulumi"]
        return [
            (case, found, found - base, (found - base) / base)
            for case, found in self.imports.items()
        ]

    def _growth(self) -> list[tuple[Any, ...]]:
        rows = []
        for backend in dict.fromkeys(item.case.backend for item in self.programs):
            found = [
                item
                for item in self.programs
                if item.case.backend == backend and item.case.command == "preview"
            ]
            if len(found) >= GROWTH_SIZES:
                rows += [
                    (backend, program, *growth(found, program)) for program in ("package", "raw")
                ]
        return rows

    def _budgets(self) -> Iterator[tuple[str, str, str]]:
        largest = max(item.case.servings for item in self.programs)
        for item in self.programs:
            if item.case.servings == largest and item.case.command == "preview":
                found = item.ratio("total")
                budget = f"processor time ≤ {PROGRAM_BUDGET} × raw, {item.case}"
                yield budget, f"{found:.2f} ×", _verdict(found, PROGRAM_BUDGET)
        found, servings = self.packs.ratio(), self.packs.servings
        budget = f"preview with the pack ≤ {PACK_BUDGET} × an empty pack, {servings} servings"
        yield budget, f"{found:.2f} ×", _verdict(found, PACK_BUDGET)
        for cost in self.checks:
            budget = f"check ≤ {cost.budget} × parsing, {cost.objects} objects, {cost.title}"
            yield budget, f"{cost.ratio():.2f} ×", _verdict(cost.ratio(), cost.budget)
        worst = max(self.shapes, key=lambda item: item.ratio)
        budget = f"ten times as much ≤ {GROWTH_BUDGET:.0f} ×, the worst: {worst.name}"
        yield budget, f"{worst.ratio:.1f} ×", _verdict(worst.ratio, GROWTH_BUDGET)
        above = self.imports["kthena_components"] / self.imports["pulumi"] - 1
        budget = f"import ≤ {IMPORT_BUDGET} × pulumi, above pulumi"
        yield budget, f"{above:.2f} ×", _verdict(above, IMPORT_BUDGET)
        start = self.imports[ONE_CHECK]
        budget = f"{ONE_CHECK} ≤ {CHECK_BUDGET} ms"
        yield budget, f"{start:.0f} ms", _verdict(start, CHECK_BUDGET)


def machine() -> dict[str, Any]:
    """Describe the machine and its load."""
    return {
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


_MEASURES: Final = ("total", "cpu", "seconds", "memory")
_PROGRAM_HEADERS: Final = (
    "command", "backend", "servings", "resources", "CPU s", "×", "program's CPU s", "×",
    "seconds", "×", "program's MiB", "×", "same state",
)  # fmt: skip


def _program_row(item: Comparison) -> list[Any]:
    case = item.case
    measured = [
        cell
        for field in _MEASURES
        for cell in (_number(item.median("package", field)), f"{item.ratio(field):.2f}")
    ]
    same = {True: "yes", False: "NO", None: ""}[item.same]
    return [case.command, case.backend, case.servings, item.resources, *measured, same]


def _table(headers: Sequence[str], rows: Any) -> str:
    cells = [[_number(cell) for cell in row] for row in rows]
    right = [
        "right" if cells and _is_number(cells[0][column]) else "left"
        for column in range(len(headers))
    ]
    return tabulate(cells, headers, "github", colalign=right if cells else None,
                    disable_numparse=True)  # fmt: skip


def _number(cell: Any) -> str:
    if not isinstance(cell, float):
        return str(cell)
    size = abs(cell)
    return f"{cell:.{0 if size >= 100 else 1 if size >= 10 else 2}f}"  # noqa: PLR2004 - for the eye


def _is_number(cell: str) -> bool:
    return cell.replace(".", "", 1).lstrip("-").isdigit()


def _verdict(found: float, budget: float) -> str:
    return "met" if found <= budget else "missed"
