"""What is done to trees and strings that were right: everything here is drawn from a seed."""

import pickle
import random
from functools import cache
from itertools import chain
from typing import Any

from tests.rules.cases import documents
from tests.rules.test_cases import CASES
from tests.support.specs import changed
from tests.toughness.corpus import LATE, ODD, Place, at, bases, goldens, places

Body = dict[str, Any]
STRANGE = (
    "", " ", "\t", "\x00", "\x1b[31m", "\x7f", "\x85", "\xa0", "\u200b", "\u2028", "\u202e",
    "\ufeff", "\ud800", "\U0010ffff", "\ue000", "\ue0007\ue001", "\ue0020\ue003", "ﬁ", "İ", "ß",
    "٣", "\U0001d7d8", "é", "e\u0301", "\r", "\n", "\r\n", "%s", "{}", "$(A)", "$$", "`", "'", '"',
    "\\", "<{%", "[x]",
)  # fmt: skip
MORE: tuple[Any, ...] = (
    *ODD, *STRANGE, float("nan"), float("-inf"), -0.0, 1e308, 2**31, 2**63, -(2**64), 10**400, 1e-9,
    "0x10", "010", "1_000", "12e", "5Gi", "-1Gi", "0.1m", "9"*400, "null", "true", "~", "1:30",
    "2026-13-45", "2030-12-31 soon", "a"*254, "a."*200, "-"*64, "None", ".", "..", "/", "//",
    [None], [[], {}], {"": None}, {"a": {"a": {"a": {}}}}, [LATE], {"name": LATE}, {1: 2},
    {None: 1}, {True: [], 1.5: {}}, b"x",
)  # fmt: skip
"""Values that are most likely to trip a reader: those that JSON and YAML have, and some more."""


@cache
def stored() -> tuple[bytes, ...]:
    """Give every manifest that the tests have: the bases and what cases make of them, goldens."""
    made = (_made(case.base, case.set) for case in CASES if case.none is None)
    known = [*bases().values(), *goldens().values(), *chain.from_iterable(made)]
    return tuple(dict.fromkeys(pickle.dumps(body) for body in known if "apiVersion" in body))


def _made(base: str, changes: Body) -> list[Body]:
    found = documents(base)
    if len(found) > 1:
        named = {_name(body): body for body in found}
        return list(changed(named, changes).values())
    return [changed(found[0], changes)]


@cache
def case_places() -> list[tuple[bytes, int, Place]]:
    """List every place of every case that its base has not, or has with something else.

    Returns:
        The objects of the case (pickled), the index of one of them, and a place in it.
    """
    found = []
    for case in CASES:
        if case.none is None and "apiVersion" in (before := documents(case.base))[0]:
            made, known = _made(case.base, case.set), {_name(body): body for body in before}
            stored = pickle.dumps(made)
            for index, body in enumerate(made):
                base = known.get(_name(body), {})
                found += [
                    (stored, index, each) for each in places(body) if _other(base, body, each)
                ]
    return found


def _name(body: Body) -> str:
    metadata = body.get("metadata", body)
    return str(metadata.get("name") if isinstance(metadata, dict) else metadata)


def _other(base: Body, body: Body, place: Place) -> bool:
    try:
        return bool(at(base, place) != at(body, place))
    except (KeyError, IndexError, TypeError):
        return True


@cache
def _kinds() -> tuple[tuple[Any, Any], ...]:
    bodies = map(pickle.loads, stored())
    found = dict.fromkeys((body.get("apiVersion"), body.get("kind")) for body in bodies)
    return (*found, ("v1", "ConfigMap"), ("example.com/v1", "Thing"), ("", ""), ("v1", "List"))


@cache
def _keys() -> tuple[str, ...]:
    """Give the keys that manifests have."""
    bodies = map(pickle.loads, stored()[:200])
    found = {key for body in bodies for place in places(body) for key in place}
    return tuple(sorted(key for key in found if isinstance(key, str)))


def manifest(draw: random.Random) -> Body:
    """Draw a manifest and change it in a few places, or in many."""
    body: Body = pickle.loads(draw.choice(stored()))  # noqa: S301 - from above
    for _ in range(draw.choice((0, 1, 1, 2, 3, 6, 20))):
        change(draw, body)
    if draw.randrange(12) == 0:
        body["apiVersion"], body["kind"] = draw.choice(_kinds())
    return body


def change(draw: random.Random, tree: Any) -> None:
    """Change a tree in one place."""
    found = _spots(tree)
    if not found:
        return
    holder, key = draw.choice(found)
    match draw.randrange(9):
        case 0:
            del holder[key]
        case 1:
            holder[key] = pickle.loads(pickle.dumps(_taken(draw)))  # noqa: S301 - a copy
        case 2 if isinstance(holder, list):
            holder.insert(draw.randrange(len(holder) + 1), pickle.loads(pickle.dumps(holder[key])))  # noqa: S301
        case 2 | 3 if isinstance(holder, dict):
            holder[draw.choice(_keys())] = holder.pop(key)
        case 4:
            holder[key] = _turned(holder[key])
        case 5 if isinstance(holder[key], str):
            holder[key] = text(draw, holder[key])
        case 6 if isinstance(holder[key], list):
            holder[key] *= draw.choice((0, 2, 3, 40))
        case _:
            holder[key] = pickle.loads(pickle.dumps(draw.choice(MORE)))  # noqa: S301 - a copy


def _taken(draw: random.Random) -> Any:
    """Take a part of another manifest."""
    other = pickle.loads(draw.choice(stored()))  # noqa: S301 - from above
    holder, key = draw.choice(_spots(other) or [([other], 0)])
    return holder[key]


def _spots(tree: Any) -> list[tuple[Any, Any]]:
    """List everything in a tree, each with what holds it."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        holder = waiting.pop()
        for key, value in holder.items() if isinstance(holder, dict) else enumerate(holder):
            found.append((holder, key))
            if isinstance(value, dict | list):
                waiting.append(value)
    return found


def _turned(value: Any) -> Any:
    """Give nearly the same, of another kind."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str():
            return int(value[:99]) if value.isascii() and value.isdecimal() else [value]
        case list():
            return {str(index): item for index, item in enumerate(value)}
        case dict():
            return [value]
        case _:
            return ""


def text(draw: random.Random, given: str, pieces: tuple[str, ...] = STRANGE) -> str:
    """Cut, double and break a string in a few places."""
    for _ in range(draw.choice((1, 1, 2, 5))):
        start = draw.randrange(len(given) + 1)
        end = min(len(given), start + draw.choice((0, 0, 1, 3, 20, 1000)))
        part = given[start:end]
        put = draw.choice(("", part * 2, draw.choice(pieces), draw.choice(pieces) * 50))
        given = f"{given[:start]}{put}{given[end:]}"
    return given
