"""`kthena-components review`: writes the comment on a pull request from Pulumi previews."""

import argparse
import os
import posixpath
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

from kthena_components.checker.levels import Levels
from kthena_components.checker.update_rules import check_change
from kthena_components.checker.waivers import annotated, waive
from kthena_components.cli.main import ERROR, PROBLEM, SUCCESS, UNAPPROVED
from kthena_components.cli.policy_pack import PackError, complete
from kthena_components.cli.review.branch import BranchReview, ReviewOptions, review_branch
from kthena_components.cli.review.branch_diff import base_files, open_sides
from kthena_components.cli.review.comment import write_check, write_comment
from kthena_components.cli.review.git import GitError, Repository, find_repository, open_repository
from kthena_components.cli.review.placement import (
    add_inventory,
    check_placement,
    place_with,
    read_inventories,
    write_placement,
)
from kthena_components.cli.review.preview import (
    Preview,
    PreviewError,
    PreviewFinding,
    Weight,
    read_preview,
)
from kthena_components.cli.review.stack import (
    Reviewed,
    StateError,
    read_state,
    reviewed,
    unchecked_memory,
)
from kthena_components.cli.review.strictness import read_base_waivers
from kthena_components.cli.settings import read_settings
from kthena_components.core.findings import Finding, Level, today
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.core.values.display import visible

_EXITS = """exit status:
  0  no mandatory findings
  1  at least one mandatory finding
  2  wrong usage, or a preview that cannot be read, did not finish or failed for another reason;
     the comment is still written
  3  with --base: no mandatory findings, but the branch needs an approval, because it changes its
     own checks (such as policies, levels or workflows), the code that previews run, or the
     clusters and backends that they connect to"""
_WEIGHTS = {
    Level.MANDATORY: Weight.MANDATORY,
    Level.ADVISORY: Weight.ADVISORY,
    Level.WAIVED: Weight.WAIVED,
}


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "review",
        help=help_text,
        description="Write a Markdown comment that shows what a change does to each stack: sizes "
        "and GPUs before and after, restarts and replacements, and all findings.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "previews",
        metavar="STACK=FILE",
        nargs="*",
        help="a stack and the FILE from `pulumi preview --event-log FILE`; the output of --json "
        "also works, but has no findings of policies",
    )
    parser.add_argument(
        "--state",
        metavar="STACK=FILE",
        action="append",
        default=[],
        help="what a stack has deployed, from `pulumi stack export --file FILE`: if its program "
        "stops early, the servings that it did not register count as they are deployed",
    )
    parser.add_argument(
        "--level",
        metavar="dev|staging|prod|FILE",
        help="how severe each rule is, and the GPU of pods that name none: as in an environment, "
        "or as in FILE, such as policies/levels/prod.json",
    )
    add_inventory(parser)
    parser.add_argument(
        "--note", metavar="TEXT", action="append", default=[], help="a line to add to the comment"
    )
    _about_a_branch(parser)
    parser.set_defaults(run=lambda asked: run(asked, parser))


def _about_a_branch(parser: argparse.ArgumentParser) -> None:
    """Add the options for --base, which runs previews: see docs/security.md."""
    parser.add_argument(
        "--base",
        "--branch",
        metavar="COMMIT",
        help="preview the stacks that the branch in --tree has changed since this commit; the "
        "policies, levels and waivers come from the commit",
    )
    _about_its_place(parser)
    parser.add_argument(
        "--reads",
        metavar="FOLDER",
        nargs="*",
        help="if the project is in a subfolder of its repository: the folders outside it that its "
        "program reads, from the root of the repository; none: only its own. Default: all of them",
    )
    parser.add_argument(
        "--judge",
        metavar="FOLDER",
        type=Path,
        help="a folder with the files of --base, which judge the branch; default: read from git",
    )
    parser.add_argument(
        "--no-preview",
        action="store_true",
        help="only report the changes that need an approval; run no code of the branch",
    )
    parser.add_argument(
        "--approved",
        action="store_true",
        help="a person has approved the branch: findings about weaker checks are advisory, and "
        "its new waivers count",
    )
    parser.add_argument(
        "--allow-exec",
        action="store_true",
        help="also preview a stack whose kubeconfig comes from the branch and runs a program or "
        "sends a file",
    )


