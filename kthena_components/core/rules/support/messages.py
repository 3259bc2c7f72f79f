"""Shared words of messages."""

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.facts.totals import gpus_of, ranks_of
from kthena_components.core.findings import Finding, Level
from kthena_components.core.values.unknown import NotKnownError, Unknown


def title(engine: EngineFacts) -> str:
    """Name an engine in a message."""
    return f"engine '{engine.name}'"


class _Engine(Protocol):
    """What a rule checks of one engine."""

    @property
    def engine(self) -> EngineFacts: ...


S = TypeVar("S", bound=EngineFacts | _Engine)
P = ParamSpec("P")


def each_engine(
    check: Callable[[EngineFacts], Iterable[Finding]],
) -> Callable[[ServingFacts], Iterator[Finding]]:
    """Make a rule that checks each engine. A value that is not known hides no other engine."""
    part = part_of_engine(check)

    @wraps(check)
    def rule(facts: ServingFacts) -> Iterator[Finding]:
        for engine in facts.engines:
            yield from part(engine)

    return rule


def part_of_engine(
    check: Callable[Concatenate[S, P], Iterable[Finding]],
) -> Callable[Concatenate[S, P], Iterator[Finding]]:
    """Mark a part of a rule about an engine: a value that is not known only ends the part."""

    @wraps(check)
    def checked(about: S, /, *view: P.args, **asked: P.kwargs) -> Iterator[Finding]:
        try:
            yield from check(about, *view, **asked)
        except NotKnownError as late:
            engine = about if isinstance(about, EngineFacts) else about.engine
            yield from unjudged(engine, late.gap, path=late.path)

    return checked


def unjudged(
    engine: EngineFacts, unknown: Unknown, rule: str = "", path: str = ""
) -> Iterator[Finding]:
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
