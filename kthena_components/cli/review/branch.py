"""Previews the stacks that a branch touches, and lists the changes that need an approval.

Policies, levels and waivers come from the base of the branch. ci/review starts this module from
the base, too.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from kthena_components.checker.weakened_levels_limits_waivers import BRANCH_RULES, StackChange
from kthena_components.cli.policy_pack import FOLDER, LEVELS, SETTINGS
from kthena_components.cli.review.branch_diff import Sides, changes_of
from kthena_components.cli.review.changed_paths import Branch, Layout, named, sort_branch
from kthena_components.cli.review.git import GitError
from kthena_components.cli.review.git_tree import Tree
from kthena_components.cli.review.preview import PreviewFinding, Weight
from kthena_components.cli.review.preview_runner import NoPulumiError, Previewer, state_of
from kthena_components.cli.review.settings_versions import (
    base_project,
    clauses_of,
    kubeconfigs,
    layout_of,
    other_settings,
    stack_after,
    stack_before,
    uncommitted,
)
from kthena_components.cli.review.stack_file_settings import StackValues
from kthena_components.cli.review.strictness import Pack, level_findings
from kthena_components.cli.terminal import Progress
from kthena_components.core.findings import Finding
from kthena_components.core.values.dataclass import dataclass
from kthena_components.reading.project import PROJECT_FILES, Project, ProjectError

if TYPE_CHECKING:
    from kthena_components.cli.review.placement import Inventory


@dataclass(slots=True, kw_only=True)
class BranchReview:
    """The result of reviewing a branch."""

    base: str
    """The commit that supplies the policies, levels and waivers."""
    reasons: list[str] = field(default_factory=list)
    """Why a person must approve it: each entry completes "it changes"."""
    said: list[PreviewFinding] = field(default_factory=list)
    """Findings that do not belong to one stack."""
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Reasons why the branch, or one of its stacks, could not be checked."""
    previews: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a stack and the file with the events of its preview."""
    states: dict[str, str] = field(default_factory=dict)
    """By stack, the file with what it has deployed, where a preview failed."""
    inventories: Mapping[str, "Inventory"] = field(default_factory=dict)
    """By stack, what its cluster has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """The options of a review."""

    sides: Sides
    """The base and the branch, as git objects."""
    tree: Path
    """The project's folder in a checkout of the branch. Only previews read it."""
    judge: Path
    """The folder with the files of the base."""
    work: Path
    allow_exec: bool = False
    approved: bool = False
    previews: bool = True
    """Whether to preview the stacks. This runs the program of the branch."""
    reads: tuple[str, ...] | None = None
    """Folders outside the project that its program reads. None: it may read everything."""
    today: date


def review_branch(options: ReviewOptions) -> BranchReview:
    """Sort the changes of a branch, compare its checks with the base, and preview its stacks."""
    made = BranchReview(base=options.sides.base)
    try:
        _review(made, options)
    except (GitError, ProjectError) as error:
        made.failed.append(str(error))
    return made


def _review(made: BranchReview, options: ReviewOptions) -> None:
    """Find what the branch changes, say what needs an approval, and preview its stacks."""
    sides = options.sides
    sides.require_readable([*map(sides.at, PROJECT_FILES), *_levels(sides, sides.after).values()])
    project = sides.project_in(sides.after)
    projects = [*base_project(sides), project]
    changes = changes_of(sides, projects, options.reads)
    layout = layout_of(project)
    unread = [path for path in options.reads or () if not sides.after.is_folder(path)]
    known = sorted(_stacks(sides, project, layout))
    branch = sort_branch(changes, list(map(layout_of, projects)), known, options.reads)
    if not (known or branch.odd) and branch != Branch():
        made.failed.append(f"there is no stack file {layout.file_of('<stack>')}")
    made.failed += [
        f"--reads {path}: the repository has no such folder. Name it from its root"
        for path in unread
    ]
    if branch.odd:
        made.failed.append(f"{named(branch.odd)}: no regular file with a valid stack name")
    made.notes += [
        f"Stack {stack}: the branch deletes its file. Its resources stay until you run "
        f"'pulumi destroy --stack {stack}'."
        for stack in branch.deleted
    ]
    _tell(made, options, branch, project)
    if options.previews:
        _preview(made, options, branch, project)


