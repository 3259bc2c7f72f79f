"""Whether the cluster of a stack knows the kinds that the stack makes.

Without this, Pulumi's provider makes what it can, looks for the kind for a minute, and fails. Only
what the API server itself says it does not know is a finding: who may not ask, or is not let in,
hears of it from the provider, whose way in may be another one.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import yaml

from kthena_components.cluster.client import Cluster, Kubeconfig
from kthena_components.cluster.connect import open_cluster
from kthena_components.cluster.requirements import HYPER_NODE, MODEL_SERVING, QUEUE, Kind
from kthena_components.cluster.systems import INSTALL_KTHENA, INSTALL_VOLCANO
from kthena_components.compiler.compile import Compiled
from kthena_components.core.findings import Finding
from kthena_components.core.plan.stack import StackSpec, is_kubeconfig_text
from kthena_components.judge.secrecy import SECRET

PATIENCE = 15
"""Seconds after which an answer is no longer waited for."""
SETTLES = 4
"""Seconds that a definition may take until its kind is served."""
_GROUP = re.compile(r"^[a-z.]*\bvolcano\.sh/")
"""apiVersions of what has to be installed: Kubernetes has the others."""


def check_kinds(
    spec: StackSpec, servings: Iterable[Compiled], context: str | None
) -> list[Finding]:
    """Name the kinds of Volcano and Kthena that the cluster does not know, and what brings them.

    Args:
        spec: The stack, which may name or hold a kubeconfig.
        servings: Its servings, compiled.
        context: The context of the kubeconfig that the provider takes; the current one if None.
    """
    made = [(path, kind) for path, kind in _made(spec, servings) if _GROUP.search(kind[0])]
    found: list[tuple[str, set[Kind]]] = []

    def ask() -> None:
        # Whatever goes wrong, the provider's way in may be another one; and the text of what is
        # raised may hold a credential.
        with suppress(Exception):
            cluster, _ = open_cluster(_kubeconfig(spec.kubeconfig), context)
            found.append((cluster.server, _unknown(cluster, {kind for _, kind in made})))

    # A program that logs somebody in may wait for ever, and so may a server.
    asking = Thread(target=ask, daemon=True)
    asking.start()
    asking.join(PATIENCE)
    # A kubeconfig in the config is a secret, and its server came with it.
    secret = is_kubeconfig_text(spec.kubeconfig)
    return [
        _finding(path, kind, SECRET if secret else server)
        for server, unknown in found
        for path, kind in made
        if kind in unknown
    ]


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


def _unknown(cluster: Cluster, kinds: set[Kind]) -> set[Kind]:
    """Ask for kinds for a while: one whose definition was made a moment ago is not served yet."""
    until = time.monotonic() + SETTLES
    while unknown := {kind for kind in kinds if not cluster.serves(*kind)}:
        if time.monotonic() > until:
            break
        time.sleep(0.5)
    return unknown


def _finding(path: str, kind: Kind, server: str) -> Finding:
    kthena = kind == MODEL_SERVING
    remedy = f"{INSTALL_KTHENA}, or write backend: native" if kthena else INSTALL_VOLCANO
    seen = f"makes a {kind[1]} of {kind[0]}, which {server} does not know"
    return Finding(path=path, seen=seen, remedy=remedy, rule="kind-unserved")
