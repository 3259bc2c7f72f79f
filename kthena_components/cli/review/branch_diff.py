"""Lists what differs between a branch and its base, as paths that a project sees."""

import posixpath
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any
from unicodedata import normalize

from kthena_components.cli.policy_pack import FOLDER
from kthena_components.cli.review.changed_paths import Changed
from kthena_components.cli.review.git import GitError, Repository
from kthena_components.cli.review.git_tree import Entry, Tree, TreeError, is_below, parts_of, shown
from kthena_components.cli.review.stack_file_settings import StackValues, stack_values
from kthena_components.core.values.dataclass import dataclass
from kthena_components.reading.files import Unreadable
from kthena_components.reading.project import (
    PROJECT_FILES,
    Project,
    ProjectError,
    only_project_file,
    parse_mapping,
    parse_project,
)

MOST_FILES, MOST_SETTINGS = 1_000, 4 * 2**20
"""How many stack files and files of levels of a branch are read, and their bytes in sum."""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The commits that a review compares, and the folder of the project in both."""

    base: str
    """The commit whose checks judge the branch."""
    head: str
    """The commit of the branch."""
    project: str
    """From the root of the repository; empty: the root."""
    before: Tree
    after: Tree
    forks: tuple[Tree, ...]
    """Their best common ancestors. A path counts as changed if it differs from any of them."""

    @cached_property
    def changed(self) -> Mapping[str, tuple[Entry | None, Entry | None]]:
        """Each path that the branch changes, with its entries before and after."""
        return {
            path: (fork.entries.get(path), self.after.entries.get(path))
            for fork in self.forks
            for path in _differing(fork, self.after)
        }

    @cached_property
    def merged(self) -> Tree:
        """The files after a merge: the files of the base, with the branch's changes."""
        entries = dict(self.before.entries)
        for path, (_, new) in self.changed.items():
            entries.pop(path, None)
            if new is not None:
                entries[path] = new
        return Tree(entries=entries, load=self.after.load, sizes=self.after.sizes)

    def at(self, path: str) -> str:
        """Return a path of the project from the root of the repository."""
        return "/".join(filter(None, (self.project, path)))

    def project_in(self, tree: Tree) -> Project:
        """Read the project of one side.

        Raises:
            ProjectError: There is none, or it is not understood.
        """
        names = [name for name in PROJECT_FILES if tree.has(self.at(name))]
        file = only_project_file(names, self.project or "the repository")
        return parse_project(self._map(tree, file), file)

    def stack_in(self, tree: Tree, file: str, project: Project) -> StackValues:
        """Read a stack file of one side, with the defaults of its project.

        Raises:
            ProjectError: There is none, or it is not understood.
        """
        return stack_values(self.text(tree, file), file, project)

    def text(self, tree: Tree, path: str) -> str:
        """Read a file of the project of one side.

        Raises:
            ProjectError: It cannot be read.
        """
        text = tree.text(self.at(path))
        if isinstance(text, Unreadable):
            raise ProjectError(f"{shown(path)} {text.because}")
        return text

    def require_readable(self, files: Sequence[str]) -> None:
        """Require settings files of the branch that can be read and compared in a minute or so.

        Args:
            files: From the root of the repository. Only regular files are read.

        Raises:
            ProjectError: They are too many or too large.
        """
        found = [entry for entry in map(self.after.entries.get, dict.fromkeys(files)) if entry]
        sizes = self.after.sizes([entry.oid for entry in found if entry.is_file])
        if len(sizes) > MOST_FILES or sum(sizes) > MOST_SETTINGS:
            seen = f"{len(sizes):,} settings files with {sum(sizes):,} bytes need a comparison"
            limit = f"at most {MOST_FILES:,} with {MOST_SETTINGS:,} bytes are read in one review"
            raise ProjectError(f"{seen}, and {limit}: split the branch, or make them smaller")

    def _map(self, tree: Tree, file: str) -> Mapping[str, Any]:
        return parse_mapping(self.text(tree, file), file)


