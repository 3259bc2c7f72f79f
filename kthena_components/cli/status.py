"""`kthena-components status`: shows where pods run in a cluster, and why others wait."""

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kthena_components.cli.main import ERROR, PROBLEM, SUCCESS
from kthena_components.cli.shared_options import add_cluster, opened
from kthena_components.cli.terminal import Progress
from kthena_components.core.findings import suggest
from kthena_components.core.values.display import visible, visible_json, visible_lines
from kthena_components.reading.files import unwritten

if TYPE_CHECKING:
    from kthena_components.cluster.client import Cluster
    from kthena_components.cluster.status import Servings

_PERIOD = 2
"""Seconds between two looks of --watch."""
_UNCHANGED = (
    " If `pulumi up` says that it is unchanged, the state is of another cluster: run "
    "`pulumi up --refresh`."
)
_EXITS = """exit status:
  0  all pods run
  1  a pod does not run, or there is no serving
  2  wrong usage, or the cluster cannot be read"""


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "status",
        help=help_text,
        description="Show the pods of all servings of the backends native, kthena and lws: the "
        "node and rack of each pod, the lowest HyperNode tier that contains its whole group, and "
        "the scheduler's reason for pods that wait. This changes nothing in the cluster.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "serving", metavar="SERVING", nargs="?", help="the name of a serving; default: all"
    )
    parser.add_argument(
        "-n", "--namespace", metavar="NAMESPACE", help="its namespace; default: all namespaces"
    )
    parser.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="default: table"
    )
    parser.add_argument(
        "-w",
        "--watch",
        action="store_true",
        help=f"look every {_PERIOD} seconds, and write each change, until Ctrl-C",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        type=Path,
        help="also write a page that shows the pods on their nodes and racks, and the GPUs that "
        "are used; it needs neither a network nor scripts",
    )
    add_cluster(parser)
    parser.set_defaults(run=lambda asked: run(asked, parser))


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the table to standard output and return the exit status."""
    shown = PROBLEM
    with opened(asked, parser) as (cluster, _version), _ended_by_the_user(asked):
        for status, text in _looks(cluster, asked, parser):
            shown = status
            sys.stdout.write(text)
            sys.stdout.flush()
    return shown


def _ended_by_the_user(asked: argparse.Namespace) -> AbstractContextManager[None]:
    """Let Ctrl-C end --watch without a word."""
    return suppress(KeyboardInterrupt) if asked.watch else nullcontext()


def _looks(
    cluster: "Cluster", asked: argparse.Namespace, parser: argparse.ArgumentParser
) -> Iterator[tuple[int, str]]:
    """Yield the exit status and the text: once, or at each change."""
    status, text = _look(cluster, asked, parser)
    yield status, text
    while asked.watch:
        time.sleep(_PERIOD)
        before = text
        status, text = _look(cluster, asked, parser)
        if text != before:
            yield status, text if asked.output == "json" else f"\n{text}"


def _look(
    cluster: "Cluster", asked: argparse.Namespace, parser: argparse.ArgumentParser
) -> tuple[int, str]:
    """Read the cluster once; return the exit status and the text to print."""
    # Imported here because it needs the extra `cluster`.
    from kthena_components.cluster.fetch_servings_and_inventory import look_at_servings  # noqa: PLC0415
    from kthena_components.cluster.status import describe_status, render_status  # noqa: PLC0415

    with Progress(sys.stderr, "reading the cluster"):
        everything = look_at_servings(cluster, asked.namespace)
    seen = everything.only(asked.serving) if asked.serving else everything
    if asked.html:
        _draw(cluster, seen, asked, parser)
    found = describe_status(seen)
    nothing = not (found["pods"] or found["waiting"])
    status = PROBLEM if nothing or found["waiting"] else SUCCESS
    if asked.output == "json":
        return status, f"{visible_json(found)}\n"
    text = render_status(seen)
    if nothing:
        where = f"in namespace {asked.namespace}" if asked.namespace else "in this cluster"
        named = f"serving '{asked.serving}' {where}" if asked.serving else f"serving {where}"
        known = f" ({suggest(asked.serving, everything.names)})" if asked.serving else ""
        text = "\n\n".join(
            filter(
                None, (f"There is no {named}{known}.{'' if asked.serving else _UNCHANGED}", text)
            )
        )
    return status, f"{visible_lines(text)}\n"


def _draw(
    cluster: "Cluster", seen: "Servings", asked: argparse.Namespace, parser: argparse.ArgumentParser
) -> None:
    """Write the page of --html."""
    from kthena_components.cluster.fetch_servings_and_inventory import POD, listed  # noqa: PLC0415
    from kthena_components.drawing.from_outcomes_and_servings import picture_of_servings  # noqa: PLC0415
    from kthena_components.drawing.page import draw_page  # noqa: PLC0415

    taken = datetime.now(UTC)
    with Progress(sys.stderr, "reading all pods"):
        pods = listed(cluster, POD)
    named = f" of context {asked.context}" if asked.context else ""
    picture = picture_of_servings(seen, pods, title=f"Servings{named}", taken=taken)
    try:
        asked.html.write_text(draw_page(picture), encoding="utf-8")
    except OSError as error:
        message = f"{parser.prog}: --html {unwritten(asked.html, error)}"
        parser.exit(ERROR, f"{visible(message)}\n")