def _about_its_place(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the commits and the project."""
    parser.add_argument(
        "--tree",
        metavar="FOLDER",
        type=Path,
        default=Path(),
        help="the folder of the project in a checkout of the branch, where previews run; default: "
        "the current folder",
    )
    parser.add_argument(
        "--repository",
        metavar="FOLDER",
        type=Path,
        help="the git directory, or the checkout, with both commits; default: the one of --tree",
    )
    parser.add_argument(
        "--head", metavar="COMMIT", default="HEAD", help="the commit of the branch; default: HEAD"
    )
    parser.add_argument(
        "--project",
        metavar="FOLDER",
        help="the folder of the project from the root of the repository; default: the place of "
        "--tree in the repository, or else the root",
    )


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the comment to standard output and return the exit status."""
    try:
        levels = read_settings(asked.level).levels
    except ValueError as error:
        parser.exit(ERROR, f"{parser.prog}: {visible(str(error))}\n")
    for stated in (*asked.previews, *asked.state, *asked.inventory):
        if not all(stated.partition("=")):
            parser.error(f"write STACK=FILE instead of '{stated}'")
    if asked.judge is not None and not asked.judge.is_dir():
        why = "is not a folder" if asked.judge.exists() else "does not exist"
        parser.exit(ERROR, f"{parser.prog}: --judge {visible(str(asked.judge))} {why}: name the "
                    "folder with the files of the base, or leave it out\n")  # fmt: skip
    previews = [tuple(stated.split("=", 1)) for stated in asked.previews]
    if len(dict(previews)) < len(previews):
        parser.error("a stack is named twice: name each stack once")
    states = dict(stated.split("=", 1) for stated in asked.state)
    if unknown := [stack for stack in states if stack not in dict(previews)]:
        parser.error(f"--state {unknown[0]}: there is no preview of a stack with this name")
    if asked.base is None:
        given = BranchReview(base="", previews=previews, states=states, notes=asked.note)
        given.inventories = read_inventories(asked)
        return _write(given, levels)
    if asked.previews:
        parser.error("--base runs the previews itself; use either --base or STACK=FILE")
    with TemporaryDirectory() as work:
        return _review_branch(asked, levels, Path(work))


def _review_branch(asked: argparse.Namespace, levels: Levels, work: Path) -> int:
    """Preview and review the stacks that a branch affects, with the checks of its base."""
    tree = Path(os.path.abspath(asked.tree))  # noqa: PTH100 - resolve() would follow links
    try:
        named = asked.repository
        repository = find_repository(tree) if named is None else open_repository(named)
        project = _project(asked.project, repository, tree)
        base, head = repository.commit(asked.base), repository.commit(asked.head)
        sides = open_sides(repository, base, head, project)
        judge = asked.judge or base_files(sides, work / "judge")
        complete(judge, runs=not asked.no_preview)
    except (GitError, PackError) as error:
        return _write(BranchReview(base="", failed=[str(error)], notes=asked.note), levels)
    going_by = ReviewOptions(
        sides=sides, tree=tree, judge=judge, work=work, today=today(),
        allow_exec=asked.allow_exec, approved=asked.approved, previews=not asked.no_preview,
        reads=None if asked.reads is None else tuple(map(_folder, asked.reads)),
    )  # fmt: skip
    inventories = read_inventories(asked, going_by)
    found = review_branch(going_by)
    found.notes, found.inventories = [*found.notes, *asked.note], inventories
    return _write(found, levels, going_by)


def _project(stated: str | None, repository: Repository, tree: Path) -> str:
    """Return the folder of the project, from the root of the repository."""
    if stated is not None:
        return _folder(stated)
    top = repository.checkout
    return _folder(tree.relative_to(top).as_posix()) if top and tree.is_relative_to(top) else ""


def _folder(stated: str) -> str:
    """Write a folder of the repository as git does; empty: the root."""
    path = posixpath.normpath(stated.strip("/"))
    return "" if path == "." else path


def _write(found: BranchReview, levels: Levels, by: ReviewOptions | None = None) -> int:
    """Write the comment, and return the exit status."""
    stacks: list[Reviewed] = []
    waivers = None if by is None or by.approved else read_base_waivers(by.judge, by.today)
    for stack, path in found.previews:
        try:
            preview = read_preview(stack, path)
        except PreviewError as error:
            sys.stderr.write(f"{visible(str(error))}\n")
            # Not the text of the error: it may quote the file.
            found.failed.append(f"the preview of stack {stack} cannot be read")
            continue
        _add_state(preview, found)
        said = list(check_updates(preview, levels, today()))
        said += [_reported(each, "") for each in levels.apply(unchecked_memory(preview))]
        if waivers is not None:
            preview.said = list(waivers.apply(preview.said, preview))
            said = list(waivers.apply(said, preview))
        placed = place_with(found.inventories.get(stack), preview, found.failed)
        if placed is not None:
            findings = levels.apply(check_placement(placed, today()))
            said += [_reported(finding, "") for finding in findings]
        section = () if placed is None else tuple(write_placement(placed))
        stacks.append(replace(reviewed(preview, said), placement=section))
    for reason in found.failed:
        sys.stderr.write(f"not checked: {visible(reason)}\n")
    approved = by is not None and by.approved
    first = _first(found, approved=approved)
    if by is not None and not by.previews:
        text = write_check(first, found.said, sys.stderr.write)
    else:
        text = write_comment(
            stacks, found.notes, first=first, said=found.said, log=sys.stderr.write
        )
    sys.stdout.write(text)
    sys.stdout.flush()
    return _status(stacks, found, approved=approved)


def _add_state(preview: Preview, found: BranchReview) -> None:
    """Add the deployed state of the stack, if there is a file with it. The review works without."""
    path = found.states.get(preview.stack)
    try:
        preview.deployed = {} if path is None else read_state(path)
    except StateError as error:
        sys.stderr.write(f"{visible(str(error))}\n")
        found.failed.append(f"the state of stack {preview.stack} cannot be read")


def _first(found: BranchReview, *, approved: bool) -> list[tuple[str, str]]:
    """Return the lines at the top of the comment: a string in bold, and the text after it."""
    notes = [("Not checked:", f"{reason}.") for reason in found.failed]
    if found.reasons:
        by = f"The checks are those of its base, {found.base[:12]}."
        words = "has approved" if approved else "must approve"
        if not approved:
            by += " To approve it, set the label judge-approved (docs/ci), or give --approved."
        notes.append(
            (f"A person {words} this branch.", f"It changes {'; '.join(found.reasons)}. {by}")
        )
    return notes


def _status(stacks: Sequence[Reviewed], found: BranchReview, *, approved: bool) -> int:
    if found.failed or any(stack.is_broken for stack in stacks):
        return ERROR
    refused = any(said.weight is Weight.MANDATORY for said in found.said)
    if refused or any(stack.mandatory for stack in stacks):
        return PROBLEM
    return UNAPPROVED if found.reasons and not approved else SUCCESS


def check_updates(preview: Preview, levels: Levels, today: date) -> Iterator[PreviewFinding]:
    """Check each object that is updated or replaced, from its old and new inputs.

    Invalid waivers are not reported here, because the policies report them.
    """
    for step in preview.steps.values():
        if step.op not in {"update", "replace"} or not step.type.startswith("kubernetes:"):
            continue
        before, after = ({**body, **pulumi_identity(step.type)} for body in (step.old, step.new))
        found = check_change(before, after, replaced=step.op == "replace")
        waived = waive(found, annotated(step.new), today)[: len(found)]
        for finding in levels.apply(waived):
            yield _reported(finding, step.urn)


def _reported(finding: Finding, urn: str) -> PreviewFinding:
    weight = _WEIGHTS.get(finding.level, Weight.UNKNOWN)
    return PreviewFinding(weight=weight, rule=finding.rule, text=str(finding), urn=urn)
