"""Finds the engines of a template, and adds to each engine its pods one by one, for any kind."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.listening import Listening, listening
from kthena_components.core.facts.members import Numbers, Template, states_rank, with_members
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.plan.controller_variables import NOTHING, Told
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


# Finds the engines that run in the pods of a template, whatever the kind.


_CONTAINERS = ("spec.containers", "spec.initContainers")


def owners(pods: PodSet, engines: Sequence[EngineFacts]) -> list[int]:
    """Return the engines that run in the pods of a template, by number.

    Kinds write the paths of an engine differently, so the first way that finds one decides.
    """
    part = pods.owner.at(pods.path)
    ways: tuple[Callable[[EngineFacts], bool], ...] = (
        lambda engine: engine.name == pods.name != "",
        lambda engine: any(runs_in(pod, pods) for pod in templates(engine)),
        lambda engine: any(one == part or one.startswith(f"{part}.") for one in _places(engine)),
    )
    found = ([k for k, engine in enumerate(engines) if way(engine)] for way in ways)
    return next((numbers for numbers in found if numbers), [])


def runs_in(pod: PodFacts, pods: PodSet) -> bool:
    """Return whether facts were read from a template, by their path."""
    return pod.gpus_path.startswith(tuple(pods.at(path) for path in _CONTAINERS))


def ports_in(sets: Iterable[PodSet], facts: ServingFacts | None) -> dict[str, Listening]:
    """Return where the pods of templates listen, by the path of each template in the object."""
    found: dict[str, Listening] = {}
    engines = facts.engines if facts is not None else ()
    for pods in sets if engines else ():
        for engine in engines:
            for pod in templates(engine):
                first = None if engine.worker is None else pod is engine.entry
                if runs_in(pod, pods) and (ports := listening(pod, first=first)):
                    found[pods.path] = ports
    return found


def templates(engine: EngineFacts) -> list[PodFacts]:
    """Return the templates of an engine."""
    return [engine.entry] if engine.worker is None else [engine.entry, engine.worker]


def _places(engine: EngineFacts) -> list[str]:
    return [engine.path, *(pod.gpus_path for pod in templates(engine))]
