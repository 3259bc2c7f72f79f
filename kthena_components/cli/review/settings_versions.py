"""The settings of a project's stacks: in the base, after a merge, and in the checkout."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from kthena_components.cli.review.branch_diff import Sides
from kthena_components.cli.review.changed_paths import Layout, named
from kthena_components.cli.review.git_tree import is_below, shown
from kthena_components.cli.review.stack_file_settings import StackValues
from kthena_components.cluster.kubeconfig import programs_of
from kthena_components.core.plan.stack_file import is_kubeconfig_text
from kthena_components.reading.files import Unreadable, is_pointer, read_regular, read_text
from kthena_components.reading.project import PROJECT_FILES, Project, ProjectError
from kthena_components.reading.settings import read_below


def layout_of(project: Project) -> Layout:
    """Return where a project keeps its stack files."""
    folder = f"{project.stacks}/" if project.stacks else ""
    return Layout(prefix=f"{folder}Pulumi.", suffix=project.suffix)


def base_project(sides: Sides) -> Iterator[Project]:
    """Yield the project of the base, if it can be read."""
    with suppress(ProjectError):  # the project is new, or the branch repairs it
        yield sides.project_in(sides.before)


def stack_after(sides: Sides, file: str, project: Project) -> StackValues:
    """Return the settings of a stack after the merge.

    What only the base has changed since the branch began is not a change of the branch.

    Raises:
        ProjectError: They cannot be read in the branch.
    """
    own = sides.stack_in(sides.after, file, project)
    with suppress(ProjectError):
        return sides.stack_in(sides.merged, file, sides.project_in(sides.merged))
    return own


def stack_before(sides: Sides, stack: str) -> StackValues:
    """Return the settings of a stack in the base. They are empty if it has no such stack.

    Raises:
        ProjectError: It has one that cannot be read.
    """
    for project in base_project(sides):
        file = layout_of(project).file_of(stack)
        if sides.before.has(sides.at(file)):
            return sides.stack_in(sides.before, file, project)
    return StackValues()


# Compares a checkout, in which previews run, with the commit that was checked.


def other_settings(sides: Sides, folder: Path, file: str) -> str:
    """Return which settings of a checkout differ from the commit; empty if none.

    Args:
        folder: The project's folder in the checkout.
        file: The stack file, from the project's folder.
    """
    for name in (*PROJECT_FILES, file):
        entry = sides.after.entries.get(sides.at(name))
        found = read_regular(folder / name)
        if entry is None and found is None:
            continue
        if found is None or entry is None or found != sides.after.data(entry):
            return f"{name} in the checkout is not the file of commit {sides.head[:12]}: commit it"
    return ""


def uncommitted(sides: Sides, folder: Path) -> Iterator[str]:
    """Name the files of the project in a checkout that differ from the commit."""
    start = sides.at("")
    files = [entry for entry in sides.after.entries.values() if is_below(entry.path, start)]
    files = [entry for entry in files if entry.is_file]
    contents = sides.after.load([entry.oid for entry in files])
    names = [entry.path.removeprefix(start).lstrip("/") for entry in files]
    other = [
        shown(name)
        for name, content in zip(names, contents, strict=True)
        if not _is_same(read_regular(folder / name), content)
    ]
    if other:
        message = f"Previews used files that are not those of commit {sides.head[:12]}"
        yield f"{message}, and that nothing compared with the base: {named(other)}."


def _is_same(found: bytes | None, content: bytes | None) -> bool:
    if found is None or content is None:
        return False
    return is_pointer(content) or _lines(found) == _lines(content)


def _lines(content: bytes) -> bytes:
    """Return a content without the carriage returns that git may add."""
    return content.replace(b"\r\n", b"\n")


# The kubeconfigs that a stack's settings lead to, as each of their readers may find them.
#
# The provider first looks for a file with the name of the value, whatever the value looks like,
# and takes it as text if there is none. It starts in the folder of the program. The stack program
# takes a value with a line break for text, and Python's client a path with colons for several
# paths.
#
# Source: pulumi-kubernetes v4.25 provider/pkg/provider/util.go, parseKubeconfigString; Pulumi
# v3.259.0 pkg/engine/project.go, getPwdMain; kubernetes-client/python config/kube_config.py,
# KubeConfigMerger.


Content = str | Unreadable


def kubeconfigs(stated: Iterable[str], folder: Path, main: str = "") -> Iterator[Content]:
    """Yield the text of each kubeconfig that a reader may use, or why it cannot be read.

    Args:
        stated: The values: paths, or contents of kubeconfigs.
        folder: The folder of the project.
        main: The `main` of the project, from its folder.
    """
    start = folder / main
    start = start if start.is_dir() else start.parent
    for value in stated:
        is_text = is_kubeconfig_text(value) or value.lstrip().startswith("{")
        places = [start / path for path in dict.fromkeys(_paths(value, is_text=is_text))]
        found = [place for place in places if os.path.lexists(place)]
        if is_text:
            yield value
        elif not found:
            yield Unreadable(file=value, because="does not exist")
        yield from (_content(place, folder) for place in found)


def clauses_of(content: Content) -> tuple[str, ...]:
    """Return what a kubeconfig runs or sends, or that it cannot be read, as clauses."""
    return (str(content),) if isinstance(content, Unreadable) else programs_of(content)


def _paths(value: str, *, is_text: bool) -> Iterator[Path]:
    parts = [value, *([] if is_text else value.split(os.pathsep))]
    for part in filter(None, parts):
        yield Path(part)
        with suppress(RuntimeError):  # there is no such user
            yield Path(part).expanduser()
        if part.startswith("~/"):
            yield from (Path(home, part[2:]) for home in _homes())


def _homes() -> Iterator[str]:
    """Yield the home of the user's entry in the list of users: the provider ignores $HOME."""
    with suppress(ImportError, KeyError):
        import pwd  # noqa: PLC0415 - Windows has none

        yield pwd.getpwuid(os.getuid()).pw_dir


def _content(place: Path, folder: Path) -> Content:
    path = Path(os.path.normpath(place))
    if path.is_relative_to(folder):
        return read_below(place, folder)
    if path.parts[1:2] in {("proc",), ("dev",)}:  # a different file for each process
        return Unreadable(file=str(path), because="is not a valid place for a kubeconfig")
    return read_text(str(place), named=False)
