"""Previews the stacks that a branch touches, and lists the changes that need an approval.

Policies, levels and waivers come from the base of the branch. ci/review starts this module from
the base, too.
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from kthena_components.cli.branch import Branch, Layout, named, sort_branch
from kthena_components.cli.git import Checkout, GitError
from kthena_components.cli.levels import read_policies
from kthena_components.cli.policy_pack import FOLDER
from kthena_components.cli.preview import Said, Weight
from kthena_components.cli.previewing import NoPulumiError, Previewer, state_of
from kthena_components.cli.stack_config import StackValues, read_stack_values
from kthena_components.cli.terminal import Progress
from kthena_components.cluster.kubeconfig import programs_of
from kthena_components.core.findings import Finding
from kthena_components.core.plan.stack import is_kubeconfig_text
from kthena_components.judge.catalogue import all_rules
from kthena_components.judge.levels import SettingError
from kthena_components.judge.weakening import LEVEL_RULES, STACK_RULES, LevelsChange, StackChange
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.maps import read_below
from kthena_components.reading.project import Project, ProjectError, read_project

_LEVELS = re.compile(r"policies/levels/[^/]+\.json")


@dataclass(slots=True, kw_only=True)
class BranchReview:
    """The result of reviewing a branch."""

    base: str
    """The commit that supplies the policies, levels and waivers."""
    reasons: list[str] = field(default_factory=list)
    """Why a person must approve it: each entry completes "it changes"."""
    said: list[Said] = field(default_factory=list)
    """Findings that do not belong to one stack."""
    notes: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    """Why the branch, or one of its stacks, could not be checked."""
    previews: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a stack and the file with the events of its preview."""
    states: dict[str, str] = field(default_factory=dict)
    """By stack, the file with what it has deployed, where a preview failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """The options of a review."""

    tree: Path
    """The checkout of the branch, or the folder of the project in it."""
    base: str
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
    made = BranchReview(base=options.base)
    try:
        checkout = Checkout(options.tree)
        changes = checkout.changes(options.base)
        project = read_project(options.tree)
        unread = [path for path in options.reads or () if not checkout.has_folder(path)]
    except (GitError, ProjectError) as error:
        made.failed.append(str(error).removeprefix(f"{options.tree}/"))
        return made
    layout = _layout(project)
    known = sorted(_stacks(options.tree, layout))
    branch = sort_branch(changes, [*_base_layout(options.judge), layout], known, options.reads)
    if not (known or branch.odd) and branch != Branch():
        made.failed.append(f"there is no stack file {layout.file_of('<stack>')}")
    made.failed += [
        f"--reads {path}: the repository has no such folder. Name it from its root"
        for path in unread
    ]
    made.failed += [f"{path} is not a regular file with a valid stack name" for path in branch.odd]
    made.notes += [
        f"Stack {stack}: the branch deletes its file. Its resources stay until you run "
        f"'pulumi destroy --stack {stack}'."
        for stack in branch.deleted
    ]
    _tell(made, options, branch, project)
    if options.previews:
        _preview(made, options, branch, project)
    return made


def _layout(project: Project) -> Layout:
    folder = f"{project.stacks}/" if project.stacks else ""
    return Layout(prefix=f"{folder}Pulumi.", suffix=project.suffix)


def _base_layout(judge: Path) -> Iterator[Layout]:
    try:
        yield _layout(read_project(judge))
    except ProjectError:  # the project is new, or the branch repairs it
        return


def _stacks(tree: Path, layout: Layout) -> Iterator[str]:
    folder = (tree / f"{layout.prefix}x").parent
    for path in folder.iterdir() if folder.is_dir() else ():
        stack = layout.stack_of(path.relative_to(tree).as_posix())
        if stack is not None and path.is_file() and not path.is_symlink():
            yield stack


def _tell(made: BranchReview, options: ReviewOptions, branch: Branch, project: Project) -> None:
    """Record which changes need an approval, and which checks the branch would weaken."""
    layout = _layout(project)
    where = list(_tell_stacks(made, options, branch, project))
    for file in branch.judge:
        if _LEVELS.fullmatch(file):
            _weigh(made, options, _level_findings(file, options))
    if branch.judge:
        made.reasons.append(f"its own checks ({named(branch.judge)})")
    if branch.code:
        made.reasons.append(f"code that previews run ({named(branch.code)})")
    if new := sorted(_without_levels(options, branch, layout)):
        made.reasons.append(f"the list of stacks, and the base has no levels for {named(new)}")
    if where:
        made.reasons.append(f"what previews connect to ({named(where)})")


def _tell_stacks(
    made: BranchReview, options: ReviewOptions, branch: Branch, project: Project
) -> Iterator[str]:
    """Report checks that stack files would weaken. Yield settings that redirect a preview."""
    layout = _layout(project)
    for file in branch.files:
        stack = layout.stack_of(file)
        if stack is None:  # the file is in the base's stack folder, which the branch has moved
            continue
        try:
            after = read_stack_values(options.tree, file, project)
        except ProjectError as error:
            made.failed.append(str(error).removeprefix(f"{options.tree}/"))
            continue
        before = _before(options, stack)
        yield from (f"{file}: {key}" for key in after.moved(before))
        _weigh(made, options, _stack_findings(file, before, after, options.today))
    for stack in branch.deleted:
        before, file = _before(options, stack), layout.file_of(stack)
        _weigh(made, options, _stack_findings(file, before, StackValues(), options.today))


def _without_levels(options: ReviewOptions, branch: Branch, layout: Layout) -> Iterator[str]:
    """Yield new stack files without levels, if the base has levels."""
    levels = options.judge / FOLDER / "levels"
    for file in branch.files if levels.is_dir() else ():
        is_new = not (options.judge / file).exists()
        if is_new and not (levels / f"{layout.stack_of(file)}.json").is_file():
            yield file


def _stack_findings(
    file: str, before: StackValues, after: StackValues, today: date
) -> Iterator[Finding]:
    change = StackChange(file=file, before=before.own, after=after.own, today=today)
    for rule in STACK_RULES:
        yield from rule(change)


def _level_findings(file: str, options: ReviewOptions) -> Iterator[Finding]:
    try:
        before = read_policies(options.judge / file, options.judge)
    except SettingError:  # the levels of the base are not valid either
        return
    try:
        after = read_policies(options.tree / file, options.tree)
    except SettingError:
        after = None
    rules = {rule.name: rule.level.value for rule in all_rules()}
    change = LevelsChange(file=file, before=before, after=after, rules=rules)
    for rule in LEVEL_RULES:
        yield from rule(change)


def _weigh(made: BranchReview, options: ReviewOptions, findings: Iterator[Finding]) -> None:
    weight = Weight.ADVISORY if options.approved else Weight.MANDATORY
    for finding in findings:
        made.said.append(Said(weight=weight, rule=finding.rule, text=str(finding)))


def _preview(made: BranchReview, options: ReviewOptions, branch: Branch, project: Project) -> None:
    previewer = Previewer(tree=options.tree, policies=options.judge / FOLDER, work=options.work)
    for number, stack in enumerate(branch.stacks):
        file = _layout(project).file_of(stack)
        problem = _problem(options, stack, file, project)
        if problem:
            made.failed.append(f"stack {stack} is not previewed, because {problem}")
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
    """Return why a stack must not be previewed: its new kubeconfig runs or sends something."""
    try:
        after = read_stack_values(options.tree, file, project)
    except ProjectError:  # Pulumi may still be able to read the file, and it was not checked here
        return f"{file} cannot be read"
    if options.allow_exec:
        return ""
    known = set(_kubeconfigs(options.judge, _before(options, stack)))
    found = [content for content in _kubeconfigs(options.tree, after) if content not in known]
    programs = dict.fromkeys(clause for content in found for clause in _clauses(content))
    told = f"its kubeconfig comes from the branch, and {'; '.join(programs)}"
    return f"{told}. To allow this, use --allow-exec" if programs else ""


def _kubeconfigs(folder: Path, values: StackValues) -> Iterator[str | Unreadable]:
    """Yield the text of each kubeconfig, from the stack file or from the file that it names."""
    for stated in values.kubeconfigs():
        if is_kubeconfig_text(stated) or stated.lstrip().startswith("{"):
            yield stated
            continue
        path = Path(os.path.normpath(folder / Path(stated).expanduser()))
        if path.is_relative_to(folder):
            yield read_below(path, folder)
        elif path.parts[1:2] in {("proc",), ("dev",)}:  # a different file for each process
            yield Unreadable(file=stated, because="is not a valid place for a kubeconfig")
        else:
            yield read_text(str(path), named=False)


def _clauses(content: str | Unreadable) -> tuple[str, ...]:
    return (str(content),) if isinstance(content, Unreadable) else programs_of(content)


def _before(options: ReviewOptions, stack: str) -> StackValues:
    """Return the settings of a stack in the base. They are empty if it has no such stack."""
    try:
        project = read_project(options.judge)
        return read_stack_values(options.judge, _layout(project).file_of(stack), project)
    except ProjectError:
        return StackValues()
