"""Engines whose ranks Ray spreads over several pods."""

from typing import NamedTuple

from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.rules.support.engine_images import release_of
from kthena_components.core.values.images import Version
from kthena_components.core.values.unknown import Unknown, all_known


class Spread(NamedTuple):
    """A copy of a model that spans pods with Ray."""

    version: Version
    copy: int
    stages: int
    gpus: int


def spread_of(engine: EngineFacts, first: Version, until: Version) -> Spread | Unknown | None:
    """Return how a copy spans pods with Ray; None if it does not, or for another release."""
    command, version = engine.entry.command, release_of(engine)
    if command is None or version is None or not first <= version < until:
        return None
    if command.engine != "vllm" or command.executor != "ray" or engine.pods == 1:
        return None
    sizes = all_known(command.per_rank_world, command.pipeline, engine.entry.gpus)
    if isinstance(sizes, Unknown):
        return sizes
    copy, stages, gpus = sizes
    return Spread(version, copy, stages, gpus) if copy > gpus else None
