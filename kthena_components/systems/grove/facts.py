"""Reads Grove's PodCliqueSet: an engine is a clique, or consists of the cliques of a scaling group.

Source: ai-dynamo/grove operator/api/core/v1alpha1 and
operator/internal/controller/podcliquescalinggroup/components/podclique.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kthena_components.core.facts.engine_grouping import EngineTemplate, engines_of
from kthena_components.core.facts.pod import PodFacts, read_pod
from kthena_components.core.facts.relocation import relocated
from kthena_components.core.facts.serving import EngineFacts, ServingFacts, StartOrder
from kthena_components.core.facts.workload import fill_requests
from kthena_components.core.remedies import write
from kthena_components.core.templates.patches import HIDDEN
from kthena_components.core.values.arithmetic import total
from kthena_components.core.values.read import count_or_unknown, name_of, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown
from kthena_components.systems.grove.view import TEMPLATE, Clique, CliqueSet, ScalingGroup

GROUP_PODS = "GROVE_PCSG_TEMPLATE_NUM_PODS"
"""Variable in the containers of a scaling group: the number of pods of all its cliques."""


def facts(view: CliqueSet) -> ServingFacts:
    """Read the facts of a PodCliqueSet."""
    found = view.object
    # The operator creates a PodGang for everything that it starts.
    return ServingFacts(
        path=found.at("spec"),
        name=name_of(found.body),
        engines=tuple(_hidden(view) if view.gap else _in_order(view)),
        gang_expected=True,
        copies=count_or_unknown(found.spec.get("replicas"), "replicas", 1),
    )


def _in_order(view: CliqueSet) -> Iterator[EngineFacts]:
    """Return the engines, with why their workers wait for their leaders.

    Source: ai-dynamo/grove operator/initc/internal/wait.go, which waits until pods are ready.
    """
    edges = view.starts_after
    path = view.object.at(f"{TEMPLATE}.cliqueStartupType")
    kind = view.template.get("cliqueStartupType")
    why = f"is {kind}, by which Grove starts the workers when their leader is ready"
    order = StartOrder(path=path, why=why, remedy=write("CliqueStartupTypeAnyOrder"))
    at = {clique.name: view.object.at(clique.path) for clique in view.cliques}
    paths = {at[name]: frozenset(at[other] for other in edges[name]) for name in edges}
    return (engine.waiting(paths, order) for engine in _engines(view))


def _hidden(view: CliqueSet) -> Iterator[EngineFacts]:
    at, pods = view.object.at(TEMPLATE), Unknown("the cliques are not known yet")
    entry = read_pod(HIDDEN, f"{at}.cliques", context=view.object.context)
    name = name_of(view.object.body)
    yield EngineFacts(path=at, name=name, pods=pods, replicas=1, entry=entry, worker=None)


def _engines(view: CliqueSet) -> Iterator[EngineFacts]:
    for group, parts in parts_of(view):
        if group is None:
            yield from engines_of(parts)
            continue
        engines = engines_of(parts, _count(group.fields.get("replicas"), "replicas"))
        name = group.name if isinstance(group.name, str) else "?"
        for engine in engines:
            yield replace(engine, name=f"{name}-{engine.name}" if len(engines) > 1 else name)


def parts_of(view: CliqueSet) -> Iterator[tuple[ScalingGroup | None, list[EngineTemplate]]]:
    """Return the templates of each scaling group, and those of each other clique.

    Commands decide which of them form an engine.
    """
    for group, members in view.together():
        pods = total(_count(clique.replicas, "replicas") for clique in members)
        known = group is not None and isinstance(pods, int)
        env = {GROUP_PODS: str(pods)} if known else {}
        yield group, [_part(view, clique, env) for clique in members]


def _part(view: CliqueSet, clique: Clique, env: Mapping[str, str]) -> EngineTemplate:
    return EngineTemplate(
        path=view.object.at(clique.path),
        name=clique.name if isinstance(clique.name, str) else "?",
        count=_count(clique.replicas, "replicas"),
        template={"spec": clique.pod},
        pod=_pod(view, clique, env),
    )


def _count(value: object, what: str) -> MaybeInt:
    return value if isinstance(value, Unknown) else count_or_unknown(value, what, 1)


def _pod(view: CliqueSet, clique: Clique, env: Mapping[str, str]) -> PodFacts:
    """Read a podSpec, which has no surrounding template."""
    at, context = view.object.at(f"{clique.at}.podSpec"), view.object.context
    spec = HIDDEN if unknown_in(clique.pod) else clique.pod
    pod = fill_requests(read_pod({"spec": spec}, "", env, context=context))
    return relocated(pod, lambda path: path.replace("spec.", f"{at}.", 1))
