"""Finds the fields of an object that its description loses or does not depend on. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import join_path, path_of
from kthena_components.core.plan.manifest import BACKGROUND, PATCH_FORCE, WAIT_FOR
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.values_in_text import read_yaml_text

_NOTHING = object()
_OURS = frozenset({"pulumi.com"})
_WRITTEN = frozenset({WAIT_FOR, *PATCH_FORCE, *BACKGROUND, naming.STACK})
"""Annotations that the package writes for Pulumi, whatever stood there before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Something of an object that its conversion does not keep."""

    name: str
    """Path of the field in the object, or a word if it is not one field: `gang`."""
    seen: str
    """What happens to it. A clause, no full stop."""

    def __str__(self) -> str:
        """Write it in one line."""
        return f"{self.name}: {self.seen}"


def find_losses(source: object, result: object, path: str = "") -> Iterator[Loss]:
    """Yield every field of the source that is missing or different in the result.

    Members of lists are found by their names, if they have any. Maps and lists without content are
    as good as missing.
    """
    if path == "metadata.annotations" and isinstance(source, Mapping):
        source = {key: text for key, text in source.items() if key not in _WRITTEN}
    if isinstance(source, Mapping) and isinstance(result, Mapping):
        for key, value in source.items():
            yield from find_losses(value, result.get(key, _NOTHING), _below(path, key))
    elif _is_empty(source):
        return
    elif _is_empty(result):
        if not _is_written(source, path):
            yield Loss(name=path, seen="is not kept")
    elif _are_lists(source, result) and _holds_maps(source):
        theirs = _by_name(result)
        for key, index, value in _members(source):
            yield from find_losses(value, theirs.get(key, _NOTHING), f"{path}[{index}]")
    elif source != result or isinstance(source, bool) != isinstance(result, bool):
        yield Loss(name=path, seen=f"{display(source)} becomes {display(result)}")


def find_additions(
    source: object, result: object, path: str = "", *, with_ours: bool = False
) -> Iterator[str]:
    """Yield the path of every field that only the result has.

    Without `with_ours`, labels, annotations and variables that the package adds are left out.
    """
    if isinstance(result, Mapping):
        theirs = source if isinstance(source, Mapping) else {}
        for key, value in result.items():
            if with_ours or key in theirs or not _is_ours(path, key):
                yield from _added(theirs.get(key), value, _below(path, key), with_ours=with_ours)
    elif isinstance(result, list | tuple) and _holds_maps(result):
        known = _by_name(source)
        for key, index, value in _members(result):
            if with_ours or key in known or key not in naming.INJECTED_ENV:
                own = f"{path}[{index}]"
                yield from _added(known.get(key), value, own, with_ours=with_ours)
    elif not _is_empty(result) and _is_empty(source):
        yield path


def changed_by_adoption(source: object, result: object) -> Iterator[Loss]:
    """Yield what changes an object that a program takes over, though it loses nothing.

    Each change of a spec is a new generation, for which controllers replace pods. Labels and
    annotations of the object itself are none.
    """
    for path in find_additions(source, result, with_ours=True):
        if not path.startswith("metadata."):
            yield Loss(
                name=path, seen="is added, which changes the object and may restart its pods"
            )
    for path in find_moved(source, result):
        yield Loss(name=path, seen="is in another order, which may restart its pods")


def find_moved(source: object, result: object, path: str = "") -> Iterator[str]:
    """Yield the lists with the same members in another order."""
    if isinstance(source, Mapping) and isinstance(result, Mapping):
        for key in source.keys() & result.keys():
            yield from find_moved(source[key], result[key], _below(path, key))
    elif _are_lists(source, result):
        ours, theirs = _members(source), _by_name(result)
        both = [key for key, _, _ in ours if key in theirs]
        if both != [key for key in theirs if key in both]:
            yield path
        for key, index, value in ours:
            yield from find_moved(value, theirs.get(key), f"{path}[{index}]")


def _added(source: object, result: object, path: str, *, with_ours: bool) -> Iterator[str]:
    """Yield the fields of a part; the part itself if all of it is new."""
    found = find_additions(source, result, path, with_ours=with_ours)
    if _is_empty(source):
        yield from [path for _ in found][:1]
    else:
        yield from found


def _is_ours(path: str, key: object) -> bool:
    text = str(key)
    labels = path.endswith("labels") and text in naming.KTHENA_LABELS
    return labels or (path.endswith("annotations") and text.partition("/")[0] in _OURS)


def _below(path: str, key: object) -> str:
    return join_path(path, str(key))


def _is_written(value: object, path: str) -> bool:
    """Return whether a map only has what the package writes for Pulumi."""
    return isinstance(value, Mapping) and all(_below(path, key) in _WRITTEN for key in value)


def _is_empty(value: object) -> bool:
    """Return whether a value is empty: missing, null, or a map or list of such values."""
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))
    if isinstance(value, list | tuple):
        return not value
    return value is None or value is _NOTHING


def _are_lists(*values: object) -> bool:
    return all(isinstance(value, list | tuple) for value in values)


def _holds_maps(value: object) -> bool:
    return isinstance(value, Sequence) and any(isinstance(item, Mapping) for item in value)


def _members(items: Any) -> list[tuple[object, int, Any]]:
    """Return the members of a list with their names, or with their indices if these do not fit."""
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    unique = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return [
        (name if unique else index, index, item)
        for index, (name, item) in enumerate(zip(names, items, strict=True))
    ]


def _by_name(items: object) -> dict[object, Any]:
    return {key: item for key, _, item in _members(items)} if _are_lists(items) else {}


# Finds the fields of an object that its description does not depend on. Pure.
#
# No backend can write such an object again, so there is nothing to compare it with. Instead, each
# field is changed and removed. If the description stays the same, the field is lost.


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
        describe: Describes an object. Two descriptions with the same meaning are equal. If an
            object cannot be described without the field's value, the description depends on it.
        known: Paths of fields that need not be tried.
    """
    usual, skipped = describe(body), frozenset(known)
    for steps, value in leaves(body):
        path = path_of(steps)
        if path in skipped:
            continue
        others = (replaced(body, steps, other) for other in others_of(value))
        if all(describe(other) == usual for other in others):
            yield path
            continue
        held = _yaml_fields(value)
        if held is None:
            continue

        def inside(other: Mapping[str, Any], at: Steps = steps) -> object:
            return describe(replaced(body, at, json.dumps(other)))

        yield from (join_path(path, inner) for inner in find_unread(held, inside, ()))