def _stacks(sides: Sides, project: Project, layout: Layout) -> Iterator[str]:
    folder = f"{project.stacks}/" if project.stacks else ""
    for name in sides.after.names(sides.at(project.stacks)):
        stack = layout.stack_of(f"{folder}{name}")
        if stack is not None:
            yield stack


def _tell(made: BranchReview, options: ReviewOptions, branch: Branch, project: Project) -> None:
    """Record which changes need an approval, and which checks the branch would weaken."""
    layout, sides = layout_of(project), options.sides
    _tell_code(made, branch)
    sides.require_readable(
        [sides.at(file) for file in (*branch.files, *map(layout.file_of, branch.stacks))]
    )
    where = list(_tell_stacks(made, options, branch, project))
    before, after = (_pack(sides, tree) for tree in (sides.before, sides.merged))
    _weigh(made, options, level_findings(before, after))
    if new := sorted(_without_levels(options, branch, layout)):
        made.reasons.append(f"the list of stacks, and the base has no levels for {named(new)}")
    if where:
        made.reasons.append(f"what previews connect to ({named(where)})")


def _tell_code(made: BranchReview, branch: Branch) -> None:
    if branch.judge:
        made.reasons.append(f"its own checks ({named(branch.judge)})")
    if branch.code:
        made.reasons.append(f"code that previews run ({named(branch.code)})")


def _tell_stacks(
    made: BranchReview, options: ReviewOptions, branch: Branch, project: Project
) -> Iterator[str]:
    """Report checks that stack files would weaken. Yield settings that redirect a preview."""
    layout = layout_of(project)
    # Defaults of Pulumi.yaml are settings of every stack.
    for file in dict.fromkeys((*branch.files, *map(layout.file_of, branch.stacks))):
        stack = layout.stack_of(file)
        if stack is None:  # the file is in the base's stack folder, which the branch has moved
            continue
        try:
            after = stack_after(options.sides, file, project)
        except ProjectError as error:
            made.failed.append(str(error))
            continue
        before = _before(made, options, stack)
        yield from (f"{file}: {key}" for key in after.moved(before))
        _weigh(made, options, _stack_findings(file, before, after, options.today))
    for stack in branch.deleted:
        before, file, gone = _before(made, options, stack), layout.file_of(stack), StackValues()
        # Without its file, a command for the stack reaches the current context of its user.
        yield from (f"{file}: {key}" for key in gone.moved(before))
        _weigh(made, options, _stack_findings(file, before, gone, options.today))


def _without_levels(options: ReviewOptions, branch: Branch, layout: Layout) -> Iterator[str]:
    """Yield new stack files without levels, if the base has levels."""
    levels = options.judge / FOLDER / "levels"
    for file in branch.files if levels.is_dir() else ():
        is_new = not options.sides.before.has(options.sides.at(file))
        if is_new and not (levels / f"{layout.stack_of(file)}.json").is_file():
            yield file


def _stack_findings(
    file: str, before: StackValues, after: StackValues, today: date
) -> Iterator[Finding]:
    """Compare two versions of a stack file by the rules about weaker checks."""
    change = StackChange(
        file=file,
        before={**before.others, **before.own},
        after={**after.others, **after.own},
        today=today,
    )
    for rule in BRANCH_RULES:
        yield from rule(change)


def _pack(sides: Sides, tree: Tree) -> Pack:
    """Read the files of one side that decide how its stacks are checked."""
    own, levels = (tree.real(sides.at(f"{FOLDER}/{name}")) for name in (SETTINGS, LEVELS))
    return Pack(
        levels={name: tree.text(path) for name, path in _levels(sides, tree).items()},
        is_own=tree.has(own),
        has_levels=tree.has(levels) or tree.is_folder(levels),
    )


