"""Words of the rules about production: one finding per object lists all that it lacks."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kthena_components.core.findings import Finding, advise
from kthena_components.core.objects.engine_containers import EngineContainer
from kthena_components.core.values.display import display, listing


@dataclass(frozen=True, slots=True)
class Lack:
    """One thing that a container or its pod does not have."""

    what: str
    """As a noun, after `has no`: `memory request`."""
    write: str
    """What to write instead, after `write`: `resources.requests.memory`."""
    restarts: bool = True
    """Whether writing it changes the pod template, so that the pods restart."""


def told_once(
    found: Iterable[tuple[EngineContainer, tuple[Lack, ...]]], so: str, rule: str
) -> Iterator[Finding]:
    """Report what the containers of one object lack, in one finding.

    Args:
        found: The containers with what each one lacks.
        so: What follows from it, as a clause.
        rule: The rule's name.
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
