"""Fields at the wrong depth: the same name is a field a few levels up, or one or two down.

A map may also be one level too many around fields that belong where it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kthena_components.core.findings import Level, join_path
from kthena_components.core.remedies import Change, Remedy
from kthena_components.core.schema.language import Fields, Items, Schema, check_shape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import key_text
from kthena_components.core.values.regex import regex

_MOVE = regex(r"move it to (?P<map>(?:(?! or ).)+)|move its items to (?P<list>.+)")
_LEVELS = 3
"""From a container up to the spec of its pod, its template and what has the template."""
_LISTED = 3
"""Most maps that a remedy names, if a field may belong into each."""
_NOT_INTO = frozenset({"metadata", "status"})
_CONTAINERS = ("containers", "initContainers")
_OF_METADATA = frozenset({"annotations", "labels"})
_ABSENT: Mapping[Any, Any] = MappingProxyType({})
"""Stands for a map that an object does not have."""


@dataclass(frozen=True, slots=True)
class _Map:
    """A map of an object with its known fields."""

    path: str
    fields: Fields
    held: Mapping[Any, Any]

    def takes(self, key: object, item: object) -> bool:
        """Return whether a field can be moved here as it is."""
        known = self.fields.fields.get(str(key))
        lists = isinstance(item, list) and isinstance(self.held.get(key), list)
        if known is None or (key in self.held and not lists):
            return False
        if self.held is _ABSENT and key == "name":  # it may be the name of anything
            return False
        return not any(each.level is Level.MANDATORY for each in check_shape(item, known))


def moves(
    value: object, schema: Schema, path: str = "", above: Sequence[_Map] = ()
) -> Iterator[tuple[str, Remedy]]:
    """Yield the fields that a schema does not have there, with the place where it has them."""
    if isinstance(schema, Items) and isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from moves(item, schema.of, f"{path}[{index}]", above)
    if not (isinstance(schema, Fields) and isinstance(value, Mapping)):
        return
    here = _Map(path, schema, value)
    below: list[_Map] | None = None
    deeper: list[_Map] = []
    for key, item in value.items():
        known, at = schema.fields.get(key), join_path(path, key_text(key))
        if known is not None:
            yield from moves(item, known, at, (here, *above)[:_LEVELS])
            continue
        if below is None:
            below = _below(here)
            deeper = [inner for each in below for inner in _below(each)]
        inside = [each for each in below if each.takes(key, item)]
        place = _metadata(here, key, item) or _place(key, item, inside, above)
        if (place := place or _namesake(here, key, item, above)) is not None:
            yield at, _move(key, item, place)
            continue
        places = inside or [each for each in deeper if each.takes(key, item)]
        if len(places) == 1:
            yield at, _move(key, item, places[0])
        elif remedy := _among(places) if places else _elsewhere(here, key, item, above):
            yield at, remedy


def _elsewhere(here: _Map, key: object, item: object, above: Sequence[_Map]) -> Remedy | None:
    """Say where a field belongs that no map around takes as it is."""
    if (remedy := _unwrap(here, item)) is not None:
        return remedy
    if isinstance(item, str):
        inside = [each for each in (here, *_below(here)) if each.takes(key, [item])]
        if len(inside) == 1:
            target = join_path(inside[0].path, key_text(key))
            fixes = [(Change(), Change(value=[item], path=target))]
            return Remedy(f"write it as a list, {target}", fixes)
    return _into_containers(here, key, item) or _in_items(here, key, item, above)


def _into_containers(here: _Map, key: object, item: object) -> Remedy | None:
    """Move a field of a container that stands beside the list of containers: a probe, or env."""
    lists = [(name, here.fields.fields.get(name), here.held.get(name)) for name in _CONTAINERS]
    found = [
        _Map(f"{join_path(here.path, name)}[{number}]", known.of, container)
        for name, known, held in lists
        if isinstance(known, Items) and isinstance(known.of, Fields)
        for number, container in enumerate(held if isinstance(held, list | tuple) else ())
        if isinstance(container, Mapping)
    ]
    places = [each for each in found if each.takes(key, item)]
    return _move(key, item, places[0]) if len(places) == 1 else _among(places)


def _in_items(here: _Map, key: object, item: object, above: Sequence[_Map]) -> Remedy | None:
    """Name maps of the same name in the items of a list: a container's securityContext."""
    name = here.path.rpartition(".")[2]
    outer = above[0] if above else None
    for beside, known in outer.fields.fields.items() if outer is not None else ():
        inner = known.of if isinstance(known, Items) and outer and beside in outer.held else None
        same = inner.fields.get(name) if isinstance(inner, Fields) else None
        if outer is None or not isinstance(same, Fields):
            continue
        start = _Map(f"{join_path(outer.path, beside)}[].{name}", same, _ABSENT)
        found = [each for each in (start, *_below(start)) if each.takes(key, item)]
        if len(found) == 1:
            return Remedy(f"write it in {found[0].path} of each container that needs it")
    return None


def _among(places: Sequence[_Map]) -> Remedy | None:
    """Name several places, unless they are too many."""
    if not 0 < len(places) <= _LISTED:
        return None
    return Remedy(f"move it to {' or '.join(each.path for each in places)}")


def _unwrap(here: _Map, item: object) -> Remedy | None:
    """Take a map away that is one level too many around fields of the map that holds it."""
    fields = item.items() if isinstance(item, Mapping) else ()
    if not (here.path and fields and all(here.takes(key, inner) for key, inner in fields)):
        return None
    return Remedy(f"move what it holds to {here.path}")


def _below(here: _Map) -> list[_Map]:
    """Return the maps that a map holds or may hold, with their known fields."""
    return [
        _Map(join_path(here.path, name), known, held)
        for name, known in here.fields.fields.items()
        if isinstance(known, Fields)
        and isinstance(held := here.held.get(name, _ABSENT), Mapping)
        and name not in _NOT_INTO
    ]


def _metadata(here: _Map, key: object, item: object) -> _Map | None:
    """Return the metadata into which labels or annotations beside it belong."""
    held = here.held.get("metadata")
    if key not in _OF_METADATA or not (isinstance(item, Mapping) and isinstance(held, Mapping)):
        return None
    return _Map(join_path(here.path, "metadata"), here.fields, held)


def _place(key: object, item: object, inside: Sequence[_Map], above: Sequence[_Map]) -> _Map | None:
    """Return the one map inside, or the nearest above, that takes such a field."""
    stated = [each for each in inside if each.held is not _ABSENT]
    outside = (each for each in above if each.path and each.takes(key, item))
    if len(stated) == 1:
        return stated[0]
    return next(outside, inside[0] if len(inside) == 1 else None)


def _namesake(here: _Map, key: object, item: object, above: Sequence[_Map]) -> _Map | None:
    """Return a map of the same name further up: the securityContext of the pod has fsGroup."""
    name = here.path.rpartition(".")[2]
    maps = (each for outer in above[1:] for each in _below(outer))
    return next((m for m in maps if m.path.endswith(f".{name}") and m.takes(key, item)), None)


def move_in(remedy: str) -> str | None:
    """Return the path of the map into which a remedy of `moves` moves a field; None for others."""
    found = _MOVE.fullmatch(remedy)
    if found is None:
        return None
    return found["map"] or found["list"].rpartition(".")[0]


def _move(key: object, item: object, place: _Map) -> Remedy:
    target = join_path(place.path, key_text(key))
    if key in place.held:
        return Remedy(f"move its items to {target}")
    plain = isinstance(item, str | int | float)
    fixes = [(Change(), Change(value=item, path=target))] if plain else []
    return Remedy(f"move it to {place.path}", fixes)
