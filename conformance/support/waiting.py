"""Waits until a condition is true."""

import time
from collections.abc import Callable

PATIENCE = 600
"""Timeout in seconds. Without a failure, even a slow machine does not reach it."""
PERIOD = 0.1
"""Seconds between two tries."""


def wait(ready: Callable[[], object], seconds: float = PATIENCE, period: float = PERIOD) -> bool:
    """Wait until a condition is true. Return False after the timeout."""
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            return False
        time.sleep(period)
    return True
