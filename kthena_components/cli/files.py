"""Which files are read, and how their bytes become text. One file is in memory at a time."""

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

STDIN, STDIN_NAME = "-", "<stdin>"
SUFFIXES = (".yaml", ".yml", ".json")
MOST_BYTES = 64 * 2**20
"""The largest file that is read."""
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """Something that could not be read, and why. The rest is checked all the same."""

    file: str
    because: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        """Write it as compilers do: `file:line:column: why`."""
        place = [str(part) for part in (self.line, self.column) if part is not None]
        return f"{':'.join([self.file, *place])}: {self.because}"


def find_files(paths: Iterable[str]) -> Iterator[str | Unreadable]:
    """List what is to be read: files as they are given, and what folders hold, sorted."""
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            yield from _folder(path)
        else:
            yield path


def _folder(folder: str) -> Iterator[str | Unreadable]:
    refused: list[OSError] = []
    empty = True
    for at, folders, names in os.walk(folder, onerror=refused.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(at, name)
            if path.suffix.lower() in SUFFIXES and path.is_file():
                empty = False
                yield str(path)
    for error in refused:
        yield Unreadable(file=str(error.filename), because=f"cannot be listed: {error.strerror}")
    if empty and not refused:
        yield Unreadable(file=folder, because=f"holds no file that ends in {' or '.join(SUFFIXES)}")


def read_text(path: str) -> str | Unreadable:
    """Read one file, or say why it cannot be read."""
    name = shown_name(path)
    try:
        data = _bytes(path)
    except OSError as error:
        return Unreadable(file=name, because=f"cannot be read: {error.strerror or error}")
    except ValueError as error:
        return Unreadable(file=name, because=f"cannot be read: {error}")
    if len(data) > MOST_BYTES:
        limit = MOST_BYTES // 2**20
        return Unreadable(file=name, because=f"is larger than the limit of {limit} MiB a file")
    encoding = "utf-16" if data.startswith(_UTF16) else "utf-8-sig"
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
        )


def _bytes(path: str) -> bytes:
    if path == STDIN:
        return sys.stdin.buffer.read(MOST_BYTES + 1)
    with Path(path).open("rb") as file:
        # A buffer as large as what is asked for is made at once, so no more is asked for than is
        # there; what has no size, such as a pipe, is read up to the limit.
        size = os.fstat(file.fileno()).st_size
        return file.read(min(size, MOST_BYTES) + 1 if size else MOST_BYTES + 1)


def shown_name(path: str) -> str:
    """Give the name under which a file is spoken of."""
    return STDIN_NAME if path == STDIN else path
