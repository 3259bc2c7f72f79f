"""What was tried, what was found, and what could not be tried."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tabulate import tabulate

LONGEST = 20
"""Failures of one part that are shown."""


@dataclass(slots=True)
class Part:
    """The results of one part."""

    name: str
    checks: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    """What was tried, in words, and how often."""
    failures: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    seconds: float = 0

    def check(self, what: str, *, holds: bool, seen: object = "") -> bool:
        """Count one check, and keep what was seen where it does not hold."""
        self.checks += 1
        if not holds:
            self.fail(f"{what}: {seen}" if seen != "" else what)
        return holds

    def fail(self, text: str) -> None:
        """Keep a failure, and say it at once."""
        self.failures.append(text)
        if len(self.failures) <= LONGEST:
            self.say(f"FAILED {text}")

    def count(self, what: str, number: int = 1) -> None:
        """Count what was tried."""
        self.counts[what] = self.counts.get(what, 0) + number

    def skip(self, what: str, why: str) -> None:
        """Note what this machine cannot run. That fails the whole run: nothing is left out."""
        self.not_run.append(f"{what}: {why}")

    def say(self, text: str) -> None:
        """Tell how far it is."""
        sys.stderr.write(f"{self.name}: {text}\n")
        sys.stderr.flush()

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Measure how long the part takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds = time.monotonic() - began


def render(parts: list[Part]) -> str:
    """Write the table, the counts, and what failed or did not run."""
    rows = [
        [p.name, p.checks, len(p.failures), len(p.not_run), f"{p.seconds:.0f} s"] for p in parts
    ]
    lines = [tabulate(rows, ["part", "checks", "failed", "not run", "time"], "simple"), ""]
    for part in parts:
        lines += [f"{part.name}: {number:,} {what}" for what, number in part.counts.items()]
    for title, kept in (("failed", "failures"), ("not run", "not_run")):
        found = [f"  {p.name}: {text}" for p in parts for text in getattr(p, kept)]
        lines += [f"{title}:", *found] if found else [f"{title}: nothing"]
    return "\n".join(lines)


def passed(parts: list[Part]) -> bool:
    """Return whether everything ran and held."""
    return not any(part.failures or part.not_run for part in parts)
