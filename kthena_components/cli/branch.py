"""What a branch changes, sorted: stacks to preview, and what a person must look at.

Only stack files leave everything that judges and runs as it is in the base. Whatever is not known
to be harmless counts as code.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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
"""What judges: rules, levels, the package, what it is locked to, and what calls it."""
_BESIDE = re.compile(
    r"(policies|ci|\.ci|\.github|\.gitlab)/.*|\.gitlab-ci\.yml|CODEOWNERS", re.DOTALL
)
"""What judges and takes no part in a preview, which is judged by the base."""
_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One path that differs from the base."""

    path: str
    deleted: bool = False
    is_file: bool = True
    """Whether it is a regular file: no link and no submodule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where a project keeps its stack files, from the root of the repository."""

    prefix: str
    """`stacks/Pulumi.`"""
    suffix: str
    """`.yaml`"""

    def stack_of(self, path: str) -> str | None:
        """Give the stack whose file a path is."""
        if not (path.startswith(self.prefix) and path.endswith(self.suffix)):
            return None
        return path[len(self.prefix) : -len(self.suffix)] or None

    def file_of(self, stack: str) -> str:
        """Give the path of a stack's file."""
        return f"{self.prefix}{stack}{self.suffix}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch, sorted."""

    stacks: tuple[str, ...] = ()
    """Stacks to preview."""
    files: tuple[str, ...] = ()
    """Stack files that it changes or adds."""
    deleted: tuple[str, ...] = ()
    """Stacks whose file it deletes."""
    judge: tuple[str, ...] = ()
    """Paths that judge."""
    code: tuple[str, ...] = ()
    """Paths that a preview may run."""
    odd: tuple[str, ...] = ()
    """Stack files that cannot be one: links, or names that no stack may have."""


def sort_branch(
    changes: Iterable[Changed], layouts: Sequence[Layout], known: Sequence[str]
) -> Branch:
    """Sort what a branch changes.

    Args:
        changes: Every path that differs.
        layouts: Of the base and of the branch.
        known: Stacks that the branch has.
    """
    found = _Sorted()
    for change in changes:
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

    def take(self, path: str) -> None:
        """Sort any other path."""
        if _JUDGE.fullmatch(path):
            self.judge.append(path)
            self.everything = self.everything or not _BESIDE.fullmatch(path)
        elif not _HARMLESS.fullmatch(path):
            self.code.append(path)
            self.everything = True


def is_harmless(path: str) -> bool:
    """Tell whether nothing runs a path, and nothing is judged by it."""
    return _HARMLESS.fullmatch(path) is not None and _JUDGE.fullmatch(path) is None


def named(paths: Sequence[str]) -> str:
    """Name a few paths, and count the rest."""
    shown = ", ".join(paths[:_SHOWN])
    more = len(paths) - _SHOWN
    return f"{shown} and {count_of(more, 'other')}" if more > 0 else shown
