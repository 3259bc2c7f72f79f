"""Whether the cluster of a stack knows the kinds that the stack makes.

Without this, Pulumi's provider makes what it can, looks for the kind for a minute, and fails. Only
what the API server itself says it does not know is a finding: who may not ask, or is not let in,
hears of it from the provider, whose way in may be another one.
"""

from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import yaml

from kthena_components.backends.compiler import Compiled
from kthena_components.cluster.client import Cluster, ClusterError, Kubeconfig
from kthena_components.cluster.need import HYPER_NODE, MODEL_SERVING, QUEUE, Kind
from kthena_components.cluster.opening import open_cluster
from kthena_components.cluster.systems import INSTALL_KTHENA, INSTALL_VOLCANO
from kthena_components.core.findings import Finding
from kthena_components.core.stack import StackSpec, is_kubeconfig_text


def check_kinds(spec: StackSpec, servings: Iterable[Compiled]) -> list[Finding]:
    """Name the kinds that the cluster does not know, and what brings them."""
    made = list(_made(spec, servings))
    try:
        cluster, _ = open_cluster(_kubeconfig(spec.kubeconfig), spec.context)
        unknown = {kind for kind in {kind for _, kind in made} if not _is_served(cluster, kind)}
    except ClusterError:
        return []
    return [_finding(path, kind, cluster.server) for path, kind in made if kind in unknown]


def _kubeconfig(stated: str | None) -> Kubeconfig | None:
    if is_kubeconfig_text(stated):
        content: Mapping[str, Any] = yaml.safe_load(stated or "")
        return content
    return Path(stated).expanduser() if stated else None


def _made(spec: StackSpec, servings: Iterable[Compiled]) -> Iterator[tuple[str, Kind]]:
    """Give the kinds that a stack makes, each with the field that asks for it."""
    if spec.topology:
        yield "topology", HYPER_NODE
    if spec.queues:
        yield "queues", QUEUE
    for index, one in enumerate(servings):
        for kind in sorted({(str(m.body["apiVersion"]), m.kind) for m in one.manifests}):
            yield f"servings[{index}]", kind


def _is_served(cluster: Cluster, kind: Kind) -> bool:
    try:
        cluster.resource(*kind)
    except ClusterError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            raise
        return False
    return True


def _finding(path: str, kind: Kind, server: str) -> Finding:
    kthena = kind == MODEL_SERVING
    remedy = f"{INSTALL_KTHENA}, or write backend: native" if kthena else INSTALL_VOLCANO
    seen = f"makes a {kind[1]} of {kind[0]}, which {server} does not know"
    return Finding(path=path, seen=seen, remedy=remedy, rule="kind-unserved")
