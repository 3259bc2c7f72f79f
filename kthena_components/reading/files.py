"""Reads files as text. One file is in memory at a time."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import visible
from kthena_components.core.values.regex import regex

STDIN, STDIN_NAME = "-", "<stdin>"
MOST_BYTES = 64 * 2**20
"""Maximum bytes of a file."""
_POINTER = regex(
    rb"version https://git-lfs\.github\.com/spec/v\d+\r?\n"
    rb"(?:ext-\d-[A-Za-z0-9.-]+ sha256:[0-9a-f]+\r?\n)*oid sha256:[0-9a-f]+\r?\nsize \d+\s*"
)
"""A whole pointer of Git LFS: anything more may be an object, and only looks like one.

Source: github.com/git-lfs/git-lfs docs/spec.md and docs/extensions.md.
"""
POINTER = "is a pointer of Git LFS, and its content is not here: fetch it by `git lfs pull`"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_WIDE = "seems to be UTF-16 or UTF-32, of which only UTF-16 with a byte order mark is read"
"""Of twelve bytes of a plain string, 6 or 9 are 0 then."""
_UTF32 = (b"\xff\xfe\0\0", b"\0\0\xfe\xff")
_START = 1000
WAITS = 5.0
"""Seconds after which a message says that a pipe has no data yet: its writer may be slow."""
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
"""Flags for opening a file that may have been replaced by a pipe or a terminal."""
_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a folder"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Something that could not be read, and why. The rest is still checked."""

    file: str
    because: str
    line: int | None = None
    column: int | None = None
    is_note: bool = False
    """Whether the user did not name it, so that the run does not fail."""
    is_object: bool = False
    """Whether Kubernetes may read it as an object: the run fails wherever it was found."""

    def __str__(self) -> str:
        """Write it as compilers do: `file:line:column: why`."""
        place = [str(part) for part in (self.line, self.column) if part is not None]
        return f"{':'.join([self.file, *place])}: {self.because}"


class _OddError(OSError):
    """The opened file is not a regular file."""


def read_text(path: str, *, named: bool = True) -> str | Unreadable:
    """Read one file, or report why it cannot be read.

    Args:
        named: Whether the user named it; it may then be a pipe. A file that was only found, in a
            folder or by a fixed name, must be a regular file: anything else could block the reader,
            or be a device.
    """
    name = shown_name(path)
    if not path:
        return Unreadable(file="''", because="is not a path: name a file or a folder")
    if path == STDIN and named and sys.stdin is None:
        return Unreadable(file=name, because="is closed: pass a file, or pipe one into the command")
    try:
        data = _bytes(path, named=named)
    except _OddError as error:
        return Unreadable(file=name, because=str(error))
    except OSError as error:
        return Unreadable(file=name, because=f"cannot be read: {error.strerror or error}")
    except ValueError as error:
        return Unreadable(file=name, because=f"cannot be read: {error}")
    return _decoded(data, name)


def _decoded(data: bytes, name: str) -> str | Unreadable:
    """Decode a file's bytes; say why they are no string."""
    if len(data) > MOST_BYTES:
        because = f"is larger than the limit of {MOST_BYTES // 2**20} MiB a file"
        return Unreadable(file=name, because=because, is_object=True)
    if is_pointer(data):
        return Unreadable(file=name, because=POINTER)
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
    zeros = 12 * data[:_START].count(0) / max(1, len(data[:_START]))
    if data.startswith(_UTF32) or (encoding != "utf-16" and 4 < zeros < 10):  # noqa: PLR2004
        return Unreadable(file=name, because=f"{_WIDE}: save it as UTF-8", is_object=True)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start]
        return Unreadable(
            file=name,
            because=f"is not {encoding.removesuffix('-sig').upper()}: "
            f"byte 0x{data[error.start]:02x} cannot be decoded",
            line=before.count(b"\n") + 1,
            column=error.start - (before.rfind(b"\n") + 1) + 1,
            is_object=may_name_object(data),  # kubectl replaces such bytes
        )


def unwritten(path: str | Path, error: OSError) -> str:
    """Say that a file or a folder cannot be written, and why."""
    why = error.strerror or str(error)
    if isinstance(error, FileExistsError):
        why = "it is a file, or a link that leads nowhere. Name a folder"
    return f"{error.filename or path} cannot be written: {why}"


def is_pointer(data: bytes) -> bool:
    """Return whether the content of a file is elsewhere, and this is the pointer of Git LFS."""
    return _POINTER.fullmatch(data) is not None


def may_name_object(data: bytes) -> bool:
    """Return whether bytes in any encoding may contain the fields that every object has."""
    plain = data.replace(b"\0", b"")
    return b"\\" in plain or (b"apiVersion" in plain and b"kind" in plain)


def read_regular(path: Path) -> bytes | None:
    """Read a regular file without following a link. None if there is none.

    Returns:
        At most one byte more than the limit of a file.
    """
    try:
        opened = os.open(path, os.O_RDONLY | _AT_ONCE | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError):
        return None
    with os.fdopen(opened, "rb") as file:
        is_regular = stat.S_ISREG(os.fstat(opened).st_mode)
        return file.read(MOST_BYTES + 1) if is_regular else None


def _bytes(path: str, *, named: bool) -> bytes:
    """Read a file, or a pipe if the user named it; never a device that the user did not name."""
    if path == STDIN and named:
        with _warned_if_slow(STDIN_NAME):
            return sys.stdin.buffer.read(MOST_BYTES + 1)
    # Check before opening, because opening may already affect a device.
    there = os.stat(path)  # noqa: PTH116 - a Path takes as long as opening the file
    if stat.S_ISSOCK(there.st_mode):
        raise _OddError("is a socket, from which nothing is read: name a file")
    if not named:
        _require_regular(there)
    if stat.S_ISFIFO(there.st_mode):
        with _warned_if_slow(path), Path(path).open("rb") as pipe:
            return pipe.read(MOST_BYTES + 1)
    with open(path, "rb", opener=None if named else _open_at_once) as file:
        seen = os.fstat(file.fileno())
        if not named:
            _require_regular(seen)
        # Python allocates the requested size at once, so only the file's size is requested; files
        # without a size, such as pipes, are read up to the limit.
        size = seen.st_size
        return file.read(min(size, MOST_BYTES) + 1 if size else MOST_BYTES + 1)


@contextmanager
def _warned_if_slow(name: str) -> Iterator[None]:
    """Say on standard error that a pipe is waited for, which may have no writer at all."""
    message = f"waiting for {visible(name)}, which has not ended: it is a pipe or a terminal\n"
    timer = Timer(WAITS, lambda: sys.stderr and sys.stderr.write(message))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # a process with threads should not be forked


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | _AT_ONCE)


def _require_regular(seen: os.stat_result) -> None:
    odd = odd_kind(seen)
    if odd:
        raise _OddError(
            f"is {odd}, and only regular files are read here: replace it by one, or remove it"
        )


def odd_kind(seen: os.stat_result) -> str:
    """Name the type of a file; empty for a regular file."""
    if stat.S_ISREG(seen.st_mode):
        return ""
    return next((kind for is_kind, kind in _KINDS if is_kind(seen.st_mode)), "no regular file")


def reads_again(path: str) -> bool:
    """Return whether a file can be read twice: standard input and pipes cannot."""
    return path != STDIN and Path(path).is_file()


def shown_name(path: str) -> str:
    """Return the name of a file in messages."""
    return STDIN_NAME if path == STDIN else path
