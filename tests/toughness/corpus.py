"""Every manifest that the tests have: what is damaged, changed and cut here."""

import copy
import pickle
import random
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from kthena_components.checker.manifest import has_rules
from kthena_components.core.values.unknown import BLANK_WORD, OUTPUT_CLOSE, OUTPUT_OPEN, Blank
from tests.rules.cases import bases as bases_by_name
from tests.rules.cases import documents

TESTS = Path(__file__).parents[1]
LATE = f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"
ODD: tuple[Any, ...] = (
    Blank("${NAME}"),
    f"--tensor-parallel-size={BLANK_WORD}",
    LATE,
    None,
    True,
    0,
    -1,
    10**40,
    8.5,
    float("inf"),
    float("nan"),
    -0.0,
    1e308,
    2**63,
    "",
    "8",
    "9" * 5000,
    "9" * 5000 + "%",
    "1e999",
    "a\0b",
    "\ud800",
    "$(TP)",
    f"--tensor-parallel-size={LATE}",
    "x y; vllm serve 'm",
    [],
    {},
    [[]],
    [{"name": 1}],
    {"": {"": ""}},
)
"""Values that are most likely to trip a reader."""

OTHER_TYPES: tuple[Any, ...] = ("", {"a": {"b": []}}, [{"a": 1}], None, [["x"]], [], {}, 7)
"""Values of other types than those that a place holds. Empty: the place is left out."""

Place = tuple[str | int, ...]


@cache
def bases() -> dict[str, dict[str, Any]]:
    """Give the manifests that are right, by name: one of each system and kind."""
    found = {
        f"{name}-{number}": body
        for name in sorted(bases_by_name())
        for number, body in enumerate(documents(name))
    }
    return {name: body for name, body in found.items() if has_rules(body)}


@cache
def goldens() -> dict[str, dict[str, Any]]:
    """Give the manifests that our backends write, of kinds that are judged."""
    found = {
        f"{path.parent.name}-{path.stem}-{number}": body
        for path in sorted((TESTS / "goldens").glob("*/*.yaml"))
        for number, body in enumerate(yaml.load_all(path.read_text(), yaml.CSafeLoader))
        if body is not None
    }
    return {name: body for name, body in found.items() if has_rules(body)}


def places(tree: Any) -> list[Place]:
    """List every place in a tree, the root left out."""
    found: list[Place] = []
    _list_places(tree, (), found)
    return found


def _list_places(tree: Any, at: Place, found: list[Place]) -> None:
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        place = (*at, key)
        found.append(place)
        if isinstance(value, dict | list):
            _list_places(value, place, found)


def put(tree: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """Return a tree with another value at one place. The rest is shared with the given tree."""
    result, holder = _open(tree, place)
    holder[place[-1]] = value
    return result


def cut(tree: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return a tree without one place. The rest is shared with the given tree."""
    result, holder = _open(tree, place)
    del holder[place[-1]]
    return result


def of_another_type(tree: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """Return a tree with one of OTHER_TYPES at one place."""
    return cut(tree, place) if value == "" else put(tree, place, copy.deepcopy(value))


def _open(tree: dict[str, Any], place: Place) -> tuple[dict[str, Any], Any]:
    """Copy what is on the way to a place: a copy of everything takes as long as a check."""
    result = dict(tree)
    holder: Any = result
    for key in place[:-1]:
        holder[key] = copy.copy(holder[key])
        holder = holder[key]
    return result, holder


def at(tree: Any, place: Place) -> Any:
    """Give what stands at a place."""
    for key in place:
        tree = tree[key]
    return tree


@cache
def _copied() -> list[tuple[bytes, list[Place]]]:
    """Give each manifest to copy from, and its places. No part of it stands at two places."""
    bodies = chain(bases().values(), goldens().values())
    return [(pickle.dumps(_unshared(body)), places(body)) for body in bodies]


def _unshared(tree: Any) -> Any:
    """Copy a tree: what an alias of YAML repeats becomes two parts."""
    if isinstance(tree, dict):
        return {key: _unshared(value) for key, value in tree.items()}
    return [_unshared(value) for value in tree] if isinstance(tree, list) else tree


def damaged(draw: random.Random) -> dict[str, Any]:
    """Draw a manifest with something else in up to four places, or in most of its fields."""
    copied, found = draw.choice(_copied())
    body = pickle.loads(copied)  # noqa: S301 - from above
    found = found.copy()
    for _ in range(draw.choice((1, 1, 2, 4, 30))):
        if found:
            first = draw.choice(range(len(found)))
            place, value = found[first], _unshared(json_tree(draw))
            at(body, place[:-1])[place[-1]] = value
            # Only what is below the place has changed, and it comes right after it.
            last = first + 1
            while last < len(found) and len(found[last]) > len(place):
                last += 1
            below = places(value) if isinstance(value, dict | list) else ()
            found[first + 1 : last] = [(*place, *steps) for steps in below]
    return {"apiVersion": "v1", "kind": "Pod", **body}


def json_tree(draw: random.Random, depth: int = 3) -> Any:
    """Draw anything that JSON can hold."""
    kind = draw.randrange(10)
    if depth and kind == 0:
        return [json_tree(draw, depth - 1) for _ in range(draw.randrange(4))]
    if depth and kind == 1:
        return {_key(draw): json_tree(draw, depth - 1) for _ in range(draw.randrange(4))}
    return draw.choice(ODD)


@cache
def _words() -> tuple[str, ...]:
    """Give the keys that manifests have."""
    found = {
        key
        for body in bases().values()
        for place in places(body)
        for key in place
        if isinstance(key, str)
    }
    return tuple(sorted(found))


def _key(draw: random.Random) -> str:
    return draw.choice(_words()) if draw.randrange(3) else draw.choice(("", "a.b/c", "\ud800", "7"))
