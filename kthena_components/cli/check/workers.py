"""Does equal work in several processes, and returns its results in order.

The processes are forked, so that they have everything that was read before, and each result is sent
back. They take the work in small shares from a pipe that the kernel hands out, and end when the
pipe is empty or when this process has ended.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from kthena_components.core.values.dataclass import dataclass

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

T = TypeVar("T")
CAN_FORK = hasattr(os, "fork") and hasattr(signal, "pthread_sigmask")
_WORTH_IT = 300_000
"""Characters that are checked in about the time that it takes to start a process and to load in it
what no object before has needed."""
_SHARES = 16
"""Shares of each process: the last ones end at nearly the same time."""
_WORD, _MOST_SHARES = 4, 1000
"""Bytes of a number in the pipe, and numbers that fit in a pipe of one page."""


class WorkerError(RuntimeError):
    """A process ended early. The text is one sentence."""


def jobs_for(asked: int | None, size: int) -> int:
    """Return the number of processes for files.

    Args:
        asked: The number that the user wants. None: one for each processor that this process may
            use, if there is enough to check. On other systems than Linux it is not safe to fork a
            process that has threads, so there it is one.
        size: The number of characters in all files.
    """
    if asked is not None:
        return asked
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" and size >= _WORTH_IT else 1


def side_by_side(work: Callable[[int], T], count: int, jobs: int) -> Iterator[T]:
    """Return `work(0)` to `work(count - 1)`, in this order.

    Args:
        work: The results must be picklable, if there are several processes.
        count: The number of results.
        jobs: The number of processes. With one, `work` runs here, when its result is asked for.
            With more, all results are there before the first one is returned.

    Raises:
        WorkerError: A process was killed.
    """
    jobs = min(jobs, count)
    if jobs < 2 or not CAN_FORK:  # noqa: PLR2004 - one process
        return map(work, range(count))
    size = max(1, count // (jobs * _SHARES), -(-count // _MOST_SHARES))
    team = _Team(work, count, size)
    try:
        team.start(jobs)
        found = team.gather()
    finally:
        team.end()
    return (found[number] for number in range(count))


def _proxy(proxy: Mapping[Any, Any]) -> tuple[Any, ...]:
    return _proxied, (dict(proxy),)


def _proxied(values: dict[Any, Any]) -> Mapping[Any, Any]:
    return MappingProxyType(values)


@dataclass(slots=True)
class _Team:
    """The processes, and the ends of their pipes."""

    work: Callable[[int], Any]
    count: int
    size: int
    """Items in a share."""
    _running: dict["Connection", int] = field(default_factory=dict)
    """The process behind each pipe."""

    def start(self, jobs: int) -> None:
        """Start the processes."""
        shares, given = os.pipe()
        starts = range(0, self.count, self.size)
        os.write(given, b"".join(start.to_bytes(_WORD, "big") for start in starts))
        os.close(given)
        try:
            for _ in range(jobs):
                self._fork(shares)
        finally:
            os.close(shares)

    def _fork(self, shares: int) -> None:
        """Start a process that does every share after its number, and sends back the results."""
        # Imported here, because it takes as long as to check some objects.
        from multiprocessing.connection import Pipe  # noqa: PLC0415
        from multiprocessing.reduction import ForkingPickler  # noqa: PLC0415

        ForkingPickler.register(MappingProxyType, _proxy)
        received, sent = Pipe(duplex=False)
        # Ctrl-C reaches all processes of a terminal. Only this one reports it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process = os.fork()
            if process == 0:
                # As long as a process has another's pipe open, that one could wait forever.
                for connection in (received, *self._running):
                    connection.close()
                self._serve(shares, sent)
            self._running[received] = process
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            sent.close()

    def _serve(self, shares: int, sent: "Connection") -> NoReturn:
        """Work until there is no share left, and end without what Python does at its end."""
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            while word := os.read(shares, _WORD):
                start = int.from_bytes(word, "big")
                share = range(start, min(start + self.size, self.count))
                try:
                    sent.send((start, [self.work(number) for number in share]))
                except Exception as error:  # noqa: BLE001 - it is raised in the first process
                    sent.send(error)
                    break
            status = 0
        finally:
            os._exit(status)

    def gather(self) -> dict[int, Any]:
        """Receive all results, by number."""
        from multiprocessing.connection import wait  # noqa: PLC0415

        found: dict[int, Any] = {}
        while self._running:
            for connection in wait([*self._running]):
                reply = self._receive(connection)
                if isinstance(reply, Exception):
                    raise reply
                if reply is not None:
                    found.update(enumerate(reply[1], reply[0]))
        return found

    def _receive(self, connection: Any) -> Any:
        """Return what a process sent; None if it has ended after its last share."""
        with suppress(EOFError, OSError):
            return connection.recv()
        process = self._running.pop(connection)
        connection.close()
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if status == 0:
            return None
        how = f"signal {-status}" if status < 0 else f"status {status}"
        raise WorkerError(
            f"one of the processes that check files ended with {how}, so nothing was checked; "
            "--jobs 1 checks all files in one process"
        )

    def end(self) -> None:
        """Stop the processes that are left, if something failed."""
        for connection, process in self._running.items():
            connection.close()
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(process, 0)
        self._running.clear()
