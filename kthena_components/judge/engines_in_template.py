"""Finds the engines that run in the pods of a template, whatever the kind."""

from collections.abc import Callable, Iterable, Sequence

from kthena_components.core.facts.listening import Listening, listening
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.objects.object import PodSet

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
