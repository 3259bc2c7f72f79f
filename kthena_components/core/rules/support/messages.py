"""Shared words of messages."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from kthena_components.core.facts.serving import EngineFacts, ServingFacts, gpus_of, ranks_of
from kthena_components.core.findings import Finding, Level, advise
from kthena_components.core.memory.sharding import Sharding
from kthena_components.core.naming import NAME_LIMIT
from kthena_components.core.objects.engine_containers import EngineContainer
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.unknown import NotKnownError, Unknown


def title(engine: EngineFacts) -> str:
    """Name an engine in a message, at most with the length of a valid name."""
    return f"engine {display(engine.name, NAME_LIMIT)}"


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
            yield from cannot_check(engine, late.gap, path=late.path)

    return checked


def cannot_check(
    engine: EngineFacts, unknown: Unknown, rule: str = "", path: str = ""
) -> Iterator[Finding]:
    """Explain why a rule could not check an engine.

    Silent if world-size-equals-gpus gives the same reason, or reports the command for it: one line
    per unknown value.
    """
    command = engine.entry.command
    if command is not None and command.engine is not None:
        reported = {problem.text for problem in command.problems if problem.hard}
        counts = (ranks_of(engine, command), gpus_of(engine))
        unread = next((count for count in counts if isinstance(count, Unknown)), None)
        if unknown.because in reported or unknown == unread:
            return
    yield Finding(
        path=path or engine.entry.command_path,
        seen=f"{title(engine)} was not checked, because {unknown.because}",
        rule=rule,
        level=Level.UNKNOWN,
    )


def ranks_of_model(sharding: Sharding, ranks: int) -> str:
    """Write the number of ranks of a dimension, with the sizes that it comes from."""
    command = sharding.command
    widths = {"data": command.attention_data, "context": command.attention_context}
    parts = [f" ÷ attention {what} {width}" for what, width in widths.items() if width != 1]
    return f"tensor {command.tensor}{''.join(parts)}" + (f" = {ranks}" if parts else "")


# Words of the rules about production: one finding per object lists all that it lacks.


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that a container or its pod does not have."""

    what: str
    """As a noun, after `has no`: `memory request`."""
    write: str
    """What to write instead, after `write`: `resources.requests.memory`."""
    restarts: bool = True
    """Whether writing it changes the pod template, so that the pods restart."""


def report_lacks(
    found: Iterable[tuple[EngineContainer, tuple[Lack, ...]]], so: str, rule: str
) -> Iterator[Finding]:
    """Report what the containers of one object lack, in one finding.

    Args:
        found: The containers with what each one lacks.
        so: What follows from it, as a clause.
    """
    without: dict[Lack, dict[str, str]] = {}
    for container, lacks in found:
        for lack in lacks:
            without.setdefault(lack, {})[container.path] = container.name
    if not without:
        return
    alike: dict[tuple[str, ...], list[Lack]] = {}
    for lack, names in without.items():
        alike.setdefault(tuple(dict.fromkeys(names.values())), []).append(lack)
    seen = "; ".join(_clause(names, lacks) for names, lacks in alike.items())
    written = dict.fromkeys(lack.write for lack in without)
    first = next(path for names in without.values() for path in names)
    after = ", which restarts the pods" if any(lack.restarts for lack in without) else ""
    yield advise(first, f"{seen}, so {so}", f"write {listing(written)}{after}", rule)


def named(names: Sequence[str]) -> str:
    """Name containers: `containers 'leader' and 'worker'`."""
    shown = [display(name) for name in names]
    return f"container {shown[0]}" if len(shown) == 1 else f"containers {listing(shown)}"


def _clause(names: Sequence[str], lacks: Iterable[Lack]) -> str:
    verb = "has" if len(names) == 1 else "have"
    return f"{named(names)} {verb} no {listing((lack.what for lack in lacks), 'or')}"


def slip_of(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that another one is with one letter wrong, missing or too many.

    For words of an engine, whose lists are known: naming.name_slip_of compares names of objects.
    """
    near = get_close_matches(word, known := tuple(known), n=1, cutoff=0.9)
    alike = near and word not in known and abs(len(near[0]) - len(word)) <= 1
    return near[0] if alike else None


def is_number(text: str, kind: Callable[[str], object] = int) -> bool:
    """Return whether Python takes a string for an integer, or another kind of number."""
    try:
        kind(text)
    except ValueError:
        return False
    return True
