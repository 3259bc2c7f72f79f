"""The files, links and submodules of one commit. Links are entries, and never followed on disk."""

import os
import posixpath
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Protocol

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import visible
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import MOST_BYTES, Unreadable

_FILE, _LINK = "100", "120000"
_EXECUTABLE = 0o100
_NEVER = regex(r"(?:^|/)(?:\.{0,2}|\.git)(?:/|$)", re.IGNORECASE)
"""Names that a working tree cannot have. Source: git fsck, the messages `hasDot` to `hasDotgit`."""
_MOST_LINKS = 40
"""Links that a path may go through, as on Linux."""
_LONGEST_PATH, _LONGEST_NAME = 1_024, 255
"""Bytes of a path and of a name, as on macOS; Linux takes paths of 4,096 bytes."""
_LONGEST_TARGET = 4_096
"""Bytes of the target of a link, as on Linux."""
_MOST_STEPS = 1_000_000
"""Names that are looked up, in sum, to follow all links of a commit."""


class TreeError(Exception):
    """A commit is too large to be reviewed. The text is for the user."""


class Load(Protocol):
    """Reads the contents of blobs, in order. One with more than `most` bytes is None."""

    def __call__(self, oids: Iterable[str], most: int = ..., /) -> Iterator[bytes | None]:
        """Read them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, link or submodule."""

    path: str
    """From the root of the repository. Bytes that are not UTF-8 are surrogates."""
    mode: str
    oid: str

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.mode.startswith(_FILE)

    @property
    def is_executable(self) -> bool:
        """Whether it is a regular file that may be executed."""
        return self.is_file and bool(int(self.mode, 8) & _EXECUTABLE)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.mode == _LINK

    @property
    def is_submodule(self) -> bool:
        """Whether it is the commit of another repository."""
        return not (self.is_file or self.is_link)


