"""Checks that the cluster serves the kinds that a stack creates.

Otherwise Pulumi's provider creates what it can, waits a minute for the kind, and fails. Only a kind
that the API server itself reports as unknown is a finding. If the request or the login fails, the
provider reports it: it may use other credentials.
"""

import time
from collections.abc import Iterable, Iterator

from kthena_components.cluster.client import Cluster
from kthena_components.cluster.connect import ask
from kthena_components.cluster.requirements import HYPER_NODE, QUEUE, Kind
from kthena_components.cluster.systems import INSTALL_VOLCANO
from kthena_components.compiler.compile import Compiled
from kthena_components.core.findings import Finding
from kthena_components.core.plan.stack_file import StackSpec
from kthena_components.systems import INDEX, find_emitter
from kthena_components.systems.prometheus.system import API_VERSION, INSTALL

_KUBERNETES = "kubernetes"

SETTLES = 4
"""Seconds until the kind of a new CustomResourceDefinition is served."""


def check_kinds(
    spec: StackSpec, servings: Iterable[Compiled], context: str | None
) -> list[Finding]:
    """Report kinds that need an installation and are not served, with the remedy.

    Args:
        spec: The stack, which may name or contain a kubeconfig.
        servings: Its servings, compiled.
        context: The kubeconfig context that the provider uses; the current one if None.
    """
    made = [(path, kind) for path, kind in _made(spec, servings) if _system(kind) != _KUBERNETES]
    kinds = {kind for _, kind in made}
    asked = ask(spec.kubeconfig, context, lambda cluster: _unknown(cluster, kinds))
    if asked is None:
        return []
    server, unknown = asked
    return [_finding(path, kind, server) for path, kind in made if kind in unknown]


def _system(kind: Kind) -> str:
    """Return the system of a kind."""
    return INDEX.get((kind[0].rpartition("/")[0], kind[1]), _KUBERNETES)


def _made(spec: StackSpec, servings: Iterable[Compiled]) -> Iterator[tuple[str, Kind]]:
    """Return the kinds that a stack creates, each with the field that requests it."""
    if spec.topology:
        yield "topology", HYPER_NODE
    if spec.queues:
        yield "queues", QUEUE
    for index, one in enumerate(servings):
        for kind in sorted({(str(m.body["apiVersion"]), m.kind) for m in one.manifests}):
            yield f"servings[{index}]", kind


def _unknown(cluster: Cluster, kinds: set[Kind]) -> set[Kind]:
    """Look kinds up for a while: a kind is not served at once when its definition is new."""
    until = time.monotonic() + SETTLES
    while unknown := {kind for kind in kinds if not cluster.serves(*kind)}:
        if time.monotonic() > until:
            break
        time.sleep(0.5)
    return unknown


def _finding(path: str, kind: Kind, server: str) -> Finding:
    backend = find_emitter(_system(kind))
    remedy = f"{backend.install}, or write backend: native" if backend else INSTALL_VOLCANO
    if kind[0] == API_VERSION:
        remedy = INSTALL
    seen = f"creates a {kind[1]} of {kind[0]}, which {server} does not serve"
    return Finding(path=path, seen=seen, remedy=remedy, rule="kind-unserved")
