"""Options that several commands share: numbers, and the cluster that a command reads."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kthena_components.cli.main import ERROR
from kthena_components.cli.terminal import Progress
from kthena_components.core.values.display import visible

if TYPE_CHECKING:
    from kthena_components.cluster.client import Cluster


_DIGITS = 9
_MOST = 10**_DIGITS
_LONGEST = 80


def number_of(things: str, least: int = 0) -> Callable[[str], int]:
    """Return a function that parses a number of things."""

    def parse(text: str) -> int:
        usual = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
        if not usual or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"{text[:_LONGEST]!r} is not a number of {things}: write a whole number from "
                f"{least} to {_MOST - 1}, with digits only"
            )
        return int(text)

    return parse


def amount_of(thing: str) -> Callable[[str], float]:
    """Return a function that parses an amount above zero."""

    def parse(text: str) -> float:
        """Read a positive number of an option, or refuse it with an example."""
        try:
            amount = float(text)
        except ValueError:
            amount = 0.0
        if not 0 < amount < _MOST:
            raise argparse.ArgumentTypeError(
                f"{text[:_LONGEST]!r} is not an amount of {thing}: write a number above 0, such as "
                "2.5, without a unit"
            )
        return amount

    return parse


NEEDS = "pip install 'kthena-components[cluster]'"


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name a cluster."""
    parser.add_argument(
        "--kubeconfig",
        metavar="FILE",
        type=Path,
        help="path of the kubeconfig; default: KUBECONFIG, or ~/.kube/config",
    )
    parser.add_argument(
        "--context", metavar="CONTEXT", help="default: the current context of the kubeconfig"
    )


@contextmanager
def opened(
    asked: argparse.Namespace, parser: argparse.ArgumentParser
) -> Iterator[tuple["Cluster", str]]:
    """Open a cluster and yield it with its version. If that fails, exit with one sentence."""
    try:
        from kthena_components.cluster.client import ClusterError  # noqa: PLC0415
        from kthena_components.cluster.connect import open_cluster  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in {"kubernetes", "urllib3"}:
            raise
        parser.exit(ERROR, f"{parser.prog}: the Kubernetes client is not installed: {NEEDS}\n")
    try:
        with Progress(sys.stderr, "connecting to the cluster"):
            found = open_cluster(asked.kubeconfig, asked.context)
        yield found
    except ClusterError as error:
        sys.stdout.flush()
        without = (
            "; or name a file that describes the cluster with --inventory"
            if "inventory" in asked
            else ""
        )
        parser.exit(ERROR, f"{parser.prog}: {visible(str(error))}{without}\n")