@dataclass(frozen=True)
class Tree:
    """All entries of a commit, by path."""

    entries: Mapping[str, Entry]
    load: Load
    sizes: Callable[[Iterable[str]], Sequence[int]]
    """Reads the sizes of blobs in bytes."""

    def is_folder(self, path: str) -> bool:
        """Return whether a path is a folder; empty: the root."""
        return not path or any(entry.startswith(f"{path}/") for entry in self.entries)

    def has(self, path: str) -> bool:
        """Return whether a path is a file, a link or a submodule."""
        return path in self.entries

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the regular files directly in a folder."""
        start = f"{folder}/" if folder else ""
        for path, entry in self.entries.items():
            if entry.is_file and path.startswith(start) and "/" not in path[len(start) :]:
                yield path[len(start) :]

    def text(self, path: str) -> str | Unreadable:
        """Read a file as text, or report why it cannot be read."""
        entry = self.entries.get(path)
        if entry is None:
            return Unreadable(file=path, because="does not exist")
        if not entry.is_file:
            kind = "a link" if entry.is_link else "a submodule"
            because = f"is {kind}, and only regular files are read here: put the file itself there"
            return Unreadable(file=path, because=because)
        data = self.data(entry)
        if data is None:
            because = f"is larger than the limit of {MOST_BYTES // 2**20} MiB a file"
            return Unreadable(file=path, because=because)
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            because = f"is not UTF-8: byte 0x{data[error.start]:02x} cannot be decoded"
            line = data.count(b"\n", 0, error.start) + 1
            return Unreadable(file=path, because=because, line=line)

    def data(self, entry: Entry) -> bytes | None:
        """Read the content of a file, or the target of a link. None if it is above the limit."""
        return next(iter(self.load([entry.oid])))

    def odd_part(self, path: str) -> str:
        """Return the first part of a path that is a file, a link or a submodule; empty if none."""
        parts = path.split("/") if path else []
        heads = ("/".join(parts[: number + 1]) for number in range(len(parts)))
        return next((head for head in heads if head in self.entries), "")

    def real(self, path: str) -> str:
        """Return where a path leads through links, as far as they stay in the repository."""
        found = _Steps(self._targets).follow(path)
        return path if found is None else found

    @cached_property
    def _targets(self) -> Mapping[str, str]:
        """The target of each link, by path."""
        links = [entry for entry in self.entries.values() if entry.is_link]
        contents = self.load([link.oid for link in links], _LONGEST_TARGET)
        return {
            link.path: content.decode(errors="surrogateescape")
            for link, content in zip(links, contents, strict=True)
            if content is not None
        }

    def linked(self, folders: Iterable[str]) -> set[str]:
        """Return the paths that links in some folders lead to, also through further links.

        Args:
            folders: From the root of the repository; an empty one is the root.
        """
        targets = self._targets
        # A link is followed once. Those below a folder are together in this order.
        left = sorted(targets, key=_as_folder)
        keys = [_as_folder(path) for path in left]
        waiting, reached, steps = list(folders), set[str](), _Steps(targets)
        done = set[str]()
        while waiting:
            folder = waiting.pop()
            if folder in done:
                continue
            done.add(folder)
            start = f"{folder}/" if folder else ""
            first = bisect_left(keys, start)
            last = bisect_left(keys, f"{folder}0") if folder else len(keys)  # "0" follows "/"
            around = [part for part in parts_of(folder) if part in targets and part not in done]
            done.update(around)
            for path in [*left[first:last], *around]:
                target = steps.follow(path)
                if target is not None:
                    reached.add(target)
                    waiting.append(target)
            del left[first:last], keys[first:last]
        return reached

    def export(self, folder: Path, project: str) -> list[str]:
        """Write the project's files into a new folder, and its links that stay inside of it.

        Returns:
            The paths that were left out: submodules, files above the limit, and links that lead
            out of the project.
        """
        start = f"{project}/" if project else ""
        inside = [entry for path, entry in self.entries.items() if path.startswith(start)]
        written = [entry for entry in inside if not entry.is_submodule]
        left = [entry.path[len(start) :] for entry in inside if entry.is_submodule]
        folder.mkdir()
        for entry, content in zip(written, self.load([each.oid for each in written]), strict=True):
            name = entry.path[len(start) :]
            path = folder / name
            if content is None:
                left.append(name)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.is_link:
                target = os.fsdecode(content)
                if not _stays(name, target):
                    left.append(name)
                    continue
                path.symlink_to(target)
            else:
                path.write_bytes(content)
                path.chmod(0o755 if entry.is_executable else 0o644)
        return left


def odd_path(paths: Iterable[str]) -> str:
    """Return a path that occurs twice, is both file and folder, is too long, or is forbidden.

    git writes no such commit, and reads one that somebody has made. A checkout has only one of two
    entries of the same name, and not always the one that is read here.
    """
    ordered = []
    for path in paths:
        if _NEVER.search(path) or _is_long(path):
            return path
        ordered.append(_as_folder(path))
    ordered.sort()
    # What is below a file, or has its name, follows it at once.
    return next((one[:-1] for one, other in pairwise(ordered) if other.startswith(one)), "")


def _is_long(path: str) -> bool:
    if len(path) < _LONGEST_NAME // 4:
        return False
    raw = os.fsencode(path)
    return len(raw) > _LONGEST_PATH or max(map(len, raw.split(b"/"))) > _LONGEST_NAME


def _as_folder(path: str) -> str:
    return f"{path}/"


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it; an empty folder is the root."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def _stays(link: str, target: str) -> bool:
    to = posixpath.normpath(posixpath.join(posixpath.dirname(link), target))
    return not to.startswith("/") and to.split("/")[0] != ".."


@dataclass(slots=True)
class _Steps:
    """Follows links as the kernel does, name by name: `..` after a link leaves its target."""

    targets: Mapping[str, str]
    done: int = 0

    def follow(self, link: str) -> str | None:
        """Return where a link leads, even if nothing is there; None if out of the repository.

        Raises:
            TreeError: All links together take too many steps.
        """
        here, waiting, links = list[str](), link.split("/")[::-1], 0
        # How many folders above the repository: `../checkout/docs` comes back to docs.
        left, above = False, 0
        while waiting:
            self.done += 1
            if self.done > _MOST_STEPS:
                raise TreeError(f"its links take more than {_MOST_STEPS:,} steps, the limit")
            name = waiting.pop()
            if name in {"", "."}:
                continue
            if name == "..":
                above += not here
                here = here[:-1]
                continue
            if above:
                above -= 1
                left = True
                continue
            here.append(name)
            target = self.targets.get("/".join(here))
            if target is None:
                continue
            links += 1
            if links > _MOST_LINKS or target.startswith("/"):
                return None
            here.pop()
            waiting += target.split("/")[::-1]
        return None if above or (left and not here) else "/".join(here)


def parts_of(path: str) -> Iterator[str]:
    """Yield the folders around a path, from the root on, and the path itself."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


def shown(path: str) -> str:
    """Return a path as messages show it."""
    return visible(path.encode(errors="surrogateescape").decode(errors="backslashreplace"))
