"""`kthena-components status`: what runs where in a cluster, and why the rest does not run."""

import argparse
import sys

from kthena_components.cli.connect import add_cluster, opened
from kthena_components.core.findings import suggest
from kthena_components.core.values.visible import visible_lines

CLEAN, FOUND = 0, 1
_EXITS = """exit status:
  0  everything runs
  1  something does not run, or there is no serving
  2  wrong usage, or the cluster cannot be read"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of `kthena-components`."""
    parser = commands.add_parser(
        "status",
        help="show where the pods of servings run in a cluster, and why others do not",
        description="Show each pod of each serving, of both backends: its node and rack, the "
        "lowest tier of HyperNodes that holds its whole group, and what the scheduler reports "
        "about pods that wait. Nothing is changed.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("serving", metavar="SERVING", nargs="?", help="default: all servings")
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="default: all namespaces")
    add_cluster(parser)
    parser.set_defaults(run=lambda asked: run(asked, parser))


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the table to standard output and give the exit status."""
    with opened(asked, parser) as (cluster, _version):
        # Imported here because it needs the optional extra.
        from kthena_components.cluster.fetch_servings import look_at_servings  # noqa: PLC0415
        from kthena_components.cluster.status import render_status, waits  # noqa: PLC0415

        everything = look_at_servings(cluster, asked.namespace)
        seen = everything.only(asked.serving) if asked.serving else everything
        text, waiting = render_status(seen), list(waits(seen))
        nothing = not (seen.pods or waiting)
        if nothing:
            where = f"in namespace {asked.namespace}" if asked.namespace else "in this cluster"
            named = f"serving '{asked.serving}' {where}" if asked.serving else f"serving {where}"
            known = f" ({suggest(asked.serving, everything.names)})" if asked.serving else ""
            text = "\n\n".join(filter(None, (f"There is no {named}{known}.", text)))
        sys.stdout.write(f"{visible_lines(text)}\n")
        sys.stdout.flush()
        return FOUND if nothing or waiting else CLEAN