def _levels(sides: Sides, tree: Tree) -> dict[str, str]:
    """Return the paths of the files of levels by name, through links, as a preview reads them.

    Links out of the repository stay links.
    """
    start = f"{tree.real(sides.at(f'{FOLDER}/{LEVELS}'))}/"
    found = sorted(path for path in tree.entries if path.startswith(start))
    return {path[len(start) :]: tree.real(path) for path in found}


def _weigh(made: BranchReview, options: ReviewOptions, findings: Iterator[Finding]) -> None:
    weight = Weight.ADVISORY if options.approved else Weight.MANDATORY
    for finding in findings:
        made.said.append(PreviewFinding(weight=weight, rule=finding.rule, text=str(finding)))


def _preview(made: BranchReview, options: ReviewOptions, branch: Branch, project: Project) -> None:
    """Preview each changed stack, and note why one is not previewed."""
    made.notes += list(uncommitted(options.sides, options.tree)) if branch.stacks else []
    previewer = Previewer(tree=options.tree, policies=options.judge / FOLDER, work=options.work)
    for number, stack in enumerate(branch.stacks):
        file = layout_of(project).file_of(stack)
        problem = _problem(options, stack, file, project)
        if problem:
            made.failed.append(f"stack {stack} is not previewed, because {problem}")
            continue
        if waits := _waits(options, stack, file, project):
            made.notes.append(f"Stack {stack} is previewed after an approval: {waits}.")
            continue
        log = options.work / f"{number}.jsonl"
        try:
            with Progress(sys.stderr, f"previewing stack {stack}"):
                note = previewer.preview(stack, options.tree / file, log)
        except NoPulumiError as error:
            made.failed.append(str(error))
            return
        made.notes += [f"Stack {stack}: {note}"] if note else []
        made.previews.append((stack, str(log)))
        if (state := state_of(log)).exists():
            made.states[stack] = str(state)


def _problem(options: ReviewOptions, stack: str, file: str, project: Project) -> str:
    """Return why a stack must not be previewed.

    The checkout has other settings than the commit, or a new kubeconfig runs or sends something.
    """
    if other := other_settings(options.sides, options.tree, file):
        return other
    try:
        after = options.sides.stack_in(options.sides.after, file, project)
        before = stack_before(options.sides, stack)
    except ProjectError:  # Pulumi may still be able to read the file, and it was not checked here
        return f"{file} cannot be read"
    if options.allow_exec:
        return ""
    mains = [base.main for base in base_project(options.sides)] or [""]
    known = set(kubeconfigs(before.kubeconfigs(), options.judge, mains[0]))
    found = kubeconfigs(after.kubeconfigs(), options.tree, project.main)
    new = [content for content in found if content not in known]
    programs = dict.fromkeys(clause for content in new for clause in clauses_of(content))
    message = f"its kubeconfig comes from the branch, and {'; '.join(programs)}"
    return f"{message}. To allow this, use --allow-exec" if programs else ""


def _waits(options: ReviewOptions, stack: str, file: str, project: Project) -> str:
    """Return which changed settings of a stack a person must approve before a preview."""
    if options.approved or options.allow_exec:
        return ""
    after = stack_after(options.sides, file, project)
    found = after.starting(stack_before(options.sides, stack))
    return (
        f"{file} changes what may start programs or send secrets elsewhere ({named(found)})"
        if found
        else ""
    )


def _before(made: BranchReview, options: ReviewOptions, stack: str) -> StackValues:
    """Return the settings of a stack in the base, or ask for a person if they cannot be read."""
    try:
        return stack_before(options.sides, stack)
    except ProjectError as error:
        made.reasons.append(f"settings whose former values are unknown: in its base, {error}")
        return StackValues()
