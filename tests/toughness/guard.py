"""What an input may not do: take for ever, raise, or make a rule fail."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from kthena_components.core.findings import Finding, Level

SEED = os.environ.get("KTHENA_SEED", "1")
"""Of everything that is drawn here."""
TOTALS: Mapping[str, int] = {
    "manifests": 75_000,
    "places": 75_000,
    "scripts": 100_000,
    "previews": 10_000,
    "stack files": 10_000,
}
"""What is drawn in a whole run, by target (targets.py)."""
SECONDS = 10
"""Processor time after which something counts as hanging. Most takes less than a millisecond."""
_SHOWN = 2000


class HangError(BaseException):
    """Something that does not end. No guard of ours around a rule catches it."""


@contextmanager
def no_hang(what: object) -> Iterator[None]:
    """End something that uses up its processor time, and say what it was."""

    def stop(*_: object) -> None:
        raise HangError(f"{SECONDS} s of processor time were not enough for {shown(what)}")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def check(what: object, judge: Callable[[], list[Finding]]) -> list[Finding]:
    """Judge, and say which input it was when something is wrong."""
    try:
        with no_hang(what):
            found = judge()
            for finding in found:
                assert str(finding)
                assert finding.rule != "rule-fault", str(finding)
                assert finding.level in set(Level)
    except Exception as error:
        raise AssertionError(f"KTHENA_SEED={SEED}: {error!r} for {shown(what)}") from error
    return found


def shown(what: object) -> str:
    """Write an input, not without end."""
    text = repr(what)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text):,} characters)"
