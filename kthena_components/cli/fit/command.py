"""`kthena-components fit`: reads its options, answers, and writes rows, data and a page."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from kthena_components.cli.inventory import add_racks_from, live_cluster, stop
from kthena_components.cli.main import ERROR, PROBLEM, SUCCESS
from kthena_components.cli.shared_options import add_cluster, opened
from kthena_components.cli.terminal import Progress, paint
from kthena_components.core.values.display import visible, visible_json
from kthena_components.reading.files import unwritten

if TYPE_CHECKING:
    from kthena_components.cli.fit.output import WhatIf
    from kthena_components.placement.answer import FitQuestion
    from kthena_components.placement.model import Cluster, Outcome

WIDTH = 100
"""Columns of the racks where there is no terminal."""
_EXITS = """exit status:
  0  every group fits; those whose pods are not known are listed as not checked
  1  a group fits in part, waits or never fits
  2  wrong usage, or something cannot be read

docs/fit.md explains what is modelled. Nothing is applied, and the cluster is not changed."""


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "fit",
        help=help_text,
        description="Show for each group of pods whether it fits into a cluster, in which "
        "HyperNode and on which nodes; if not, why, and the smallest change after which it does.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "asked",
        metavar="STACK|PATH",
        nargs="+",
        help="stacks of the project in the current folder; files, folders, charts, or - for "
        "standard input",
    )
    parser.add_argument(
        "--inventory",
        metavar="PATH",
        action="append",
        default=[],
        help="what the cluster has: a file of `inventory`, or the output of kubectl get -o yaml; "
        "can be repeated; default: the cluster itself",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="default: text"
    )
    parser.add_argument(
        "--html", metavar="FILE", type=Path, help="also write a picture as one HTML file"
    )
    _add_what_if(parser)
    add_racks_from(parser)
    add_cluster(parser)
    parser.set_defaults(run=lambda asked: run(asked, parser))


def _add_what_if(parser: argparse.ArgumentParser) -> None:
    """Add the options about losing nodes and about more groups."""
    parser.add_argument(
        "--lose",
        metavar="node=NAME|rack=HYPERNODE|1",
        help="say which groups come back, and where, after a loss of these nodes; 1: after the "
        "worst loss of a single node",
    )
    parser.add_argument(
        "--grow",
        metavar="Nx",
        nargs="?",
        const=0,
        type=_factor,
        help="say how many more groups of each serving fit, each serving alone; 2x: also whether "
        "twice as many groups do. Stacks and paths come before it",
    )


def _factor(text: str) -> int:
    if not (text[:-1].isdecimal() and text.endswith("x") and int(text[:-1])):
        raise argparse.ArgumentTypeError(
            f"'{visible(text)}' is not a factor such as 2x; write stacks and paths before --grow"
        )
    return int(text[:-1])


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the answers to standard output, and return the exit status."""
    # Imported here because most commands do not need it.
    from kthena_components.cli.fit.sources import SourceError, objects_asked  # noqa: PLC0415
    from kthena_components.placement.answer import answer, ask  # noqa: PLC0415
    from kthena_components.placement.model import Verdict  # noqa: PLC0415

    try:
        objects, notes = objects_asked(asked.asked, Path())
    except SourceError as error:
        stop(parser, error.reasons)
    question = ask(_cluster(asked, parser), objects)
    with Progress(sys.stderr, "placing"):
        outcomes = answer(question)
    for note in notes:
        sys.stderr.write(f"{visible(note)}\n")
    what_if = _what_if(question, outcomes, asked, parser)
    _write(question, outcomes, what_if, asked, parser)
    misfits = {Verdict.PARTLY, Verdict.WAITS, Verdict.NEVER}
    return PROBLEM if any(outcome.verdict in misfits for outcome in outcomes) else SUCCESS


def _cluster(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> "Cluster":
    """Read the inventory, or the cluster."""
    from kthena_components.placement.inventory import InventoryError, read_inventory  # noqa: PLC0415

    if not asked.inventory:
        with opened(asked, parser) as (api, _version):
            return live_cluster(api, asked, parser)
    if asked.context or asked.kubeconfig:
        parser.error(
            "--inventory is used instead of a cluster: leave out --context and --kubeconfig"
        )
    try:
        return read_inventory(asked.inventory, racks_from=asked.racks_from)
    except InventoryError as error:
        stop(parser, error.reasons)


def _write(
    question: "FitQuestion",
    outcomes: "Sequence[Outcome]",
    what_if: "WhatIf",
    asked: argparse.Namespace,
    parser: argparse.ArgumentParser,
) -> None:
    """Write the answer in the format that the options ask for."""
    from kthena_components.cli.fit.output import describe, render  # noqa: PLC0415
    from kthena_components.drawing.from_outcomes_and_servings import picture_of  # noqa: PLC0415
    from kthena_components.drawing.page import draw_page  # noqa: PLC0415
    from kthena_components.drawing.rows_and_mermaid import draw_rows  # noqa: PLC0415

    picture = picture_of(question.drawn, outcomes)
    if asked.html is not None:
        try:
            asked.html.write_text(draw_page(picture), encoding="utf-8")
        except OSError as error:
            parser.exit(ERROR, f"{parser.prog}: --html {visible(unwritten(asked.html, error))}\n")
    if asked.output == "json":
        sys.stdout.write(
            f"{visible_json({**describe(question.drawn, outcomes), **what_if.data})}\n"
        )
    else:
        width = get_terminal_size().columns if sys.stdout.isatty() else WIDTH
        rows = draw_rows(picture, width=width, blocks=_draws_blocks(), paint=_in_colour)
        sys.stdout.write(f"{render(question.drawn, outcomes, rows)}\n")
        sys.stdout.write("".join(f"{visible(line)}\n" for line in what_if.lines))
    sys.stdout.flush()


def _what_if(
    question: "FitQuestion",
    outcomes: "Sequence[Outcome]",
    asked: argparse.Namespace,
    parser: argparse.ArgumentParser,
) -> "WhatIf":
    """Say what a loss strands, and how many more groups fit, as far as that is asked."""
    from kthena_components.cli.fit.output import NothingToLoseError, what_if  # noqa: PLC0415

    try:
        return what_if(question.drawn, outcomes, lose=asked.lose, grow_to=asked.grow)
    except NothingToLoseError as error:
        parser.exit(ERROR, f"{parser.prog}: --lose: {visible(str(error))}\n")


def _in_colour(state: str, text: str) -> str:
    return paint(text, sys.stdout, state)


def _draws_blocks() -> bool:
    """Return whether standard output can write block characters."""
    try:
        "\N{FULL BLOCK}".encode(sys.stdout.encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True
