"""What git knows of a checkout. Nothing of it is changed, and no program of its files is run."""

import io
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kthena_components.cli.branch import Changed
from kthena_components.core.visible import visible

_REGULAR = ("100644", "100755", "000000")
"""Modes of regular files, and of what is not there."""


class GitError(Exception):
    """What git could not tell. Its text is for people."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A working tree."""

    root: Path

    def commit(self, name: str) -> str:
        """Give the commit that a name stands for.

        Raises:
            GitError: there is none.
        """
        try:
            return self._git(
                "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}"
            ).strip()
        except GitError:
            raise GitError(
                f"there is no commit '{visible(name)}' here; fetch it, or name another base"
            ) from None

    def fork_of(self, base: str) -> str:
        """Give the commit at which the branch left its base.

        Raises:
            GitError: the two have none in common, as in a shallow clone.
        """
        try:
            return self._git("merge-base", base, "HEAD").strip()
        except GitError:
            raise GitError(
                "the branch and its base have no commit in common; fetch the whole history "
                "(fetch-depth: 0, GIT_DEPTH: 0)"
            ) from None

    def changes(self, since: str) -> Iterator[Changed]:
        """Give every path that differs, what is not committed yet included."""
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
