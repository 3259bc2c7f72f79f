"""Shared words of messages."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.facts.totals import gpus_of, ranks_of
from kthena_components.core.findings import Finding, Level
from kthena_components.core.values.unknown import Unknown


def title(engine: EngineFacts) -> str:
    """Name an engine in a message."""
    return f"engine '{engine.name}'"


def unjudged(engine: EngineFacts, unknown: Unknown, rule: str, path: str = "") -> Iterator[Finding]:
    """Explain why a rule could not check an engine.

    Silent if world-size-equals-gpus gives the same reason, or reports the command for it: one line
    per unknown value.
    """
    command = engine.entry.command
    if command is not None and command.engine is not None:
        told = {problem.text for problem in command.problems if problem.hard}
        counts = (ranks_of(engine, command), gpus_of(engine))
        unread = next((count for count in counts if isinstance(count, Unknown)), None)
        if unknown.because in told or unknown == unread:
            return
    yield Finding(
        path=path or engine.entry.command_path,
        seen=f"{title(engine)} was not checked, because {unknown.because}",
        rule=rule,
        level=Level.UNKNOWN,
    )
