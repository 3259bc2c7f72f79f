"""Two states of one object, and how they differ."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import NOT_YET_KNOWN
from kthena_components.core.values.unknown import Unknown, is_unresolved

_DEEP = Unknown("it is nested too deeply to be compared")


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after an update."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]


def differ(before: object, after: object) -> bool | Unknown:
    """Return whether two values differ, or why that is unknown."""
    if _has_unresolved(before) or _has_unresolved(after):
        return NOT_YET_KNOWN
    try:
        return before != after
    except RecursionError:
        return _DEEP


def _has_unresolved(value: object) -> bool:
    """Return whether a value contains an unknown value at any depth."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, Unknown) or is_unresolved(part):
            return True
        if isinstance(part, Mapping):
            parts.extend(part.values())
        elif isinstance(part, list | tuple):
            parts.extend(part)
    return False
