"""Finds the fields of an object that its description does not depend on. Pure.

No backend can write such an object again, so there is nothing to compare it with. Instead, each
field is changed and removed. If the description stays the same, the field is lost.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.findings import join_path, path_of
from kthena_components.core.values.embedded import read_yaml_text

Steps = tuple[str | int, ...]
NOTHING = object()
"""Stands for no value."""
_DIGITS = 9
_LARGE = 3
"""Fewest steps of a path to a part that `together` names as a whole."""


def leaves(value: object, at: Steps = ()) -> Iterator[tuple[Steps, object]]:
    """Yield the scalars with their paths, without null, "" and empty maps and lists."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, (*at, str(key)))
    elif isinstance(value, list | tuple) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*at, index))
    elif value is not None and value != "":
        yield at, value


def find_unread(
    body: Mapping[str, Any], describe: Callable[[Mapping[str, Any]], object], known: Sequence[str]
) -> Iterator[str]:
    """Yield the paths of the fields that the description of an object does not depend on.

    Args:
        body: The object.
        describe: Describes an object. Two descriptions with the same meaning are equal. If an
            object cannot be described without the field's value, the description depends on it.
        known: Paths of fields that need not be tried.
    """
    usual, skipped = describe(body), frozenset(known)
    for steps, value in leaves(body):
        path = path_of(steps)
        if path in skipped:
            continue
        others = (replaced(body, steps, other) for other in _others(value))
        if all(describe(other) == usual for other in others):
            yield path
            continue
        held = _held(value)
        if held is None:
            continue

        def inside(other: Mapping[str, Any], at: Steps = steps) -> object:
            return describe(replaced(body, at, json.dumps(other)))

        yield from (join_path(path, inner) for inner in find_unread(held, inside, ()))


def _held(value: object) -> Mapping[str, Any] | None:
    """Return the fields of a text that contains YAML, such as a config; None for other values."""
    found = read_yaml_text(value, "") if isinstance(value, str) and "\n" in value else None
    return found if isinstance(found, Mapping) else None


def _others(value: object) -> Iterator[object]:
    """Yield values to try in place of a value; NOTHING removes it."""
    yield NOTHING
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, str):
        number = value.isdecimal() and len(value) <= _DIGITS
        yield str(int(value) + 1) if number else f"{value}x"


def replaced(body: Mapping[str, Any], steps: Steps, value: object) -> dict[str, Any]:
    """Return a copy of an object with another value at a path; NOTHING removes the field."""
    result = copy.deepcopy(dict(body))
    holder: Any = result
    for step in steps[:-1]:
        holder = holder[step]
    if value is not NOTHING:
        holder[steps[-1]] = value
    elif isinstance(holder, dict):
        del holder[steps[-1]]
    else:
        holder[steps[-1]] = None  # the other members keep their places
    return result


def together(body: Mapping[str, Any], paths: Sequence[str]) -> Iterator[str]:
    """Yield the lost paths; where all values of a part are lost, yield the part.

    The parts right below the object and its spec are too large for that.

    Args:
        body: The object.
        paths: Lost paths. Those inside a text, such as a config, stay as they are and come first.
    """
    steps_of = {path_of(steps): steps for steps, _ in leaves(body)}
    yield from (path for path in paths if path not in steps_of)
    lost_steps = [steps_of[path] for path in paths if path in steps_of]
    kept = set(steps_of.values()).difference(lost_steps)
    # A part with a value that is kept is not lost: all parts around such values.
    partly_kept = {steps[:end] for steps in kept for end in range(len(steps))}
    parts = (_lost_part(steps, partly_kept) for steps in lost_steps)
    yield from map(path_of, dict.fromkeys(parts))


def _lost_part(steps: Steps, partly_kept: set[Steps]) -> Steps:
    """Return the largest part around a lost value of which nothing is kept; at least the value."""
    parts = (steps[:end] for end in range(_LARGE, len(steps)))
    return next((part for part in parts if part not in partly_kept), steps)
