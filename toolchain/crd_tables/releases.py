"""Which releases a project has published, by the tags of its repository, and what they hold."""

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import InvalidVersion, Version

_TAG = re.compile(r"v([0-9]+\.[0-9]+\.[0-9]+(?:-(?:alpha|beta|rc)\.?[0-9]+)?)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One release, and the state of the repository that it is."""

    version: str
    commit: str


@dataclass(frozen=True, slots=True)
class Repository:
    """A clone without work tree."""

    folder: Path

    @classmethod
    def clone(cls, url: str, folder: Path) -> "Repository":
        """Clone a repository: its history, and of its files those that are asked for later."""
        command = ["git", "clone", "--quiet", "--bare", "--filter=blob:none", url, str(folder)]
        subprocess.run(command, check=True)
        return cls(folder)

    def _git(self, *words: str) -> bytes:
        command = ["git", "-C", str(self.folder), *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout

    def releases(self, first: str, *, previews: bool) -> list[Release]:
        """List the newest patch of each minor release, oldest first.

        Args:
            first: The oldest minor release: `1.12`.
            previews: Whether the newest alpha or candidate stands in for a minor release that is
                not out.
        """
        newest: dict[tuple[int, ...], tuple[Version, str]] = {}
        for version, tag in sorted(_versions(self._git("tag").decode().split())):
            minor = version.release[:2]
            if version < Version(first) and minor != Version(first).release[:2]:
                continue
            if version.is_prerelease and not previews:
                continue
            if not version.is_prerelease or newest.get(minor, (version, ""))[0].is_prerelease:
                newest[minor] = (version, tag)
        return [
            Release(version=tag[1:], commit=self._git("rev-list", "-n1", tag).decode().strip())
            for _, tag in newest.values()
        ]

    def read(self, release: Release, paths: Iterable[str]) -> tuple[str, bytes] | None:
        """Give the first of some files that a release has, and its path; None where none is."""
        for path in paths:
            if self._git("ls-tree", release.commit, path):
                return path, self._git("show", f"{release.commit}:{path}")
        return None


def _versions(tags: Iterable[str]) -> Iterator[tuple[Version, str]]:
    for tag in tags:
        if found := _TAG.fullmatch(tag):
            try:
                yield Version(found[1].replace("-", "")), tag
            except InvalidVersion:
                continue
