"""Finds the servings among some objects that a backend describes. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from kthena_components import systems
from kthena_components.core.facts.context import Context
from kthena_components.core.objects.object import GroupKind, read_object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind
from kthena_components.systems.emitter import Converter, Emitter
from kthena_components.systems.system import Body

SERVICE: GroupKind = ("", "Service")
Backend = tuple[str, Emitter, Converter]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """An object with the other objects that its backend writes for the same serving."""

    source: Body
    whole: Body
    others: Mapping[int, Body]
    """The other objects, by index."""


def converters() -> Iterator[Backend]:
    """List the backends whose objects can be described."""
    for name in systems.EMITTERS:
        emitter = systems.find_emitter(name)
        if emitter is not None and emitter.converter is not None:
            yield name, emitter, emitter.converter


def kinds_to_read() -> list[GroupKind]:
    """List the kinds that `convert` reads from a cluster."""
    several = [d for _, _, d in converters() if d.gathered is None]
    found = (kind for d in several for kind in (*d.kinds, *d.beside))
    return list(dict.fromkeys((*found, SERVICE)))


def find_servings(objects: Sequence[Body]) -> dict[int, tuple[Merged, Backend]]:
    """Return the servings by the index of their first object."""
    found = {place: pair for backend in converters() for place, pair in _gathered(objects, backend)}
    taken = {index for merged, _ in found.values() for index in merged.others} | found.keys()
    rest = {index: body for index, body in enumerate(objects) if index not in taken}
    alone = {index: backend for index, body in rest.items() if (backend := _backend_of(body))}
    others = {index: body for index, body in rest.items() if index not in alone}
    found |= {i: (merge(objects[i], others, b[2]), b) for i, b in alone.items()}
    return dict(sorted(found.items()))


def _gathered(
    objects: Sequence[Body], backend: Backend
) -> Iterator[tuple[int, tuple[Merged, Backend]]]:
    gathered = backend[2].gathered
    for places in gathered.find(objects) if gathered is not None else ():
        bodies = {place: objects[place] for place in places}
        merged = Merged(
            source=objects[places[0]],
            whole=gathered.joined(list(bodies.values())) if gathered is not None else {},
            others={place: body for place, body in bodies.items() if place != places[0]},
        )
        yield places[0], (merged, backend)


def _backend_of(body: Body) -> Backend | None:
    kind = group_kind(body)
    return next((b for b in converters() if b[2].gathered is None and kind in b[2].kinds), None)


def merge(body: Body, others: Mapping[int, Body], converter: Converter) -> Merged:
    """Merge the other objects of the same serving into an object."""
    if converter.merged is None:
        return Merged(source=body, whole=body, others={})
    places = list(others)
    whole, used = converter.merged(body, list(others.values()))
    return Merged(source=body, whole=whole, others={places[i]: others[places[i]] for i in used})


def written_as_one(bodies: Sequence[Body], converter: Converter) -> Body:
    """Return the only serving among a backend's manifests, in the form of `Merged.whole`."""
    if converter.gathered is not None:
        (places,) = converter.gathered.find(bodies)
        return converter.gathered.joined([bodies[place] for place in places])
    (written,) = (body for body in bodies if group_kind(body) in converter.kinds)
    beside = {index: body for index, body in enumerate(bodies) if body is not written}
    return merge(written, beside, converter).whole


def runs_engines(body: Body, context: Context) -> bool:
    """Return whether an object runs engines, by its facts and the ConfigMaps in its context."""
    kind = systems.find_kind(group_kind(body))
    if kind is None or kind.facts is None:
        return False
    facts = kind.facts(kind.view(read_object(body, context=context)))
    return facts is not None and bool(facts.engines)
