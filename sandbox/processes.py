"""Starts background programs, watches them while they start, and stops only those."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from sandbox.layout import Layout

LINES = 15
"""Lines of a log to show if its program exited."""
PATIENCE = 300
"""Timeout in seconds for a program to become ready."""
GRACE = 5
"""Seconds between SIGTERM and SIGKILL."""
END = 60
"""Timeout in seconds for a killed program to end: on a busy machine its threads end later."""


class SandboxError(Exception):
    """An error that the user can fix. The text describes the fix, so no traceback is shown."""


class Processes:
    """The programs of one sandbox. Each started program is recorded in a file at once."""

    def __init__(self, layout: Layout) -> None:
        """Load the programs that an earlier command started."""
        self._layout = layout
        self._file = layout.folder / "processes.json"
        self._started: dict[str, tuple[int, float]] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        if self._file.exists():
            stated = json.loads(self._file.read_text())
            self._started = {name: (pid, born) for name, (pid, born) in stated.items()}

    def start(
        self,
        name: str,
        program: Path,
        arguments: Sequence[str],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Start one program in its own session, with its output in a log.

        Args:
            name: Its name for later commands.
            program: The binary.
            arguments: Its arguments.
            environ: Variables that it has besides those of this process.
        """
        if not program.exists():
            raise SandboxError(f"{program} is missing: run `make sandbox`, which builds it")
        with self._layout.log(name).open("ab") as log:
            child = subprocess.Popen(
                [program, *arguments],
                cwd=self._layout.folder,
                env={**os.environ, **(environ or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._children[name] = child
        self._started[name] = (child.pid, psutil.Process(child.pid).create_time())
        self._write()

    def wait(self, what: str, ready: Callable[[], bool]) -> None:
        """Wait until something is ready. Raise with the log if a program exits meanwhile."""
        until = time.monotonic() + PATIENCE
        while not ready():
            self.check()
            if time.monotonic() > until:
                raise SandboxError(f"{what} is not ready after {PATIENCE} s: see {self._logs()}")
            time.sleep(0.1)

    def check(self) -> None:
        """Raise if a program has exited."""
        for name in self._started:
            if self._running(name) is None:
                log, last = self._layout.log(name), self.last_lines(name)
                raise SandboxError(f"{name} has exited. The end of {log}:\n{last}")

    def last_lines(self, name: str) -> str:
        """Return the last lines of a program's log, indented."""
        lines = self._layout.log(name).read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-LINES:])

    def running(self) -> list[str]:
        """List the programs that are still running."""
        return [name for name in self._started if self._running(name) is not None]

    def memory(self) -> int:
        """Return the resident memory of all programs, in bytes."""
        found = (self._running(name) for name in self._started)
        return sum(process.memory_info().rss for process in found if process)

    def process(self, name: str) -> psutil.Process:
        """Return a running program, for tests that disturb it."""
        found = self._running(name)
        if found is None:
            raise SandboxError(f"{name} is not running")
        return found

    def listens(self, name: str, port: int) -> bool:
        """Return whether a program, and no other one, listens on a port."""
        found = self._running(name)
        try:
            sockets = found.net_connections("inet") if found else []
        except psutil.Error:  # it exits
            return False
        return any(s.status == psutil.CONN_LISTEN and s.laddr.port == port for s in sockets)

    def stop(self, name: str) -> None:
        """Stop one program: SIGTERM, then SIGKILL. Return when its ports are free.

        A killed program is a zombie at once, but its threads hold its ports until the last one has
        ended. Only the parent can wait for that.
        """
        process = self._running(name)
        if process is not None:
            process.terminate()
            try:
                process.wait(GRACE)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(END)
        if child := self._children.pop(name, None):
            child.wait(END)
        self._started.pop(name, None)
        self._write()

    def stop_all(self) -> None:
        """Stop all programs, the last one first."""
        for name in reversed(list(self._started)):
            self.stop(name)

    def _write(self) -> None:
        if self._file.parent.exists():  # another command may have removed the sandbox
            self._file.write_text(json.dumps(self._started))

    def _running(self, name: str) -> psutil.Process | None:
        """Find a program by its id and start time, because ids are reused."""
        pid, born = self._started[name]
        try:
            process = psutil.Process(pid)
            same = process.create_time() == born and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if same else None

    def _logs(self) -> Path:
        return self._layout.log("x").parent
