"""Adds to each engine of an object its pods one by one, whatever the kind."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.members import Numbers, Template, states_rank, with_members
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.plan.controller_variables import NOTHING, Told
from kthena_components.judge.engines_in_template import owners, runs_in
from kthena_components.systems.contract import Kind


def with_pods(kind: Kind[Any], found: Object, view: Any, facts: ServingFacts) -> ServingFacts:
    """Return the facts with the pods of the engines whose command lines state a rank."""
    if kind.pods is None or not any(map(states_rank, facts.engines)):
        return facts
    told = NOTHING if kind.tells is None else kind.tells(view)
    numbers, sets = _numbers(told), list(kind.pods(view))
    owned = [owners(pods, facts.engines) for pods in sets]
    engines: list[EngineFacts] = []
    for number, engine in enumerate(facts.engines):
        own = [pods for pods, by in zip(sets, owned, strict=True) if by == [number]]
        entry = _template(engine.entry, own)
        worker = None if engine.worker is None else _template(engine.worker, own[::-1])
        engines.append(
            engine
            if entry is None or (worker is None and engine.worker is not None)
            else with_members(engine, entry, worker, numbers, found.context)
        )
    return replace(facts, engines=tuple(engines))


def _numbers(told: Told) -> Numbers:
    return Numbers(
        size=told.size,
        rank=told.rank,
        rank_fields=told.rank_fields,
        ordinal=told.ordinal,
        fields=told.fields,
    )


def _template(pod: PodFacts, sets: Sequence[PodSet]) -> Template | None:
    """Return the template that a pod is made from; the first one if no path shows which."""
    matching = [pods for pods in sets if runs_in(pod, pods)] or sets
    if not matching:
        return None
    pods = matching[0]
    metadata = {"labels": pods.labels, "annotations": pods.annotations}
    return Template(body={"metadata": metadata, "spec": pods.spec}, count=pods.count)
