"""Commits of any content, written without a working tree: links, submodules, odd names."""

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
WHO = "a <a@example.org> 1700000000 +0000"
Content = str | bytes | tuple[str, str | bytes]
"""Text of a regular file, or a mode with a string, the target of a link, or a commit."""


@dataclass(frozen=True)
class Commits:
    """A bare repository with a branch `main` and a branch `change` from it."""

    git_dir: Path

    @classmethod
    def make(
        cls, folder: Path, base: Mapping[str, Content], head: Mapping[str, Content | None]
    ) -> "Commits":
        """Commit files to main, and changes of them to the branch. None deletes a file."""
        made = cls(folder / "bare.git")
        made.git("init", "--quiet", "--bare", "--initial-branch", "main", str(made.git_dir))
        made.git("fast-import", "--quiet", stdin=_commit("main", base) + _commit("change", head))
        made.git("symbolic-ref", "HEAD", "refs/heads/change")
        return made

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """Run git in the repository."""
        own = {"GIT_DIR": str(self.git_dir), "GIT_CONFIG_GLOBAL": os.devnull}
        ran = subprocess.run(
            ["git", *arguments], input=stdin, check=True, capture_output=True,
            env={**os.environ, **own},
        )  # fmt: skip
        return ran.stdout

    def checkout(self, folder: Path, branch: str = "change") -> Path:
        """Check a branch out, as a runner does."""
        subprocess.run(
            ["git", "clone", "--quiet", "--branch", branch, str(self.git_dir), str(folder)],
            check=True, capture_output=True,
        )  # fmt: skip
        return folder


def _commit(branch: str, files: Mapping[str, Content | None]) -> bytes:
    lines = [f"commit refs/heads/{branch}\ncommitter {WHO}\ndata 1\nx\n".encode()]
    if branch != "main":
        lines.append(b"from refs/heads/main\n")
    for path, content in files.items():
        name = b'"%s"' % b"".join(b"\\%03o" % byte for byte in os.fsencode(path))
        if content is None:
            lines.append(b"D %s\n" % name)
            continue
        mode, text = content if isinstance(content, tuple) else (FILE, content)
        data = text if isinstance(text, bytes) else text.encode(errors="surrogateescape")
        if mode == SUBMODULE:
            lines.append(b"M %s %s %s\n" % (mode.encode(), data, name))
        else:
            lines.append(b"M %s inline %s\ndata %d\n%s\n" % (mode.encode(), name, len(data), data))
    return b"".join(lines)
