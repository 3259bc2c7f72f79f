"""Waits until a condition is true."""

import time
from collections.abc import Callable

PATIENCE = 600
"""Timeout in seconds. Without a failure, even a slow machine does not reach it."""
PERIOD = 0.1
"""Seconds between two tries, at least."""
LONGEST = 1
"""Seconds between two tries, at most."""
_SHARE, _REST = 1 / 8, 3
"""A pause lasts this share of the time waited so far, and this many times as long as a try."""


def wait(
    ready: Callable[[], object], seconds: float = PATIENCE, period: float | None = None
) -> bool:
    """Wait until a condition is true. Return False after the timeout.

    Without a period the pauses grow: a try can be dozens of requests, and the parts that run beside
    each other share the processors.

    Args:
        ready: The condition.
        seconds: The timeout.
        period: The pause between two tries, where a moment must not be missed.
    """
    began = time.monotonic()
    while True:
        asked = time.monotonic()
        if ready():
            return True
        now = time.monotonic()
        if now - began > seconds:
            return False
        time.sleep(pause(now - began, now - asked) if period is None else period)


def pause(waited: float, took: float) -> float:
    """Return the seconds until the next try, by the time waited so far and the last try's time."""
    return min(LONGEST, max(PERIOD, _SHARE * waited, _REST * took))
