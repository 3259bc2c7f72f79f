"""What one process of a test run makes for all of its processes."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

Make = Callable[[Path], object]
Shared = Callable[[str, Make], Path]
"""Returns the folder of a name, in which the first caller of a run has made something."""


def shared_below(base: Path) -> Shared:
    """Share folders with the other processes of a run, given the folder of one process.

    Who comes while another process makes the same waits for it. What fails is made again by the
    next one.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent

    def shared(name: str, make: Make) -> Path:
        folder, done = base / f"shared-{name}", base / f"shared-{name}.done"
        with (base / f"shared-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
                make(folder)
                done.touch()
        return folder

    return shared
