"""Reads commits as git objects. It reads no working tree and runs nothing that a commit contains.

git gets the repository by name (`--git-dir`), an empty working folder and none of the user's git
variables and settings. The commands below read neither attributes nor `.gitmodules`, so no filter,
hook, text conversion or submodule setting of a branch has an effect (docs/decisions/0042).
"""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from kthena_components.cli.review.git_tree import Entry, Tree, odd_path, shown
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import visible
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import MOST_BYTES
from kthena_components.rendering.isolation import find_program, why_missing

_FLAGS = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "safe.bareRepository=explicit", "-c", "protocol.allow=never"),
)
_VARIABLES = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_OPTIONAL_LOCKS": "0",
    "GIT_ATTR_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "", "LC_ALL": "C",
}  # fmt: skip
_WHOLE = "fetch the whole history (fetch-depth: 0, GIT_DEPTH: 0)"
_BARE = ("HEAD", "objects", "refs")
_MISSING = b"missing"
_UNIQUE = regex(r"[A-Z_]*HEAD|[0-9a-f]{40}|[0-9a-f]{64}")
_PART_OF_HASH = regex(r"[0-9a-f]{4,63}")
_SUFFIX = regex(r"[~^:]|@\{")
"""Begins what follows the name of a branch: `main~2`."""
_SHOWN = 200
_AT_ONCE = 256
"""Files whose contents are in memory together, if they have at most MOST_BYTES in sum."""
_MOST_LISTED = 128 * 2**20
"""Bytes of a list of all paths. A tree of 1 KB can list ten billion."""
_MOST_ENTRIES = 1_000_000
_TOO_MANY = (
    f"lists more than {_MOST_ENTRIES:,} files or {_MOST_LISTED // 2**20} MiB of paths, the limit"
)
_MOST_FORKS = 16
"""Best common ancestors of a branch and its base. All files of each of them are listed."""
_MOST_OUTPUT = 64 * 2**10
"""Bytes of another answer of git."""


_TOO_MANY_FORKS = (
    f"the branch and its base have more than {_MOST_FORKS} best common ancestors, the limit; merge "
    "the base into the branch"
)


class GitError(Exception):
    """A repository or a commit cannot be read. The text is for the user."""


class TooMuchError(GitError):
    """git writes more than the limit."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository that the caller has named."""

    git_dir: Path
    checkout: Path | None = None
    """The folder of its working tree, if it was found by that folder."""

    def commit(self, name: str) -> str:
        """Return the commit of a name.

        A branch takes precedence over a tag of the same name, and HEAD, FETCH_HEAD or the hash of a
        commit over both: anybody who can push could name a branch or a tag like that.

        Raises:
            GitError: There is no such commit, or the name has two meanings.
        """
        if not _UNIQUE.fullmatch(name):
            end = _SUFFIX.search(name)
            branch = name[: end.start()] if end else name
            rest = name[len(branch) :]
            is_full = branch.startswith("refs/")
            names = (branch,) if is_full else (f"refs/remotes/{branch}", f"refs/heads/{branch}")
            for full in names:
                if self._has(full):
                    return self._parsed(f"{full}{rest}", name)
            if is_full:
                raise GitError(_no_commit(name))
            self._require_one_meaning(branch)
        return self._parsed(name, name)

    def _parsed(self, full: str, name: str) -> str:
        try:
            found = self._git("rev-parse", "--verify", "--end-of-options", f"{full}^{{commit}}")
        except GitError:
            raise GitError(_no_commit(name)) from None
        return found.decode().strip()

    def _has(self, full: str) -> bool:
        """Return whether there is a reference of exactly this name; rev-parse tries others, too."""
        try:
            self._git("show-ref", "--verify", "--quiet", "--", full)
        except GitError:
            return False
        return True

    def _require_one_meaning(self, branch: str) -> None:
        """Refuse a tag that git prefers to a remote's branch, or to the hash of a commit."""
        tag = f"refs/tags/{branch}"
        if not self._has(tag):
            return
        others = self._git("for-each-ref", "--format=%(refname:short)", f"refs/remotes/*/{branch}")
        first = others.decode(errors="replace").split("\n")[0]
        if first or _PART_OF_HASH.fullmatch(branch):
            meant = visible(first) if first else "the whole hash"
            seen = "is a tag, and a remote has a branch" if first else "is a tag, and may be a hash"
            message = f"'{visible(branch)}' {seen} of this name" if first else f"'{branch}' {seen}"
            raise GitError(f"{message}; write {meant}, or {visible(tag)}")

    def forks(self, base: str, head: str) -> list[str]:
        """Return the best common ancestors of two commits.

        Raises:
            GitError: There is none, or there are too many, or the clone is shallow: its history
                may end before the best one, and a branch can lead to an older one.
        """
        try:
            found = self._git("merge-base", "--all", base, head).decode().split()
        except TooMuchError:
            raise GitError(_TOO_MANY_FORKS) from None
        except GitError:
            raise GitError(f"the branch and its base have no common commit; {_WHOLE}") from None
        if len(found) > _MOST_FORKS:
            raise GitError(_TOO_MANY_FORKS)
        if found != [base] and self._git("rev-parse", "--is-shallow-repository") != b"false\n":
            raise GitError(f"the clone is shallow, so it may lack where the branch began; {_WHOLE}")
        return found

    def tree(self, commit: str) -> Tree:
        """Read the list of all files, links and submodules of a commit.

        Raises:
            GitError: The commit is not complete, or programs may differ in what it contains.
        """
        try:
            raw = self._git("ls-tree", "-r", "-z", "--full-tree", commit, most=_MOST_LISTED)
        except TooMuchError:
            raise GitError(f"commit {commit[:12]} {_TOO_MANY}") from None
        if raw.count(b"\0") > _MOST_ENTRIES:
            raise GitError(f"commit {commit[:12]} {_TOO_MANY}")
        listed = list(_entries(raw))
        if odd := odd_path(path for path, _ in listed):
            message = "which no working tree can contain beside its other entries"
            raise GitError(f"commit {commit[:12]} contains {shown(odd)[:_SHOWN]}, {message}")
        return Tree(entries=dict(listed), load=self.blobs, sizes=self.sizes)

    def sizes(self, oids: Iterable[str]) -> list[int]:
        """Return the sizes of files in bytes, in order.

        Raises:
            GitError: One is missing, as in a partial clone.
        """
        wanted = list(oids)
        stdin = "".join(f"{oid}\n" for oid in wanted).encode()
        most = _MOST_OUTPUT + 256 * len(wanted)
        lines = self._git("cat-file", "--batch-check", stdin=stdin, most=most).splitlines()
        return [_size(line.split(), oid) for oid, line in zip(wanted, lines, strict=True)]

    def blobs(self, oids: Iterable[str], most: int = MOST_BYTES) -> Iterator[bytes | None]:
        """Read the contents of files, in order. One with more than `most` bytes is None.

        Raises:
            GitError: One is missing, as in a partial clone.
        """
        wanted, size = list[str | None](), 0
        pairs = list(oids)
        for oid, more in zip(pairs, self.sizes(pairs), strict=True):
            if more > most:
                wanted.append(None)
                continue
            if size + more > MOST_BYTES or len(wanted) >= _AT_ONCE:
                yield from self._blobs(wanted, size)
                wanted, size = [], 0
            wanted.append(oid)
            size += more
        yield from self._blobs(wanted, size)

    def _blobs(self, wanted: Sequence[str | None], size: int) -> Iterator[bytes | None]:
        """Read the contents of objects from git, in the order asked for; None stays None."""
        stdin = "".join(f"{oid}\n" for oid in wanted if oid is not None).encode()
        most = size + _MOST_OUTPUT + 256 * len(wanted)
        raw = self._git("cat-file", "--batch", stdin=stdin, most=most) if stdin else b""
        at = 0
        for oid in wanted:
            if oid is None:
                yield None
                continue
            end = raw.index(b"\n", at)
            length = _size(raw[at:end].split(), oid)
            yield raw[end + 1 : end + 1 + length]
            at = end + 1 + length + 1

    def _git(self, *arguments: str, stdin: bytes = b"", most: int = _MOST_OUTPUT) -> bytes:
        """Run git without the configuration of the user and of the checkout; return its output."""
        untrusted = [str(self.checkout or self.git_dir)]
        program = find_program(("git",), untrusted)
        if program is None:
            raise GitError(f"cannot run git: {why_missing(('git',), untrusted)}")
        command = [program, f"--git-dir={self.git_dir}", *_FLAGS, *arguments]
        with TemporaryDirectory() as empty:
            try:
                return _output(command, stdin, most, empty)
            except OSError as error:
                raise GitError(f"cannot run git: {error.strerror}") from error


