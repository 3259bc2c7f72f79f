"""Finds the files of the repository that a release names. Nothing leads out of it.

A file names its repository by a URL. A checkout knows only the URL that it was cloned from, and a
fork has another owner. So the last part of the path is compared, if the checkout states one.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable, read_regular
from kthena_components.reading.maps import read_below
from kthena_components.reading.releases.model import OutsideError

_ORIGIN = regex(r'^\[remote "origin"\]\s*$(?:\n(?!\[).*)*?\n\s*url\s*=\s*(\S+)', re.MULTILINE)
_OTHER_REVISION = regex(r"[0-9a-f]{7,40}|(?:.*[-/])?v?\d+\.\d+(?:\.\d+)?\S*|.*[*<>~^].*")
"""A commit, a version, or a range of versions."""
_ADDRESS = regex(r"[a-z][a-z0-9+.-]*://|[^/\s]+@[^/\s]+:", re.IGNORECASE)
_MOST = 20_000
"""Maximum number of files and folders that a pattern is compared with."""
_STARS = regex(r"\*+")
_SHOWN = 60
_NULL = "\0"
_FILLED = "{{"


@dataclass(slots=False)
class Repository:
    """A checkout."""

    boundary: str
    """Its real path."""
    _listed: list[tuple[str, bool]] = field(default_factory=list)

    @cached_property
    def name(self) -> str:
        """The name of the repository it was cloned from; empty if the checkout does not say."""
        text = read_regular(Path(self.boundary, ".git", "config"))
        found = _ORIGIN.search(text.decode(errors="replace")) if text is not None else None
        return _last(found[1]) if found else ""

    def require(self, url: object, revision: object = None) -> None:
        """Require that a URL is that of this repository, at the revision that is checked out.

        Raises:
            OutsideError: It is another repository or another revision.
        """
        if isinstance(url, str) and self.name and _last(url) != self.name:
            raise OutsideError(f"it is in the repository {url}")
        if isinstance(revision, str) and _OTHER_REVISION.fullmatch(revision):
            raise OutsideError(f"it is of the revision {revision}, and the checkout may be another")

    def folder(self, path: object, start: str = "") -> str:
        """Return the real path of a folder.

        Args:
            path: Its path as stated.
            start: The folder that the path starts at; the repository's if left out.

        Raises:
            OutsideError: There is none.
        """
        real = self._real(path, start)
        if not Path(real).is_dir():
            raise OutsideError(f"{path} is not in the repository")
        return real

    def known(self, path: object) -> str:
        """Return the real path of a folder, without what a template fills in; or nothing."""
        stated = str(path or "").partition(_FILLED)
        above = stated[0] if not stated[1] else stated[0].rpartition("/")[0] or "."
        return self.folder(above) if above and self.has(above) and self._is_folder(above) else ""

    def beside(self, folder: str, paths: object) -> list[str]:
        """List the folders in the repository at some paths that start at a folder."""
        texts = [each for each in sequence(paths) if isinstance(each, str)] if folder else []
        found = [self._real(each, folder) for each in texts if self.has(each, folder)]
        return [each for each in found if Path(each).is_dir()]

    def _is_folder(self, path: str) -> bool:
        return Path(self._real(path, "")).is_dir()

    def read(self, path: object, start: str = "") -> str:
        """Read a file.

        Raises:
            OutsideError: It is not in the repository, or cannot be read.
        """
        real = self._real(path, start)
        if not Path(real).exists():
            raise OutsideError(f"its values are in {path}, which is not in the repository")
        text = read_below(Path(real), Path(self.boundary))
        if isinstance(text, Unreadable):
            raise OutsideError(f"its values are in {path}, which {text.because}")
        return text

    def has(self, path: object, start: str = "") -> bool:
        """Return whether a file or a folder is in the repository."""
        try:
            return Path(self._real(path, start)).exists()
        except OutsideError:
            return False

    def matching(self, pattern: str, *, folders: bool, greedy: bool = False) -> list[str]:
        """List the folders or the files that match a pattern, as paths from the repository's.

        Of files, `**` matches any folders; of folders, it means `*`, as in Go's path.Match.

        Args:
            pattern: The pattern.
            folders: Whether it is of folders.
            greedy: Whether `*` matches any folders, too, as in `git ls-files`.
        """
        stated = pattern.removeprefix("./").strip("/")
        asked = _pattern(_STARS.sub("*", stated) if folders else stated, greedy=greedy)
        found = (path for path, is_folder in self._all() if is_folder is folders)
        return sorted(filter(asked.fullmatch, found))

    def _real(self, path: object, start: str) -> str:
        if not isinstance(path, str) or _NULL in path:
            raise OutsideError("its path is not stated")
        if _ADDRESS.match(path):
            raise OutsideError(f"{path} is not in the repository")
        below = path.lstrip("/") if not start or path.startswith("/") else path
        begins = self.boundary if not start or path.startswith("/") else start
        real = os.path.realpath(Path(begins, below))
        try:
            Path(real).exists()
        except OSError as error:  # the name is too long
            raise OutsideError(f"{path[:_SHOWN]}… cannot be read: {error.strerror}") from error
        if not Path(real).is_relative_to(self.boundary):
            raise OutsideError(f"{path} leads out of the repository")
        return real

    def _all(self) -> list[tuple[str, bool]]:
        if not self._listed:
            self._listed.extend(self._walk())
        return self._listed

    def _walk(self) -> Iterator[tuple[str, bool]]:
        seen, waiting = 0, [self.boundary]
        while waiting:
            try:
                with os.scandir(waiting.pop()) as scanned:
                    entries = [each for each in scanned if not each.name.startswith(".")]
            except OSError:
                continue
            for entry in entries:
                seen += 1
                if seen > _MOST:
                    return
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder:
                    waiting.append(entry.path)
                yield os.path.relpath(entry.path, self.boundary), is_folder


def _last(url: str) -> str:
    last = re.split(r"[/:]", url.rstrip("/"))[-1]
    return last.removesuffix(".git").casefold()


def _pattern(pattern: str, *, greedy: bool) -> re.Pattern[str]:
    """Compile a pattern of paths: `**` matches any folders, and so does a greedy `*`."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    known = {"**/": r"(?:[^/]+/)*", "**": ".*", "*": ".*" if greedy else "[^/]*", "?": "[^/]"}
    return re.compile("".join(known.get(part, re.escape(part)) for part in parts))
