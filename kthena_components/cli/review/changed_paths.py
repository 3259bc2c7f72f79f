"""Sorts the paths that a branch changes: stacks to preview, and files that a person must approve.

A branch that changes only stack files runs the code and the checks of its base. A path is harmless
only if nothing executes a file of its form, and if neither the program nor a link reaches it. Its
folder does not matter: `main: docs` makes a program of docs/. Every other path counts as code.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import field
from pathlib import PurePosixPath

from kthena_components.core.findings import count_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

_STACK = regex(r"[A-Za-z0-9._-]{1,100}")
"""Source: pulumi sdk/go/common/tokens/names.go, stack names."""
_PROSE = regex(r"(.*/)?([^/]+\.(md|png|jpe?g|gif|webp)|LICENSE)", re.IGNORECASE | re.DOTALL)
"""Files that nothing executes or imports, whatever their folder."""
_OWNERS = r"(.*/)?CODEOWNERS"
_JUDGE = regex(
    r"(policies|kthena_components|ci|\.ci|\.github|\.gitlab)(/.*)?|\.gitlab-ci\.yml"
    rf"|requirements[^/]*|pyproject\.toml|{_OWNERS}",
    re.IGNORECASE | re.DOTALL,
)
"""The files that do the checking: rules, levels, the package, its lock file, and its callers."""
_BESIDE = regex(
    rf"(policies|ci|\.ci|\.github|\.gitlab)(/.*)?|\.gitlab-ci\.yml|{_OWNERS}",
    re.IGNORECASE | re.DOTALL,
)
"""Files of checks. Previews do not run the branch's version: they use the base's."""
_CALLERS = regex(
    rf"(\.ci|\.github|\.gitlab)(/.*)?|\.gitlab-ci\.yml|{_OWNERS}", re.IGNORECASE | re.DOTALL
)
"""Files at the root of a repository that decide how its projects are checked.

Source: docs.github.com, About code owners; docs.gitlab.com, Code Owners: the file may be in the
root, in docs/, and in .github/ or .gitlab/.
"""
_CHECKOUT = regex(r"(.*/)?\.(gitattributes|gitmodules|lfsconfig)", re.IGNORECASE | re.DOTALL)
"""Files that decide what a checkout contains. Those in a folder apply to everything below it.

Source: gitattributes(5), `working-tree-encoding` and `filter`; gitmodules(5).
"""
_SHOWN, _LONGEST = 5, 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """One path that differs from the base."""

    path: str
    deleted: bool = False
    is_file: bool = True
    """Whether it is a regular file on both sides, if it exists: not a link or a submodule."""
    is_executable: bool = False
    is_outside: bool = False
    """Whether it is outside the folder of the project. Its path starts at the repository's root."""
    is_around: bool = False
    """Whether its folder contains the project, or a folder that is reached."""
    is_reached: bool = False
    """Whether the folder of the program (`main`), a folder of --reads or a link leads to it."""

    @property
    def is_harmless(self) -> bool:
        """Whether nothing executes or imports it."""
        is_plain = self.is_file and not self.is_executable and not self.is_reached
        return is_plain and _PROSE.fullmatch(self.path) is not None


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
            found.take_outside(change, reads)
            continue
        stack = next(filter(None, (layout.stack_of(change.path) for layout in layouts)), None)
        if stack is None:
            found.take(change)
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
        is_valid = _STACK.fullmatch(stack) is not None
        if change.deleted and is_valid:
            self.deleted.append(stack)
        elif change.is_file and is_valid:
            self.own.append(stack)
            self.files.append(change.path)
        elif not change.deleted:
            self.odd.append(change.path)
        # Such a file is data of a stack. A link makes more of it, and so does another name.
        if change.is_reached or (change.deleted and not is_valid):
            self.code.append(change.path)
            self.everything = True

    def take_outside(self, change: Changed, reads: Sequence[str] | None) -> None:
        """Sort a path outside the project."""
        path = change.path
        if _CALLERS.fullmatch(path):
            self.judge.append(f"/{path}")
        elif not change.is_harmless and (
            reads is None
            or change.is_reached
            or _is_below(path, reads)
            or (change.is_around and _CHECKOUT.fullmatch(path))
        ):
            self.code.append(f"/{path}")
            self.everything = True

    def take(self, change: Changed) -> None:
        """Sort any other path."""
        if _JUDGE.fullmatch(change.path):
            self.judge.append(change.path)
            self.everything = self.everything or not _BESIDE.fullmatch(change.path)
        elif not change.is_harmless:
            self.code.append(change.path)
            self.everything = True


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(PurePosixPath(path).is_relative_to(folder) for folder in folders)


def named(paths: Sequence[str]) -> str:
    """List the first paths and count the rest. A long path is cut in the middle.

    So a path cannot push what follows it out of a comment.
    """
    shown = ", ".join(map(_short, paths[:_SHOWN]))
    more = len(paths) - _SHOWN
    return f"{shown} and {count_of(more, 'other')}" if more > 0 else shown


def _short(path: str) -> str:
    half = _LONGEST // 2
    return path if len(path) <= _LONGEST else f"{path[:half]}…{path[-half:]}"
