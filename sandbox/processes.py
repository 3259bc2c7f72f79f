"""Start programs that outlive us, watch them while they start, and end exactly those."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from sandbox.layout import Layout

LINES = 15
"""Of a log, when its program has died."""
PATIENCE = 300
"""Seconds in which something must have become ready."""
GRACE = 5
"""Seconds that a program has to end by itself."""


class SandboxError(Exception):
    """What a user must mend; its text says what and how, so no traceback is wanted."""


class Processes:
    """The programs of one sandbox. What was started is written down at once."""

    def __init__(self, layout: Layout) -> None:
        """Take those that an earlier command started."""
        self._layout = layout
        self._file = layout.folder / "processes.json"
        self._started: dict[str, tuple[int, float]] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        if self._file.exists():
            stated = json.loads(self._file.read_text())
            self._started = {name: (pid, born) for name, (pid, born) in stated.items()}

    def start(self, name: str, program: Path, arguments: Sequence[str]) -> None:
        """Start one program in a session of its own, with its words in a log."""
        if not program.exists():
            raise SandboxError(f"{program} is missing: run `make sandbox`, which builds it")
        with self._layout.log(name).open("ab") as log:
            child = subprocess.Popen(
                [program, *arguments],
                cwd=self._layout.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children[name] = child
        self._started[name] = (child.pid, psutil.Process(child.pid).create_time())
        self._write()

    def wait(self, what: str, ready: Callable[[], bool]) -> None:
        """Wait until something is ready; a program that dies meanwhile is named with its log."""
        until = time.monotonic() + PATIENCE
        while not ready():
            self.check()
            if time.monotonic() > until:
                raise SandboxError(f"{what} is not ready after {PATIENCE} s: see {self._logs()}")
            time.sleep(0.1)

    def check(self) -> None:
        """Refuse to go on when a program has died."""
        for name in self._started:
            if self._running(name) is None:
                log = self._layout.log(name)
                last = log.read_text(errors="replace").splitlines()[-LINES:]
                shown = "\n".join(f"  {line}" for line in last)
                raise SandboxError(f"{name} has died. The end of {log}:\n{shown}")

    def running(self) -> list[str]:
        """List the programs that still run."""
        return [name for name in self._started if self._running(name) is not None]

    def memory(self) -> int:
        """Give what all programs hold, in bytes."""
        found = (self._running(name) for name in self._started)
        return sum(process.memory_info().rss for process in found if process)

    def process(self, name: str) -> psutil.Process:
        """Give a running program, for tests that disturb it."""
        found = self._running(name)
        if found is None:
            raise SandboxError(f"{name} does not run")
        return found

    def stop(self, name: str) -> None:
        """End one program, gently first."""
        process = self._running(name)
        if process is not None:
            process.terminate()
            try:
                process.wait(GRACE)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(GRACE)
        if child := self._children.pop(name, None):
            child.poll()  # so that it is known to have ended
        self._started.pop(name, None)
        self._write()

    def stop_all(self) -> None:
        """End what was started, last first."""
        for name in reversed(list(self._started)):
            self.stop(name)

    def _write(self) -> None:
        if self._file.parent.exists():  # another command may have taken the sandbox down
            self._file.write_text(json.dumps(self._started))

    def _running(self, name: str) -> psutil.Process | None:
        """Find a program by its id and its time of birth: ids are given away again."""
        pid, born = self._started[name]
        try:
            process = psutil.Process(pid)
            same = process.create_time() == born and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if same else None

    def _logs(self) -> Path:
        return self._layout.log("x").parent
