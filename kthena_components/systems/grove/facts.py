"""Read Grove's PodCliqueSet: an engine is a clique, or what the cliques of a scaling group make.

Source: ai-dynamo/grove operator/api/core/v1alpha1 and
operator/internal/controller/podcliquescalinggroup/components/podclique.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.assembly import EngineTemplate, engines_of, relocated
from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.findings import join_path
from kthena_components.core.templates.patches import HIDDEN
from kthena_components.core.values.read import as_count, as_map, group_kind, name_of, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.grove.view import (
    SET,
    TEMPLATE,
    Clique,
    CliqueSet,
    ScalingGroup,
    read_clique_set,
)

KINDS = frozenset({SET})
GROUP_PODS = "GROVE_PCSG_TEMPLATE_NUM_PODS"
"""Put into the containers of a scaling group: the pods of all its cliques."""


def read(body: Mapping[str, Any], path: str = "") -> ServingFacts | None:
    """Read the facts of a PodCliqueSet; None for anything else."""
    if group_kind(body) not in KINDS:
        return None
    view, name = read_clique_set(body), name_of(body)
    engines = tuple(_hidden(path, name) if view.gap else _engines(view, path))
    # The operator makes a PodGang of whatever it starts.
    return ServingFacts(
        path=join_path(path, "spec"),
        name=name,
        engines=engines,
        gang_expected=True,
        copies=as_count(as_map(body.get("spec")).get("replicas"), "replicas", 1),
    )


def _hidden(path: str, name: str) -> Iterator[EngineFacts]:
    at = join_path(path, TEMPLATE)
    pods, entry = Unknown("the cliques are not known yet"), read_pod(HIDDEN, f"{at}.cliques")
    yield EngineFacts(path=at, name=name, pods=pods, replicas=1, entry=entry, worker=None)


def _engines(view: CliqueSet, path: str) -> Iterator[EngineFacts]:
    alone = {clique.name: clique for clique in view.cliques if isinstance(clique.name, str)}
    for group in view.groups:
        names = [name for name in group.cliques if isinstance(name, str)]
        members = [alone.pop(name) for name in dict.fromkeys(names) if name in alone]
        yield from _of_group(group, members, path)
    for clique in alone.values():
        yield from engines_of([_part(clique, path, {})])


def _of_group(group: ScalingGroup, members: list[Clique], path: str) -> Iterator[EngineFacts]:
    total: MaybeInt = 0
    for clique in members:
        count = _count(clique.replicas, "replicas")
        if isinstance(count, Unknown):
            total = count
        elif isinstance(total, int):
            total += count
    env = {GROUP_PODS: str(total)} if isinstance(total, int) else {}
    replicas = _count(group.fields.get("replicas"), "replicas")
    engines = engines_of([_part(clique, path, env) for clique in members], replicas)
    name = group.name if isinstance(group.name, str) else "?"
    for engine in engines:
        yield replace(engine, name=f"{name}-{engine.name}" if len(engines) > 1 else name)


def _part(clique: Clique, path: str, env: Mapping[str, str]) -> EngineTemplate:
    return EngineTemplate(
        path=join_path(path, clique.path),
        name=clique.name if isinstance(clique.name, str) else "?",
        count=_count(clique.replicas, "replicas"),
        template={"spec": clique.pod},
        pod=_pod(clique, path, env),
    )


def _count(value: object, what: str) -> MaybeInt:
    return value if isinstance(value, Unknown) else as_count(value, what, 1)


def _pod(clique: Clique, path: str, env: Mapping[str, str]) -> PodFacts:
    """Read a podSpec, which stands where others have a whole template."""
    at = join_path(path, f"{clique.at}.podSpec")
    spec = HIDDEN if unknown_in(clique.pod) else clique.pod
    pod = fill_requests(read_pod({"spec": spec}, "", env))
    return relocated(pod, "spec.", f"{at}.")
