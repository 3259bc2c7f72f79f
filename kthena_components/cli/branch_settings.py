"""The settings of a project's stacks in the base of a branch, and after a merge."""

from collections.abc import Iterator
from contextlib import suppress

from kthena_components.cli.branch import Layout
from kthena_components.cli.branch_changes import Sides
from kthena_components.cli.stack_config import StackValues
from kthena_components.reading.project import Project, ProjectError


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

    What only the base has changed since the branch began is no change of the branch.

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