def _yaml_fields(value: object) -> Mapping[str, Any] | None:
    """Return the fields of a string that contains YAML, such as a config; None for other values."""
    found = read_yaml_text(value, "") if isinstance(value, str) and "\n" in value else None
    return found if isinstance(found, Mapping) else None


def others_of(value: object) -> Iterator[object]:
    """Yield values to try in place of a value; NOTHING removes it."""
    yield NOTHING
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield value + 1
    elif isinstance(value, str):
        number = value.isdecimal() and len(value) <= _DIGITS
        yield str(int(value) + 1) if number else f"{value}x"


def replaced(part: Any, steps: Steps, value: object) -> Any:
    """Return a part of an object with another value at a path; NOTHING removes the field.

    What is beside the path is shared with the given part.
    """
    first, rest = steps[0], steps[1:]
    made: Any = dict(part) if isinstance(part, Mapping) else list(part)
    if rest:
        made[first] = replaced(made[first], rest, value)
    elif value is not NOTHING:
        made[first] = value
    elif isinstance(made, dict):
        del made[first]
    else:
        made[first] = None  # the other members keep their places
    return made


def together(body: Mapping[str, Any], paths: Sequence[str]) -> Iterator[str]:
    """Yield the lost paths; where all values of a part are lost, yield the part.

    The parts right below the object and its spec are too large for that.

    Args:
        paths: Lost paths. Those inside a string, such as a config, stay as they are and come first.
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