def _output(command: Sequence[str], stdin: bytes, most: int, folder: str) -> bytes:
    """Run git, and return what it writes to standard output, with at most `most` bytes.

    Raises:
        GitError: It fails, or writes more.
    """
    with TemporaryFile() as asked, TemporaryFile() as errors:
        asked.write(stdin)
        asked.seek(0)
        with subprocess.Popen(
            command, stdin=asked, stdout=subprocess.PIPE, stderr=errors, cwd=folder,
            env=_environment(),
        ) as running:  # fmt: skip
            written = b"" if running.stdout is None else running.stdout.read(most + 1)
            if len(written) > most:
                running.kill()
        said = command[len(_FLAGS) + 2]
        if len(written) > most:
            raise TooMuchError(f"git {said}: the answer has more than {most:,} bytes, the limit")
        if running.returncode:
            errors.seek(0)
            why = errors.read(_MOST_OUTPUT).decode(errors="replace").strip()
            raise GitError(f"git {said}: {visible(why)[:300]}")
        return written


def _size(header: Sequence[bytes], oid: str) -> int:
    """Return the size of a file from the line of `git cat-file`."""
    if header[1:2] != [b"blob"]:
        message = "is missing: fetch without a filter" if _MISSING in header else "is not a file"
        raise GitError(f"object {oid[:12]} {message}")
    return int(header[2])


def _no_commit(name: str) -> str:
    return f"there is no commit '{visible(name)}'; fetch it, or name another base"


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
    raise GitError(f"{visible(str(folder))} is neither a Git directory nor a checkout")


def find_repository(folder: Path) -> Repository:
    """Find the only checkout that contains a folder.

    Bare repositories are not looked for: anybody can commit the files of one into a folder.

    Raises:
        GitError: There is none, or one inside of another.
    """
    where = Path(os.path.abspath(folder))  # noqa: PTH100 - resolve() would follow links
    found = [each for each in (where, *where.parents) if os.path.lexists(each / ".git")]
    if not found:
        message = "is in no git checkout; name the repository with --repository"
        raise GitError(f"{visible(str(where))} {message}")
    if len(found) > 1:
        message = f"is in the checkout {visible(str(found[0]))}, which is inside of another,"
        message += f" {visible(str(found[1]))}; name one with --repository"
        raise GitError(f"{visible(str(where))} {message}")
    return open_repository(found[0])
