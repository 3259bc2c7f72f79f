"""Ends programs and deletes their folder, however the process that started them ends.

A process that gets SIGTERM or SIGKILL, or crashes, runs no `finally`. So a second process waits for
the end of a pipe, which the kernel closes with the first one. It runs this file as a script,
without the package, in its own session: signals of the terminal do not reach it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_SECONDS, _PAUSE = 10.0, 0.05
"""How long it tries to delete the folder: a program that was killed may still write."""


class Watcher:
    """The other process, as the first one sees it."""

    def __init__(self, folder: Path) -> None:
        """Prepare to delete a folder, which need not exist yet."""
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._running: set[int] = set()

    def __enter__(self) -> Self:
        """Start the other process. Without it, only an orderly end leaves nothing behind."""
        if not sys.executable:  # a program that embeds Python
            return self
        command = [sys.executable, "-I", "-S", __file__, str(self._folder)]
        with suppress(OSError):
            self._process = subprocess.Popen(
                command,
                cwd=os.sep,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Delete the folder, and end the other process if it has nothing to do."""
        shutil.rmtree(self._folder, ignore_errors=True)
        if self._process is None:
            return
        # A second interruption may have come before the first one had killed a group.
        if not self._running and not self._folder.exists():
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def started(self, group: int) -> None:
        """Tell it about a new group of processes."""
        self._running.add(group)
        self._tell(f"+{group}\n")

    def ended(self, group: int) -> None:
        """Tell it that a group has ended."""
        self._tell(f"-{group}\n")
        self._running.discard(group)

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):  # somebody has killed it
                self._process.stdin.write(line.encode())  # one write, so threads do not mix lines


def kill_group(group: int) -> None:
    """Kill a group of processes, if there still is one."""
    with suppress(OSError):
        os.killpg(group, signal.SIGKILL)


def _main(folder: str) -> None:
    """Read the numbers of running programs, and end them when the parent has gone."""
    # A supervisor may send these to all processes, and SIGKILL some seconds later.
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    running: set[int] = set()
    for line in sys.stdin:
        change = running.add if line[0] == "+" else running.discard
        change(int(line[1:]))
    for group in running:
        kill_group(group)
    ends = time.monotonic() + _SECONDS
    while Path(folder).exists() and time.monotonic() < ends:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(_PAUSE)


if __name__ == "__main__":
    _main(sys.argv[1])