def open_sides(repository: Repository, base: str, head: str, project: str) -> Sides:
    """Read both commits.

    Raises:
        GitError: A commit is missing, they have no common ancestor, as in a shallow clone, or the
            project's folder is not a folder in one of them. A base without it is not an error: the
            branch adds the project.
    """
    before, after = repository.tree(base), repository.tree(head)
    for commit, tree in ((base, before), (head, after)):
        odd = tree.odd_part(project)
        if odd:
            kind = "a link" if tree.entries[odd].is_link else "no folder"
            message = f"{shown(odd)} is {kind} in commit {commit[:12]}"
            raise GitError(f"{message}, and the project must be in a real folder on both sides")
    if not after.is_folder(project):
        raise GitError(f"commit {head[:12]} has no folder {shown(project)}")
    known = {base: before, head: after}
    forks = tuple(known.get(fork) or repository.tree(fork) for fork in repository.forks(base, head))
    return Sides(base=base, head=head, project=project, before=before, after=after, forks=forks)


def changes_of(
    sides: Sides, projects: Iterable[Project], reads: Sequence[str] | None
) -> list[Changed]:
    """Return every path that the branch changes, as its project sees it.

    Args:
        sides: The commits.
        projects: The project in the base and in the branch, as far as they can be read.
        reads: Folders outside the project that its program reads. None: all.
    """
    reached = set(map(folded, _reached(sides, projects, reads)))
    around = {
        "",
        *(part for folder in (folded(sides.project), *reached) for part in parts_of(folder)),
    }
    return [
        replace(
            _changed(path, old, new, sides.project, reached),
            is_around=folded(posixpath.dirname(path)) in around,
        )
        for path, (old, new) in sorted(sides.changed.items())
    ]


def _differing(before: Tree, after: Tree) -> Iterator[str]:
    for path in before.entries.keys() | after.entries.keys():
        if before.entries.get(path) != after.entries.get(path):
            yield path


def _changed(
    path: str, old: Entry | None, new: Entry | None, project: str, reached: Container[str]
) -> Changed:
    """Describe a changed path, and whether the project's program may reach it."""
    there = [entry for entry in (old, new) if entry is not None]
    is_outside = not is_below(path, project)
    same = folded(path)
    return Changed(
        path=path if is_outside or not project else path[len(project) + 1 :],
        deleted=new is None,
        is_file=all(entry.is_file for entry in there),
        is_executable=any(entry.is_executable for entry in there),
        is_outside=is_outside,
        is_reached="" in reached
        or any(part in reached for part in parts_of(same))
        or (is_outside and is_below(same, folded(project))),
    )


def folded(path: str) -> str:
    """Return what paths have in common that are the same on macOS or Windows."""
    return path.lower() if path.isascii() else normalize("NFC", normalize("NFD", path).casefold())


def _reached(sides: Sides, projects: Iterable[Project], reads: Sequence[str] | None) -> set[str]:
    """Return the folders and files that make code of all that is in them."""
    reached = set(reads or ())
    for project in projects:
        main = sides.at(project.main)
        for tree in (sides.before, sides.after):
            folder = posixpath.dirname(main) if tree.has(main) else main
            if folder != sides.project:  # else its form decides whether a file is harmless
                reached.add(folder)
    starts = ["", *reached] if reads is None else [sides.project, *reached]
    for commit, tree in ((sides.base, sides.before), (sides.head, sides.after)):
        try:
            reached |= tree.linked(starts)
        except TreeError as error:
            raise GitError(f"commit {commit[:12]} cannot be reviewed: {error}") from None
    return reached


def base_files(sides: Sides, folder: Path) -> Path:
    """Write the project's files in the base into a new folder, and return that.

    Raises:
        GitError: Its checks are a submodule, or a link that leads out of the project.
    """
    left = sides.before.export(folder, sides.project)
    if lost := sorted(path for path in left if is_below(path, FOLDER)):
        message = "is a submodule or a link out of the project, so these checks cannot be read"
        raise GitError(
            f"{shown(lost[0])} in commit {sides.base[:12]} {message}: put the files there"
        )
    return folder
