"""`kthena-components review`: from previews to the comment on a pull request."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime

from kthena_components.cli.comment import Reviewed, reviewed, write_comment
from kthena_components.cli.levels import read_settings
from kthena_components.cli.preview import (
    Preview,
    PreviewError,
    Said,
    Weight,
    read_preview,
)
from kthena_components.cli.shapes import identity
from kthena_components.core.checks.changes import judge_change
from kthena_components.core.checks.waivers import annotated, waive
from kthena_components.core.findings import Finding, Level
from kthena_components.core.visible import visible
from kthena_components.core.weights import Levels

CLEAN, FOUND, WRONG = 0, 1, 2
_EXITS = """exit status:
  0  nothing mandatory was found
  1  at least one mandatory finding
  2  wrong use, or a preview that could not be read, failed for another reason or came to no end;
     the comment is written all the same"""
_WEIGHTS = {
    Level.MANDATORY: Weight.MANDATORY,
    Level.ADVISORY: Weight.ADVISORY,
    Level.WAIVED: Weight.WAIVED,
}


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of `kthena-components`."""
    parser = commands.add_parser(
        "review",
        help="write the comment on a pull request from previews of Pulumi",
        description="Write, as Markdown, what a change would do to each stack: shapes before and "
        "after, GPUs, what restarts or is replaced, and every finding.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "previews",
        metavar="STACK=FILE",
        nargs="*",
        help="a stack, and what `pulumi preview` wrote with --event-log FILE; a FILE that "
        "--json wrote will do, but holds no findings of policies",
    )
    parser.add_argument("--level", metavar="dev|staging|prod|FILE", help="as for check")
    parser.add_argument(
        "--note", metavar="TEXT", action="append", default=[], help="a line more in the comment"
    )
    parser.set_defaults(run=lambda asked: run(asked, parser))


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the comment to standard output and give the exit status."""
    try:
        levels = read_settings(asked.level).levels
    except ValueError as error:
        parser.exit(WRONG, f"{parser.prog}: {visible(str(error))}\n")
    stacks: list[Reviewed] = []
    notes = list(asked.note)
    for stated in asked.previews:
        stack, _, path = stated.partition("=")
        if not stack or not path:
            parser.error(f"write STACK=FILE instead of '{stated}'")
        try:
            preview = read_preview(stack, path)
        except PreviewError as error:
            sys.stderr.write(f"{visible(str(error))}\n")
            # The text of the error may hold a piece of the file.
            notes.append(f"Stack {stack}: its preview could not be read.")
            continue
        said = judge_updates(preview, levels, datetime.now(UTC).date())
        stacks.append(reviewed(preview, said))
    sys.stdout.write(write_comment(stacks, notes))
    sys.stdout.flush()
    return _status(stacks, len(asked.previews))


def _status(stacks: Sequence[Reviewed], asked: int) -> int:
    if len(stacks) < asked or any(stack.is_broken for stack in stacks):
        return WRONG
    return FOUND if any(stack.mandatory for stack in stacks) else CLEAN


def judge_updates(preview: Preview, levels: Levels, today: date) -> Iterator[Said]:
    """Judge each object that is updated in place by what it was and what it would be.

    What is wrong with a waiver, the policies say, which see the object alone.
    """
    for step in preview.steps.values():
        if step.op != "update" or not step.type.startswith("kubernetes:"):
            continue
        named = identity(step.type)
        found = judge_change({**step.old, **named}, {**step.new, **named})
        waived = waive(found, annotated(step.new), today)[: len(found)]
        for finding in levels.apply(waived):
            yield _said(finding, step.urn)


def _said(finding: Finding, urn: str) -> Said:
    weight = _WEIGHTS.get(finding.level, Weight.UNKNOWN)
    return Said(weight=weight, rule=finding.rule, text=str(finding), urn=urn)
