"""Measure everything once, and print tables."""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.checking import compare_checks
from bench.commands import measure_commands
from bench.compiling import measure_compile
from bench.engine import BenchError, Engine
from bench.groups import measure_groups
from bench.growth import SIZES, measure_growth
from bench.imports import costly_modules, measure_imports
from bench.packs import compare_packs
from bench.programs import Case, compare
from bench.report import Report
from bench.workload import BACKENDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """The sizes and repetitions of the measurements."""

    sizes: tuple[int, ...]
    """Servings of the previews."""
    up: int
    """Servings of the update."""
    judged: int
    """Servings of the previews with policy packs."""
    checked: int
    """Objects for `check`."""
    repeats: int
    """Measured runs of each command."""
    warm: int
    """Warm-up runs of each command."""
    imports: int
    """Runs of each import, and of the compilation."""
    grown: tuple[int, int]
    """Sizes of growing inputs, the second ten times the first."""
    groups: tuple[int, int]
    """Groups of one native serving, the second ten times the first."""


FULL: Final = Effort(
    sizes=(1, 100, 300), up=100, judged=1000, checked=10_000, repeats=5, warm=1, imports=11,
    grown=SIZES, groups=(30, 300),
)  # fmt: skip
QUICK: Final = Effort(
    sizes=(1, 3), up=1, judged=3, checked=24, repeats=1, warm=0, imports=1, grown=(5, 50),
    groups=(3, 30),
)  # fmt: skip
TOP: Final = 5


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    options = _parser().parse_args(arguments)
    try:
        report = measure(QUICK if options.quick else FULL)
    except BenchError as error:
        _say(f"error: {error}")
        return 1
    if options.json:
        options.json.write_text(json.dumps(report.data(), indent=2) + "\n")
    sys.stdout.write(report.text() + "\n")
    return 0


def measure(effort: Effort) -> Report:
    """Measure everything, the shortest first."""
    _say("imports")
    imports = measure_imports(effort.imports)
    modules = costly_modules(effort.imports, TOP)
    _say("compilation")
    compiled = {b: measure_compile(b, max(effort.sizes), effort.imports) for b in BACKENDS}
    _say("commands of the dev stack")
    commands = measure_commands(effort.repeats, effort.warm)
    checks = list(compare_checks(effort.checked, effort.repeats, _say))
    shapes = list(measure_growth(effort.grown, _say))
    with tempfile.TemporaryDirectory() as folder:
        engine, runs = Engine(Path(folder)), (effort.repeats, effort.warm)
        shapes.append(measure_groups(engine, effort.groups, *runs, _say))
        return Report(
            programs=[compare(engine, case, _say) for case in _cases(effort)],
            imports=imports,
            modules=modules,
            compile=compiled,
            commands=commands,
            checks=checks,
            shapes=shapes,
            packs=compare_packs(engine, effort.judged, *runs, _say),
        )


def _cases(effort: Effort) -> Iterator[Case]:
    runs = {"repeats": effort.repeats, "warm": effort.warm}
    for backend in BACKENDS:
        for size in effort.sizes:
            yield Case(command="preview", backend=backend, servings=size, **runs)
        yield Case(command="up", backend=backend, servings=effort.up, **runs)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few servings, one run: a smoke test")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the raw numbers to FILE")
    return parser


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
