"""The pods of an engine that do not have its first rank."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.values.unknown import Unknown

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
