"""What git knows of a checkout. Nothing of it is changed, and no program of its files is run."""

import io
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kthena_components.cli.branch import Changed
from kthena_components.core.values.visible import visible

_REGULAR = ("100644", "100755", "000000")
"""Modes of regular files, and of what is not there."""


class GitError(Exception):
    """What git could not tell. Its text is for people."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A working tree."""

    root: Path

    def commit(self, name: str) -> str:
        """Give the commit that a name stands for: a branch before a tag that is called the same.

        Raises:
            GitError: there is none.
        """
        for full in (f"refs/remotes/{name}", f"refs/heads/{name}", name):
            try:
                told = self._git("rev-parse", "--verify", "--end-of-options", f"{full}^{{commit}}")
            except GitError:
                continue
            return told.strip()
        raise GitError(f"there is no commit '{visible(name)}' here; fetch it, or name another base")

    def changes(self, base: str) -> list[Changed]:
        """Give every path that differs from where the branch left its base.

        Branches that were merged into each other have left in several places. Then a path counts
        that differs from any of them. What is not committed yet is included.

        Raises:
            GitError: the two have no commit in common, as in a shallow clone.
        """
        found: dict[str, Changed] = {}
        for since in self._forks_of(base):
            found |= {change.path: change for change in self._changed(since)}
        return list(found.values())

    def _forks_of(self, base: str) -> list[str]:
        try:
            return self._git("merge-base", "--all", base, "HEAD").split()
        except GitError:
            raise GitError(
                "the branch and its base have no commit in common; fetch the whole history "
                "(fetch-depth: 0, GIT_DEPTH: 0)"
            ) from None

    def _changed(self, since: str) -> Iterator[Changed]:
        raw = self._git(
            "diff", "--raw", "-z", "--no-renames", "--no-ext-diff", "--no-abbrev", since
        )
        parts = iter(raw.split("\0"))
        for fields in parts:
            if fields:
                mode, status = fields.split(" ")[1], fields.rpartition(" ")[2]
                path = next(parts)
                yield Changed(path=path, deleted=status == "D", is_file=mode in _REGULAR)
        others = self._git("ls-files", "--others", "--exclude-standard", "-z")
        for path in filter(None, others.split("\0")):
            yield Changed(path=path, is_file=not (self.root / path).is_symlink())

    def export(self, commit: str, folder: Path) -> Path:
        """Write the files of a commit into a new folder, and give it.

        Raises:
            GitError: git cannot.
        """
        folder.mkdir()
        with tarfile.open(fileobj=io.BytesIO(self._run("archive", commit))) as archive:
            archive.extractall(folder, filter="data")
        return folder

    def _git(self, *arguments: str) -> str:
        return self._run(*arguments).decode(errors="surrogateescape")

    def _run(self, *arguments: str) -> bytes:
        command = ["git", "-C", str(self.root), "-c", "core.fsmonitor=false", *arguments]
        try:
            ran = subprocess.run(command, capture_output=True, check=False)
        except OSError as error:
            raise GitError(f"git cannot be run: {error.strerror}") from error
        if ran.returncode:
            said = ran.stderr.decode(errors="replace").strip()
            raise GitError(f"git {arguments[0]}: {visible(said)[:300]}")
        return ran.stdout
