"""Shared by the commands that read a cluster: its flags, and opening it."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kthena_components.cli.terminal import Progress
from kthena_components.core.values.safe_text import visible

if TYPE_CHECKING:
    from kthena_components.cluster.client import Cluster

WRONG = 2
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
        parser.exit(WRONG, f"{parser.prog}: the Kubernetes client is not installed: {NEEDS}\n")
    try:
        with Progress(sys.stderr, "connecting to the cluster"):
            found = open_cluster(asked.kubeconfig, asked.context)
        yield found
    except ClusterError as error:
        sys.stdout.flush()
        without = "; or name a file of the cluster with --inventory" if "inventory" in asked else ""
        parser.exit(WRONG, f"{parser.prog}: {visible(str(error))}{without}\n")
