"""`kthena-components inventory`: writes what a cluster has, for `fit` without a cluster."""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from kthena_components.cli.main import ERROR, SUCCESS
from kthena_components.cli.shared_options import add_cluster, opened
from kthena_components.cli.terminal import Progress
from kthena_components.core.values.display import visible

if TYPE_CHECKING:
    from kthena_components.cluster import client
    from kthena_components.placement.model import Cluster

_EXITS = """exit status:
  0  the inventory is written to standard output
  2  wrong usage, or the cluster cannot be read: nothing is written there

docs/inventory.md explains the format, which can also be written by hand."""


def add_parser(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", help_text: str
) -> None:
    """Add the command to the parser of `kthena-components`."""
    parser = commands.add_parser(
        "inventory",
        help=help_text,
        description="Write the nodes of a cluster with what its pods use of them, its HyperNodes, "
        "queues, quotas and PodGroups as a file for `fit --inventory`. Names of workloads are "
        "replaced by fingerprints. This changes nothing in the cluster.",
        epilog=_EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--with-names",
        action="store_true",
        help="write the names of namespaces, PodGroups, pods and claims as they are",
    )
    add_racks_from(parser)
    add_cluster(parser)
    parser.set_defaults(run=lambda asked: run(asked, parser))


def add_racks_from(parser: argparse.ArgumentParser) -> None:
    """Add the flag that says which labels of nodes are racks."""
    parser.add_argument(
        "--racks-from",
        metavar="LABELS",
        type=lambda text: [part for part in text.split(",") if part],
        default=[],
        help="in a cluster without HyperNodes, take racks from these labels of nodes, the closest "
        "first, separated by commas; `labels` for the usual ones of Topograph and clouds, `kueue` "
        "for those of Kueue's Topology",
    )


def run(asked: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Write the inventory to standard output, and return the exit status."""
    # Imported here because most commands do not need it.
    from kthena_components.placement.anonymous import without_names  # noqa: PLC0415
    from kthena_components.placement.inventory_write import write_inventory  # noqa: PLC0415

    with opened(asked, parser) as (api, _version):
        cluster = live_cluster(api, asked, parser)
    sys.stdout.write(write_inventory(cluster if asked.with_names else without_names(cluster)))
    return SUCCESS


def live_cluster(
    api: "client.Cluster", asked: argparse.Namespace, parser: argparse.ArgumentParser
) -> "Cluster":
    """Read a cluster. If that fails, exit with one sentence for each reason."""
    from kthena_components.cluster.fetch_servings_and_inventory import (  # noqa: PLC0415
        MissingRightsError,
        fetch_inventory,
    )
    from kthena_components.placement.from_objects import cluster_of  # noqa: PLC0415
    from kthena_components.placement.inventory import sentences  # noqa: PLC0415

    try:
        with Progress(sys.stderr, "reading the cluster"):
            fetched = fetch_inventory(api)
    except MissingRightsError as error:
        stop(parser, [f"{reason}." for reason in error.reasons])
    cluster, findings = cluster_of(
        fetched.objects,
        racks_from=asked.racks_from,
        taken=datetime.now(UTC).replace(microsecond=0),
        source=asked.context or "the current context",
        notes=fetched.notes,
    )
    if findings:
        stop(parser, sentences(findings, ""))
    return cluster


def stop(parser: argparse.ArgumentParser, reasons: Sequence[str]) -> NoReturn:
    """Write each reason on its line, and exit."""
    lines = "".join(f"{parser.prog}: {visible(reason)}\n" for reason in reasons)
    parser.exit(ERROR, lines)
