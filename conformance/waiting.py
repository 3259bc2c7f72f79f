"""How long anything here waits for what must come."""

import time
from collections.abc import Callable

PATIENCE = 600
"""Seconds after which something is taken never to come. Where all is well nothing waits so long,
however slow the machine is."""
PERIOD = 0.1
"""Seconds between two looks."""


def wait(ready: Callable[[], object], seconds: float = PATIENCE, period: float = PERIOD) -> bool:
    """Wait until something has become true, and tell whether it has."""
    until = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > until:
            return False
        time.sleep(period)
    return True
