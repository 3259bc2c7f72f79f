"""`kthena-components status`: shows where pods run in a cluster, and why others wait."""

import argparse
import sys

from kthena_components.cli.connect import add_cluster, opened
from kthena_components.core.findings import suggest
from kthena_components.core.values.visible import visible_lines

CLEAN, FOUND = 0, 1
_EXITS = """exit status:
  0  all pods run
  1  a pod does not run, or there is no serving
  2  wrong usage, or the cluster cannot be read"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command to those of `kthena-components`."""
    parser = commands.add_parser(
        "status",
        help="show where the pods of servings run, and why others wait",
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
    add_cluster(parser)
    parser.set_defaults(run=lambda asked: run(asked, parser))


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the table to standard output and return the exit status."""
    with opened(asked, parser) as (cluster, _version):
        # Imported here because it needs the extra `cluster`.
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
