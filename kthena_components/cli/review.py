"""`kthena-components review`: from previews to the comment on a pull request."""

import argparse
import sys
from collections.abc import Iterator, Sequence

from kthena_components.cli.comment import Reviewed, reviewed, write_comment
from kthena_components.cli.levels import Levels, read_levels
from kthena_components.cli.preview import (
    Preview,
    PreviewError,
    Said,
    Weight,
    read_preview,
)
from kthena_components.cli.reports import one_line
from kthena_components.cli.shapes import identity
from kthena_components.core.checks.changes import judge_change
from kthena_components.core.findings import Finding, Level

CLEAN, FOUND, WRONG = 0, 1, 2
_EXITS = """exit status:
  0  nothing mandatory was found
  1  at least one mandatory finding
  2  wrong use, or a preview that could not be read, failed for another reason or came to no end;
     the comment is written all the same"""
_WEIGHTS = {Level.MANDATORY: Weight.MANDATORY, Level.ADVISORY: Weight.ADVISORY}


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
        levels = read_levels(asked.level)
    except ValueError as error:
        parser.exit(WRONG, f"{parser.prog}: {one_line(str(error))}\n")
    stacks: list[Reviewed] = []
    notes = list(asked.note)
    for stated in asked.previews:
        stack, _, path = stated.partition("=")
        if not stack or not path:
            parser.error(f"write STACK=FILE instead of '{stated}'")
        try:
            preview = read_preview(stack, path)
        except PreviewError as error:
            sys.stderr.write(f"{one_line(str(error))}\n")
            # The text of the error may hold a piece of the file.
            notes.append(f"Stack {stack}: its preview could not be read.")
            continue
        stacks.append(reviewed(preview, judge_updates(preview, levels)))
    sys.stdout.write(write_comment(stacks, notes))
    sys.stdout.flush()
    return _status(stacks, len(asked.previews))


def _status(stacks: Sequence[Reviewed], asked: int) -> int:
    if len(stacks) < asked or any(stack.is_broken for stack in stacks):
        return WRONG
    return FOUND if any(stack.mandatory for stack in stacks) else CLEAN


def judge_updates(preview: Preview, levels: Levels) -> Iterator[Said]:
    """Judge each object that is updated in place by what it was and what it would be."""
    for step in preview.steps.values():
        if step.op != "update" or not step.type.startswith("kubernetes:"):
            continue
        named = identity(step.type)
        for finding in levels.apply(judge_change({**step.old, **named}, {**step.new, **named})):
            yield _said(finding, step.urn)


def _said(finding: Finding, urn: str) -> Said:
    weight = _WEIGHTS.get(finding.level, Weight.UNKNOWN)
    return Said(weight=weight, rule=finding.rule, text=str(finding), urn=urn)
