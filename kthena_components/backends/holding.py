"""How many accelerators a serving holds, where its pods do not stand in the manifest."""

from kthena_components.core.checks.stack_pods import Held
from kthena_components.core.facts import EngineFacts, PodFacts, ServingFacts
from kthena_components.core.known import MaybeInt, Unknown


def held_by(facts: ServingFacts) -> Held:
    """Add up the accelerators of all engines of a serving, with all their replicas."""
    one: MaybeInt = 0
    for engine in facts.engines:
        one = _plus(one, _times(engine.replicas, _of_engine(engine)))
    pods = [pod for e in facts.engines for pod in (e.entry, e.worker) if pod is not None]
    return Held(gpus=_times(facts.copies, one), resources=frozenset(_resources(pods)))


def _of_engine(engine: EngineFacts) -> MaybeInt:
    entry = engine.entry.all_gpus
    if engine.worker is None:
        return _times(engine.pods, entry)
    workers = engine.pods if isinstance(engine.pods, Unknown) else max(engine.pods - 1, 0)
    return _plus(entry, _times(workers, engine.worker.all_gpus))


def _resources(pods: list[PodFacts]) -> list[str]:
    return [d.resource for pod in pods for d in pod.devices if "/" in d.resource]


def _plus(one: MaybeInt, other: MaybeInt) -> MaybeInt:
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return one if isinstance(one, Unknown) else other
    return one + other


def _times(one: MaybeInt, other: MaybeInt) -> MaybeInt:
    if one == 0 or other == 0:
        return 0
    if isinstance(one, Unknown) or isinstance(other, Unknown):
        return one if isinstance(one, Unknown) else other
    return one * other
