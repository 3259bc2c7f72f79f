"""The pod templates of an engine."""

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts


def pods_of(engine: EngineFacts) -> tuple[PodFacts, ...]:
    """Return the templates of an engine's pods."""
    worker = engine.worker if engine.pods != 1 else None
    return (engine.entry,) if worker is None else (engine.entry, worker)
