"""Collects the checks of each part, and writes the report."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from textwrap import shorten

import psutil
from tabulate import tabulate

from tests.support.forked_python import servers

LONGEST = 20
"""Number of failures to show per part."""
SHORT = 160
"""Number of characters of a failure in the last lines, which name each check that failed."""


@dataclass(slots=True)
class Part:
    """The results of one part."""

    name: str
    checks: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """How often each thing was tried."""
    failures: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    seconds: float = 0
    cpu: float = 0
    """Processor time of the part and of the programs that it started and stopped, in seconds."""

    def check(self, what: str, *, holds: bool, seen: object = "") -> bool:
        """Count one check, and record a failure if `holds` is false."""
        self.checks += 1
        if not holds:
            self.fail(f"{what}: {seen}" if seen != "" else what)
        return holds

    def fail(self, text: str) -> None:
        """Record a failure, and print it at once."""
        self.failures.append(text)
        if len(self.failures) <= LONGEST:
            self.say(f"FAILED {text}")

    def count(self, what: str, number: int = 1) -> None:
        """Add to a count."""
        self.counts[what] = self.counts.get(what, 0) + number

    def skip(self, what: str, why: str) -> None:
        """Record something that this machine cannot run. This fails the whole run."""
        self.not_run.append(f"{what}: {why}")

    def leave_out(self, why: str) -> None:
        """Record that this part runs only if asked for. The run can still succeed."""
        self.left_out.append(why)

    def say(self, text: str) -> None:
        """Print the progress."""
        sys.stderr.write(f"{self.name}: {text}\n")
        sys.stderr.flush()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add to the duration and the processor time of the part."""
        began, used = time.monotonic(), _cpu()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - began
            self.cpu += _cpu() - used


def _cpu() -> float:
    """Return the processor time of this process and of its children that have ended.

    The servers of forked programs run until it ends, and count with their forks that have ended.
    """
    used = float(sum(os.times()[:4]))
    for server in servers():
        with suppress(psutil.NoSuchProcess):
            used += sum(psutil.Process(server).cpu_times()[:4])
    return used


def render(parts: list[Part]) -> str:
    """Write the table, the counts, the failures, and what did not run."""
    rows = [
        [p.name, p.checks, len(p.failures), len(p.not_run), f"{p.seconds:.0f} s", f"{p.cpu:.0f} s"]
        for p in parts
    ]
    lines = [tabulate(rows, ["part", "checks", "failed", "not run", "time", "CPU"], "simple"), ""]
    for part in parts:
        lines += [f"{part.name}: {number:,} {what}" for what, number in part.counts.items()]
    for title, kept in (("failed", "failures"), ("not run", "not_run"), ("left out", "left_out")):
        found = [f"  {p.name}: {text}" for p in parts for text in getattr(p, kept)]
        lines += [f"{title}:", *found] if found else [f"{title}: none"]
    # A failure can be hundreds of lines long, and a log of CI may keep only its end.
    failed = [f"FAILED {p.name}: {_short(text)}" for p in parts for text in p.failures[:LONGEST]]
    return "\n".join([*lines, *failed])


def _short(text: str) -> str:
    """Return the beginning of a failure on one line."""
    return shorten(text, SHORT, placeholder=" …")


def passed(parts: list[Part]) -> bool:
    """Return whether everything that was asked for ran without a failure."""
    return not any(part.failures or part.not_run for part in parts)
