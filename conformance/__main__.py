"""`python -m conformance [PART …]`: hold the package against the real programs."""

import argparse
import importlib
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import active_children, get_context
from pathlib import Path

from conformance.report import Part, passed, render
from sandbox.cluster import Sandbox, Size, up
from toolchain.locate import ensure_sandbox
from toolchain.programs import ToolchainError

PARTS = (
    "privilege",
    "kills",
    "faults",
    "lifecycle",
    "scheduling",
    "emission",
    "validation",
    "sandbox",
    "fuzz",
    "shell",
    "load",
)
"""Modules here with a function `run(context)`, those that wait the most first."""
ALONE = frozenset({"fuzz", "load", "shell"})
"""Parts that take every processor, or measure, and run when the others are done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a part is given."""

    part: Part
    folder: Path
    """A folder of its own, removed afterwards."""
    seed: int
    scale: float
    """1 for everything; less for a smoke test."""

    def sandbox(self, size: Size | None = None, name: str = "sandbox") -> Sandbox:
        """Start a cluster. Whoever starts one ends it: `sandbox.processes.stop_all()`."""
        return up(self.folder / name, size or Size(), self.part.say)

    def many(self, number: int) -> int:
        """Scale a number of tries."""
        return max(1, round(number * self.scale))


def main(arguments: list[str] | None = None) -> int:
    """Run the parts, and give 1 when one failed or something did not run."""
    signal.signal(signal.SIGTERM, _leave)
    options = _parser().parse_args(arguments)
    with suppress(ToolchainError):  # which each part then says that it did not run for
        ensure_sandbox(os.environ, Part("programs").say)
    names = options.parts or PARTS
    beside = [name for name in names if name not in ALONE]
    parts = run_beside(beside, options.seed, options.scale, options.jobs)
    parts += [run(name, options.seed, options.scale) for name in names if name in ALONE]
    sys.stdout.write(f"seed {options.seed}, scale {options.scale:g}\n\n{render(parts)}\n")
    return 0 if passed(parts) else 1


def run_beside(names: Sequence[str], seed: int, scale: float, jobs: int) -> list[Part]:
    """Run parts in processes of their own, some at a time. Most of their time they wait."""
    with ProcessPoolExecutor(jobs, get_context("fork"), _begin) as pool:
        try:
            found = [pool.submit(_in_child, name, seed, scale) for name in names]
            return [_result(name, future) for name, future in zip(names, found, strict=True)]
        except BaseException:
            for child in active_children():
                child.terminate()  # which ends its clusters, and then itself
            raise


def _begin() -> None:
    """Leave the keyboard to the process that started this one, which then says when to end."""
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.signal(signal.SIGTERM, _leave)


def _in_child(name: str, seed: int, scale: float) -> Part:
    """Run a part; a signal ends the process, which would take the next part otherwise."""
    try:
        return run(name, seed, scale)
    except SystemExit as error:
        os._exit(int(str(error.code)))


def _result(name: str, future: Future[Part]) -> Part:
    try:
        return future.result()
    except BrokenProcessPool:
        part = Part(name)
        part.fail("its process ended before it did, for want of memory perhaps")
        return part


def run(name: str, seed: int, scale: float) -> Part:
    """Run one part. What it raises is a failure, and the next part runs all the same."""
    part = Part(name)
    about = f"kthena-conformance-{name}-"
    with tempfile.TemporaryDirectory(prefix=about, ignore_cleanup_errors=True) as folder:
        context = Context(part=part, folder=Path(folder), seed=seed, scale=scale)
        with part.timed():
            try:
                importlib.import_module(f"conformance.{name}").run(context)
            except ToolchainError as error:
                part.skip("all of it", str(error))
            except Exception:  # noqa: BLE001 - a part that breaks must not hide the others
                part.fail(traceback.format_exc())
    part.say(f"{part.checks} checks, {len(part.failures)} failed, {part.seconds:.0f} s")
    return part


def _leave(number: int, _frame: object) -> None:
    """Turn a signal into an exception, once, so that the clusters are ended."""
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(128 + number)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--jobs", type=_positive, default=3, help="parts at a time")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is drawn at random")
    parser.add_argument("--scale", type=float, default=1, help="0.01 for a smoke test")
    return parser


if __name__ == "__main__":
    sys.exit(main())
