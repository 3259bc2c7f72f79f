"""Sorts the paths that a branch changes: stacks to preview, and files that a person must approve.

A branch that changes only stack files runs the code and the checks of its base. Every path that is
not known to be harmless counts as code.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from kthena_components.core.findings import count_of

_STACK = re.compile(r"[A-Za-z0-9._-]{1,100}")
"""Source: pulumi sdk/go/common/tokens/names.go, stack names."""
_HARMLESS = re.compile(
    r".*\.md|(docs|tests|bench|examples)/.*|LICENSE|\.gitignore", re.IGNORECASE | re.DOTALL
)
_JUDGE = re.compile(
    r"(policies|kthena_components|ci|\.ci|\.github|\.gitlab)/.*|\.gitlab-ci\.yml|CODEOWNERS"
    r"|requirements[^/]*|pyproject\.toml",
    re.DOTALL,
)
"""The files that do the checking: rules, levels, the package, its lock file, and its callers."""
_BESIDE = re.compile(
    r"(policies|ci|\.ci|\.github|\.gitlab)/.*|\.gitlab-ci\.yml|CODEOWNERS", re.DOTALL
)
"""Checking files that previews do not run, because previews use those of the base."""
_CALLERS = re.compile(r"(\.ci|\.github|\.gitlab)/.*|\.gitlab-ci\.yml|CODEOWNERS", re.DOTALL)
"""Files at the root of a repository that decide how its projects are checked."""
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One path that differs from the base."""

    path: str
    deleted: bool = False
    is_file: bool = True
    """Whether it is a regular file, not a link or a submodule."""
    is_outside: bool = False
    """Whether it is outside the folder of the project. Its path starts at the repository's root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a project keeps its stack files, relative to the root of the repository."""

    prefix: str
    """`stacks/Pulumi.`"""
    suffix: str
    """`.yaml`"""

    def stack_of(self, path: str) -> str | None:
        """Return the name of the stack if a path is a stack file."""
        if not (path.startswith(self.prefix) and path.endswith(self.suffix)):
            return None
        return path[len(self.prefix) : -len(self.suffix)] or None

    def file_of(self, stack: str) -> str:
        """Return the path of a stack's file."""
        return f"{self.prefix}{stack}{self.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """The paths that a branch changes, by category."""

    stacks: tuple[str, ...] = ()
    """Stacks to preview."""
    files: tuple[str, ...] = ()
    """Stack files that the branch changes or adds."""
    deleted: tuple[str, ...] = ()
    """Stacks whose file the branch deletes."""
    judge: tuple[str, ...] = ()
    """Paths of files that do the checking."""
    code: tuple[str, ...] = ()
    """Paths that a preview may run."""
    odd: tuple[str, ...] = ()
    """Invalid stack files: links, or files with a name that is not a valid stack name."""


def sort_branch(
    changes: Iterable[Changed],
    layouts: Sequence[Layout],
    known: Sequence[str],
    reads: Sequence[str] | None = None,
) -> Branch:
    """Sort the paths that a branch changes.

    Args:
        changes: All paths that differ.
        layouts: The layouts of the base and of the branch.
        known: The stacks in the branch.
        reads: Folders outside the project that its program reads, from the root of the repository.
            None: it may read everything.
    """
    found = _Sorted()
    for change in changes:
        if change.is_outside:
            found.take_outside(change.path, reads)
            continue
        stack = next(filter(None, (layout.stack_of(change.path) for layout in layouts)), None)
        if stack is None:
            found.take(change.path)
        else:
            found.take_stack(stack, change)
    own = set(found.own)
    return Branch(
        stacks=tuple(known if found.everything else [name for name in known if name in own]),
        files=tuple(found.files), judge=tuple(found.judge), code=tuple(found.code),
        odd=tuple(found.odd), deleted=tuple(name for name in found.deleted if name not in known),
    )  # fmt: skip


@dataclass(slots=True)
class _Sorted:
    own: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    odd: list[str] = field(default_factory=list)
    judge: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    everything: bool = False

    def take_stack(self, stack: str, change: Changed) -> None:
        """Sort a stack file."""
        if change.deleted:
            self.deleted.append(stack)
        elif change.is_file and _STACK.fullmatch(stack):
            self.own.append(stack)
            self.files.append(change.path)
        else:
            self.odd.append(change.path)

    def take_outside(self, path: str, reads: Sequence[str] | None) -> None:
        """Sort a path outside the project."""
        if _CALLERS.fullmatch(path):
            self.judge.append(f"/{path}")
        elif not _HARMLESS.fullmatch(path) and (reads is None or _is_below(path, reads)):
            self.code.append(f"/{path}")
            self.everything = True

    def take(self, path: str) -> None:
        """Sort any other path."""
        if _JUDGE.fullmatch(path):
            self.judge.append(path)
            self.everything = self.everything or not _BESIDE.fullmatch(path)
        elif not _HARMLESS.fullmatch(path):
            self.code.append(path)
            self.everything = True


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def is_harmless(path: str) -> bool:
    """Return whether a path is neither run nor used for checking."""
    return _HARMLESS.fullmatch(path) is not None and _JUDGE.fullmatch(path) is None


def named(paths: Sequence[str]) -> str:
    """List the first paths and count the rest."""
    shown = ", ".join(paths[:_SHOWN])
    more = len(paths) - _SHOWN
    return f"{shown} and {count_of(more, 'other')}" if more > 0 else shown
