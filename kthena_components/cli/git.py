"""Reads a git checkout. It changes nothing and runs no program from the checkout."""

import io
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kthena_components.cli.branch import Changed
from kthena_components.core.values.visible import visible

_REGULAR = ("100644", "100755", "000000")
"""Modes of regular files, and of a file that does not exist."""


class GitError(Exception):
    """A git command failed. The text is for the user."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A working tree, or the folder of a project in one."""

    root: Path

    def commit(self, name: str) -> str:
        """Return the commit of a name. A branch takes precedence over a tag of the same name.

        Raises:
            GitError: There is no such commit.
        """
        for full in (f"refs/remotes/{name}", f"refs/heads/{name}", name):
            try:
                told = self._git("rev-parse", "--verify", "--end-of-options", f"{full}^{{commit}}")
            except GitError:
                continue
            return told.strip()
        raise GitError(f"there is no commit '{visible(name)}'; fetch it, or name another base")

    def changes(self, base: str) -> list[Changed]:
        """Return every path that differs from the merge base, including uncommitted changes.

        If there are several merge bases, a path that differs from any of them is included. Paths
        are relative to this folder; those outside it, to the root of the repository.

        Raises:
            GitError: There is no common commit, as in a shallow clone.
        """
        found: dict[str, Changed] = {}
        for since in self._forks_of(base):
            found |= {change.path: change for change in self._changed(since)}
        prefix = self._prefix()
        return [_seen_from(prefix, change) for change in found.values()]

    def _prefix(self) -> str:
        """Return the path of this folder in the repository, such as `serving/`; empty: its root."""
        return self._git("rev-parse", "--show-prefix").removesuffix("\n")

    def has_folder(self, path: str) -> bool:
        """Return whether the repository has a folder, named from its root."""
        top = Path(self._git("rev-parse", "--show-toplevel").removesuffix("\n"))
        return (
            ".." not in Path(path).parts and not Path(path).is_absolute() and (top / path).is_dir()
        )

    def _forks_of(self, base: str) -> list[str]:
        try:
            return self._git("merge-base", "--all", base, "HEAD").split()
        except GitError:
            raise GitError(
                "the branch and its base have no common commit; fetch the whole history "
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
        top = Path(self._git("rev-parse", "--show-toplevel").removesuffix("\n"))
        others = Checkout(top)._git("ls-files", "--others", "--exclude-standard", "-z")  # noqa: SLF001 - of its own class
        for path in filter(None, others.split("\0")):
            yield Changed(path=path, is_file=not (top / path).is_symlink())

    def export(self, commit: str, folder: Path) -> Path:
        """Write the files that a commit has below this folder into a new one, and return that.

        It stays empty if the commit does not have this folder.

        Raises:
            GitError: `git archive` failed.
        """
        folder.mkdir()
        prefix = self._prefix()
        if prefix and not self._git("ls-tree", "--full-tree", "-d", commit, prefix.rstrip("/")):
            return folder
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
            raise GitError(f"cannot run git: {error.strerror}") from error
        if ran.returncode:
            said = ran.stderr.decode(errors="replace").strip()
            raise GitError(f"git {arguments[0]}: {visible(said)[:300]}")
        return ran.stdout


def _seen_from(prefix: str, change: Changed) -> Changed:
    """Return a change as the folder with this prefix sees it."""
    if change.path.startswith(prefix):
        return replace(change, path=change.path.removeprefix(prefix))
    return replace(change, is_outside=True)
