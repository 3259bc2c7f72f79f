"""Reads commits as git objects. It reads no working tree and runs nothing that a commit contains.

git gets the repository by name (`--git-dir`), an empty working folder and none of the user's git
variables and settings. The commands below read neither attributes nor `.gitmodules`, so no filter,
hook, text conversion or submodule setting of a branch has an effect (docs/decisions/0042).
"""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kthena_components.cli.tree import Entry, Tree, odd_path, shown
from kthena_components.core.values.visible import visible
from kthena_components.rendering.programs import find_program, why_missing

_FLAGS = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "safe.bareRepository=explicit", "-c", "protocol.allow=never"),
)
_VARIABLES = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1", "LC_ALL": "C",
}  # fmt: skip
_BARE = ("HEAD", "objects", "refs")
_MISSING = b"missing"
_UNIQUE = re.compile(r"[A-Z_]*HEAD|[0-9a-f]{40}|[0-9a-f]{64}")
_AT_ONCE = 256
"""Files whose contents are in memory together."""


class GitError(Exception):
    """A repository or a commit cannot be read. The text is for the user."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that the caller has named."""

    git_dir: Path
    checkout: Path | None = None
    """The folder of its working tree, if it was found by that folder."""

    def commit(self, name: str) -> str:
        """Return the commit of a name.

        A branch takes precedence over a tag of the same name, and HEAD, FETCH_HEAD or the hash of a
        commit over both: anybody who can push could name a branch like that.

        Raises:
            GitError: There is no such commit.
        """
        own = _UNIQUE.fullmatch(name)
        for full in (name,) if own else (f"refs/remotes/{name}", f"refs/heads/{name}", name):
            try:
                told = self._git("rev-parse", "--verify", "--end-of-options", f"{full}^{{commit}}")
            except GitError:
                continue
            return told.decode().strip()
        raise GitError(f"there is no commit '{visible(name)}'; fetch it, or name another base")

    def forks(self, base: str, head: str) -> list[str]:
        """Return the best common ancestors of two commits.

        Raises:
            GitError: There is none, as in a shallow clone.
        """
        try:
            return self._git("merge-base", "--all", base, head).decode().split()
        except GitError:
            raise GitError(
                "the branch and its base have no common commit; fetch the whole history "
                "(fetch-depth: 0, GIT_DEPTH: 0)"
            ) from None

    def tree(self, commit: str) -> Tree:
        """Read the list of all files, links and submodules of a commit.

        Raises:
            GitError: The commit is not complete, or programs may differ in what it contains.
        """
        listed = list(_entries(self._git("ls-tree", "-r", "-z", "--full-tree", commit)))
        if odd := odd_path(path for path, _ in listed):
            told = "which no working tree can contain beside its other entries"
            raise GitError(f"commit {commit[:12]} contains {shown(odd)}, {told}")
        return Tree(entries=dict(listed), load=self.blobs)

    def blobs(self, oids: Iterable[str]) -> Iterator[bytes]:
        """Read the contents of files, in order.

        Raises:
            GitError: One is missing, as in a partial clone.
        """
        wanted = list(oids)
        for start in range(0, len(wanted), _AT_ONCE):
            yield from self._blobs(wanted[start : start + _AT_ONCE])

    def _blobs(self, wanted: Sequence[str]) -> Iterator[bytes]:
        raw = self._git("cat-file", "--batch", stdin="\n".join([*wanted, ""]).encode())
        at = 0
        for oid in wanted:
            end = raw.index(b"\n", at)
            header = raw[at:end].split()
            if header[1:2] != [b"blob"]:
                told = "is missing: fetch without a filter" if _MISSING in header else "is no file"
                raise GitError(f"object {oid[:12]} {told}")
            size = int(header[2])
            yield raw[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        untrusted = [str(self.checkout or self.git_dir)]
        program = find_program(("git",), untrusted)
        if program is None:
            raise GitError(f"cannot run git: {why_missing(('git',), untrusted)}")
        with TemporaryDirectory() as empty:
            command = [program, f"--git-dir={self.git_dir}", *_FLAGS, *arguments]
            try:
                ran = subprocess.run(
                    command, input=stdin, capture_output=True, check=False, cwd=empty,
                    env=_environment(),
                )  # fmt: skip
            except OSError as error:
                raise GitError(f"cannot run git: {error.strerror}") from error
        if ran.returncode:
            said = ran.stderr.decode(errors="replace").strip()
            raise GitError(f"git {arguments[0]}: {visible(said)[:300]}")
        return ran.stdout


def _environment() -> Mapping[str, str]:
    own = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**own, **_VARIABLES}


def _entries(raw: bytes) -> Iterator[tuple[str, Entry]]:
    for line in raw.split(b"\0"):
        if line:
            head, _, name = line.partition(b"\t")
            mode, _, oid = head.decode().split()
            path = name.decode(errors="surrogateescape")
            yield path, Entry(path=path, mode=mode, oid=oid)


def open_repository(folder: Path) -> Repository:
    """Open a git directory, or a checkout with its `.git`.

    Raises:
        GitError: The folder is neither.
    """
    where = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links
    if os.path.lexists(where / ".git"):
        return Repository(where / ".git", where)
    if all((where / name).exists() for name in _BARE):
        return Repository(where, where.parent if where.name == ".git" else None)
    raise GitError(f"{visible(str(folder))} is no git directory and no checkout")


def find_repository(folder: Path) -> Repository:
    """Find the only checkout that contains a folder.

    Bare repositories are not looked for: anybody can commit the files of one into a folder.

    Raises:
        GitError: There is none, or one inside of another.
    """
    where = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links
    found = [each for each in (where, *where.parents) if os.path.lexists(each / ".git")]
    if not found:
        told = "is in no git checkout; name the repository with --repository"
        raise GitError(f"{visible(str(where))} {told}")
    if len(found) > 1:
        told = f"is in the checkout {visible(str(found[0]))}, which is inside of another,"
        told += f" {visible(str(found[1]))}; name one with --repository"
        raise GitError(f"{visible(str(where))} {told}")
    return open_repository(found[0])
