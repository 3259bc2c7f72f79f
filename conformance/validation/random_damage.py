"""Random changes to objects: any place, any value."""

import copy
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from conformance.kubernetes import random_pod_templates

Body = dict[str, Any]
Place = tuple[str | int, ...]
Change = Callable[[random.Random, Body], None]
ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 1.5, 8.0, 2**31 - 1, 2**31, -(2**31) - 1, 2**53, 2**63, 10**40,
    1e20,
    "", "a", "8", "x y", "Bad_Name", "a" * 64, "a" * 254, "50%", "8Gi", "-5", "1e3", "hard", "true",
    "2026-01-01T00:00:00Z", [], {}, [None], ["a"], ["a", "a"], [1], [[]], [{}], {"a": 1},
    {"a": "b"}, {"a": None}, {"": ""}, {"name": "a"}, [{"name": "a"}, {"name": "a"}],
)  # fmt: skip
_FIXED = (("apiVersion",), ("kind",), ("metadata",), ("metadata", "namespace"), ("spec",))
"""Paths that are not changed themselves, because they decide the request's address."""


def places(tree: Any, at: Place = ()) -> Iterator[Place]:
    """Yield every path in a tree, except the root."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree)
    for key, value in items:
        yield (*at, key)
        if isinstance(value, dict | list):
            yield from places(value, (*at, key))


def holder_of(tree: Any, place: Place) -> Any:
    """Return the map or the list at the parent of a path."""
    for key in place[:-1]:
        tree = tree[key]
    return tree


def damage(draw: random.Random, body: Body) -> None:
    """Change a value at one path."""
    found = [place for place in places(body) if place not in _FIXED]
    if not found:
        return
    place = draw.choice(found)
    holder, key = holder_of(body, place), place[-1]
    match draw.randrange(10):
        case 0 | 1:
            del holder[key]
        case 2 if isinstance(holder, list):
            holder.append(copy.deepcopy(holder[int(key)]))
        case 2 | 3 if isinstance(holder, dict):
            holder[draw.choice(("unknown", "Name", "maxsurge", f"{key}s"))] = draw.choice(ODD)
        case 4:
            holder[key] = _turned(holder[key])
        case _:
            holder[key] = copy.deepcopy(draw.choice(ODD))


def damage_pod(draw: random.Random, body: Body) -> None:
    """Set a field inside a pod template to an odd value, or remove it."""
    try:
        spec = draw.choice(body["spec"]["template"]["roles"])["entryTemplate"]["spec"]
        spec["containers"][0]["name"]
    except (LookupError, TypeError):
        return  # another change has already removed it
    damage_spec(draw, spec)


def damage_spec(draw: random.Random, spec: Body) -> None:
    """Let a pod grow, and set one field of it to an odd value, or remove it."""
    for _ in range(draw.randint(1, 3)):
        random_pod_templates.grow(draw, spec)
    deep = [place for place in places(spec) if len(place) > draw.randint(0, 4)]
    if deep:
        place = draw.choice(deep)
        holder, key = holder_of(spec, place), place[-1]
        match draw.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[int(key)]))
            case 2:
                holder[key] = _turned(holder[key])
            case _:
                holder[key] = copy.deepcopy(draw.choice(ODD))


def _turned(value: Any) -> Any:
    """Return a similar value of another type."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str():
            return int(value) if value.isdecimal() and value.isascii() else [value]
        case list():
            return {str(index): item for index, item in enumerate(value)}
        case dict():
            return [value]
        case _:
            return ""


def if_there(change: Change) -> Change:
    """Skip a change whose place an earlier one has removed."""

    def changed(draw: random.Random, body: Body) -> None:
        with suppress(LookupError, TypeError, AttributeError):
            change(draw, body)

    return changed
