"""The CustomResourceDefinitions among the files that are checked.

A repository of a controller, or of a cluster, has the CRDs that its objects are written for. Its
objects are checked with them, and not with those of a release (decision 49).
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.schema.crds import CrdTable
from kthena_components.core.schema.language import Fields, Items, Schema, Table
from kthena_components.core.schema.openapi import served_roots
from kthena_components.core.values.read import mapping

_NUMBERS = ("shortest", "longest", "least", "most", "fewest")
_LEVELS = 6
"""Levels of fields by which a release is told from another: to those of a role's pods."""
_NAMES = ("enum", "required", "keys", "fields")


def defined(body: Mapping[str, Any]) -> tuple[str, str]:
    """Return the API group and the kind that a CRD defines; empty texts if it states none."""
    spec = mapping(body.get("spec"))
    group, kind = spec.get("group"), mapping(spec.get("names")).get("kind")
    return (group, kind) if isinstance(group, str) and isinstance(kind, str) else ("", "")


def tables_of(
    crds: Iterable[tuple[str, Mapping[str, Any]]], packaged: CrdTable
) -> tuple[CrdTable, ...]:
    """Read CRDs of one kind, each once. One that cannot be read is left out.

    Args:
        crds: CRDs with their files.
        packaged: The releases of the kind's system.
    """
    found: list[tuple[object, CrdTable]] = []
    for file, body in crds:
        spec = body.get("spec")
        if all(spec != other for other, _ in found):
            table = _read(file, body, packaged)
            found += [(spec, table)] if table else []
    return tuple(table for _, table in found)


def _read(file: str, body: Mapping[str, Any], packaged: CrdTable) -> CrdTable | None:
    types: list[Mapping[str, Any]] = []
    try:
        roots = served_roots(body, _numbering(types, packaged.patterns))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    kinds: dict[str, dict[str, list[tuple[int, int | None]]]] = {}
    for (kind, served), number in roots.items():
        if not served.rpartition("/")[2].isalnum():
            return None
        kinds.setdefault(kind, {})[served] = [(0, number)]
    filled = packaged.filled
    if not kinds:
        return None
    table = CrdTable(file, ((),), kinds, {}, filled, packaged.unsigned, types)
    return replace(table, like=_nearest(table, packaged))


def _nearest(table: CrdTable, packaged: CrdTable) -> str:
    """Return the release with the fields most like those of a CRD; empty for the newest."""
    kind, served = next((kind, served) for kind, forms in table.kinds.items() for served in forms)
    own, last = _declared(table, kind, served, 0), len(packaged.releases) - 1
    differing = {
        place: len(own ^ _declared(packaged, kind, served, place)) for place in range(last, -1, -1)
    }
    nearest = min(differing, key=differing.__getitem__)
    return "" if nearest == last else ".".join(map(str, packaged.releases[nearest][:2]))


def _declared(table: CrdTable, kind: str, served: str, place: int) -> frozenset[str]:
    number = table.number(kind, served, place)
    return frozenset() if number is None else frozenset(_paths(table.root(number, kind)[0], ""))


def _paths(schema: Schema, at: str, levels: int = _LEVELS) -> Iterator[str]:
    while isinstance(schema, Items | Table):
        schema = schema.of
    if isinstance(schema, Fields) and levels:
        for name, one in schema.fields.items():
            yield f"{at}.{name}"
            yield from _paths(one, f"{at}.{name}", levels - 1)


def _numbering(
    types: list[Mapping[str, Any]], patterns: frozenset[str]
) -> Callable[[dict[str, Any]], int]:
    numbers: dict[str, int] = {}

    def number(made: dict[str, Any]) -> int:
        if made.get("pattern") not in patterns:
            # A pattern of anybody's could take hours to match.
            made.pop("pattern", None)
        whole = all(type(made[name]) is int for name in _NUMBERS if name in made)
        named = all(isinstance(word, str) for name in _NAMES for word in made.get(name, ()))
        if not (whole and named):
            raise ValueError("a limit is no number, or a name is no text")
        text = json.dumps(made, sort_keys=True)
        if text not in numbers:
            numbers[text] = len(types)
            types.append(made)
        return numbers[text]

    return number
