"""The pods of an engine: their templates, those after the first rank, those that Ray joins."""

from collections.abc import Iterator
from typing import NamedTuple

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.rules.support.engine_startup import release_of
from kthena_components.core.values.images import Version
from kthena_components.core.values.unknown import Unknown, all_known


def pods_of(engine: EngineFacts) -> tuple[PodFacts, ...]:
    """Return the templates of an engine's pods."""
    worker = engine.worker if engine.pods != 1 else None
    return (engine.entry,) if worker is None else (engine.entry, worker)


_TWO = 2


def others(engine: EngineFacts) -> Iterator[tuple[PodFacts, CommandFacts]]:
    """Return the command lines of pods that do not have the first rank."""
    entry, worker, siblings = engine.entry, engine.worker, engine.siblings
    if worker is not None and worker.command is not None:
        found = [(worker, worker.command)]
    elif siblings is not None and siblings.commands:
        # A single pod whose rank is unknown may be the first one.
        one = len(siblings.commands) == 1
        unclear = one and isinstance(siblings.commands[0].node_rank, Unknown)
        found = [] if unclear else [(entry, command) for command in siblings.commands]
    elif siblings is not None and siblings.count >= _TWO and entry.command is not None:
        found = [(entry, entry.command)]
    else:
        found = []
    return ((pod, command) for pod, command in found if _is_other(command))


def _is_other(command: CommandFacts) -> bool:
    if command.hidden is not None:
        return command.headless is True
    # Of several pods with one command line, all but one have another rank, whatever it is.
    return command.headless is True or command.node_rank not in {None, 0}


# Engines whose ranks Ray spreads over several pods.


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
