"""The files, links and submodules of one commit. Links are entries, and never followed on disk."""

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kthena_components.core.values.visible import visible
from kthena_components.reading.files import MOST_BYTES, Unreadable

_FILE, _LINK = "100", "120000"
_EXECUTABLE = 0o100
_NEVER = {"", ".", "..", ".git"}
"""Names that a working tree cannot have. Source: git fsck, the messages `hasDot` to `hasDotgit`."""
_MOST_LINKS = 40
"""Links that a path may go through, as on Linux."""


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


@dataclass(frozen=True, slots=True)
class Tree:
    """All entries of a commit, by path."""

    entries: Mapping[str, Entry]
    load: Callable[[Iterable[str]], Iterator[bytes]]
    """Reads the contents of blobs."""

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
        if len(data) > MOST_BYTES:
            because = f"is larger than the limit of {MOST_BYTES // 2**20} MiB a file"
            return Unreadable(file=path, because=because)
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            because = f"is not UTF-8: byte 0x{data[error.start]:02x} cannot be decoded"
            line = data.count(b"\n", 0, error.start) + 1
            return Unreadable(file=path, because=because, line=line)

    def data(self, entry: Entry) -> bytes:
        """Read the content of a file, or the target of a link."""
        return next(iter(self.load([entry.oid])))

    def odd_part(self, path: str) -> str:
        """Return the first part of a path that is a file, a link or a submodule; empty if none."""
        parts = path.split("/") if path else []
        heads = ("/".join(parts[: number + 1]) for number in range(len(parts)))
        return next((head for head in heads if head in self.entries), "")

    def real(self, path: str) -> str:
        """Return where a path leads through links, as far as they stay in the repository."""
        return [path, *_followed(path, self._targets())][-1]

    def _targets(self) -> dict[str, str]:
        """Return what each link contains."""
        links = [entry for entry in self.entries.values() if entry.is_link]
        contents = self.load([link.oid for link in links]) if links else ()
        return {
            link.path: content.decode(errors="surrogateescape")
            for link, content in zip(links, contents, strict=True)
        }

    def linked(self, folders: Iterable[str]) -> set[str]:
        """Return the paths that links in some folders lead to, also through further links.

        Args:
            folders: From the root of the repository; an empty one is the root.
        """
        targets = self._targets()
        waiting, reached, seen = list(folders), set[str](), set[str]()
        while waiting:
            folder = waiting.pop()
            for path in targets:
                if path in seen or not (is_below(path, folder) or is_below(folder, path)):
                    continue
                seen.add(path)
                for target in _followed(path, targets):
                    reached.add(target)
                    waiting.append(target)
        return reached

    def export(self, folder: Path, project: str) -> list[str]:
        """Write the project's files into a new folder, and its links that stay inside of it.

        Returns:
            The paths that were left out: submodules, and links that lead out of the project.
        """
        start = f"{project}/" if project else ""
        inside = [entry for path, entry in self.entries.items() if path.startswith(start)]
        written = [entry for entry in inside if not entry.is_submodule]
        left = [entry.path[len(start) :] for entry in inside if entry.is_submodule]
        folder.mkdir()
        for entry, content in zip(written, self.load([each.oid for each in written]), strict=True):
            name = entry.path[len(start) :]
            path = folder / name
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
    """Return a path that is stated twice, is both file and folder, or has a forbidden name.

    git writes no such commit, and reads one that somebody has made. A checkout has only one of two
    entries of the same name, and not always the one that is read here.
    """
    seen, folders = set[str](), set[str]()
    for path in paths:
        parts = path.split("/")
        if path in seen or any(part.lower() in _NEVER for part in parts):
            return path
        seen.add(path)
        folders.update("/".join(parts[:number]) for number in range(1, len(parts)))
    return next(iter(sorted(seen & folders)), "")


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it; an empty folder is the root."""
    return not folder or path == folder or path.startswith(f"{folder}/")


def _stays(link: str, target: str) -> bool:
    to = posixpath.normpath(posixpath.join(posixpath.dirname(link), target))
    return not to.startswith("/") and to.split("/")[0] != ".."


def _followed(link: str, targets: Mapping[str, str]) -> Iterator[str]:
    """Yield each path that a link leads to in the repository, one link after the other."""
    path = link
    for _ in range(_MOST_LINKS):
        through = next((part for part in _parts(path) if part in targets), None)
        if through is None:
            return
        rest = path[len(through) :].lstrip("/")
        to = posixpath.join(posixpath.dirname(through), targets[through], rest)
        path = posixpath.normpath(to)
        if path.startswith("/") or path.split("/")[0] == "..":
            return
        path = "" if path == "." else path
        yield path


def _parts(path: str) -> Iterator[str]:
    parts = path.split("/")
    yield from ("/".join(parts[: number + 1]) for number in range(len(parts)))


def shown(path: str) -> str:
    """Return a path as messages show it."""
    return visible(path.encode(errors="surrogateescape").decode(errors="backslashreplace"))
