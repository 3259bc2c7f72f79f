"""Whether a process touches what it should not: files, other processes, the network.

A hook of this kind stays as long as its process, so it belongs in one of its own.
"""

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FORBIDDEN = (
    "os.chdir", "os.chflags", "os.chmod", "os.chown", "os.exec", "os.fork", "os.forkpty", "os.kill",
    "os.link", "os.lockf", "os.mkdir", "os.posix_spawn", "os.putenv", "os.remove", "os.rename",
    "os.rmdir", "os.setxattr", "os.spawn", "os.startfile", "os.symlink", "os.system", "os.truncate",
    "os.unsetenv", "os.utime", "ctypes.", "ftplib.", "http.", "pty.", "shutil.", "signal.",
    "smtplib.", "socket.", "sqlite3.", "subprocess.", "syslog.", "tempfile.", "urllib.",
    "webbrowser.",
)  # fmt: skip
_LISTS = ("glob.", "os.listdir", "os.scandir", "os.walk")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_MOST = 20


class Watch:
    """What was done while it was looked at."""

    def __init__(self, *readable: Path) -> None:
        """Begin; nothing is looked at yet.

        Args:
            readable: folders in which files may be read, besides those of Python and the package.
        """
        root = Path(__file__).parents[2]
        python = (Path(path) for path in sysconfig.get_paths().values())
        self._readable = tuple(
            os.path.realpath(path) for path in (*readable, *python, root / "kthena_components")
        )
        self._looks = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Look at what is done."""
        self._looks = True
        try:
            yield
        finally:
            self._looks = False

    def _hook(self, event: str, args: tuple[object, ...]) -> None:
        if not self._looks or len(self.seen) >= _MOST:
            return
        self._looks = False  # telling a place may open files
        try:
            if (
                event.startswith(_FORBIDDEN)
                or (event == "open" and self._is_wrong(*args))
                or (event.startswith(_LISTS) and not self._may_read(args[0] if args else "."))
            ):
                self.seen.append(f"{event}{args!r}")
        finally:
            self._looks = True

    def _is_wrong(self, path: object = "", mode: object = "", flags: object = 0) -> bool:
        writes = bool(set(str(mode or "")) & set("wax+"))
        writes = writes or (isinstance(flags, int) and bool(flags & _WRITES))
        return writes or not self._may_read(path)

    def _may_read(self, path: object) -> bool:
        if isinstance(path, int):
            return True  # opened before
        real = os.path.realpath(os.fsdecode(path) if isinstance(path, bytes) else str(path))
        return any(real == root or real.startswith(f"{root}{os.sep}") for root in self._readable)
