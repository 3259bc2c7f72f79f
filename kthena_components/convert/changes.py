"""The options of a conversion, and changes of arguments by path. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

SAME = "same"
"""Stands for the backend that an object is written for already."""
_KEY = r"[A-Za-z0-9_/-]+(?:\[\d{1,4}\])?"
_PATH = re.compile(rf"{_KEY}(?:\.{_KEY})*")
_PART = re.compile(r"[^.\[\]]+|\[\d+\]")


class ChangeError(ValueError):
    """A change that fits no argument. The text is written for users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The options of a conversion."""

    target: str
    """The backend to convert for, or SAME."""
    adopts: bool = False
    """Whether the objects stay where they are, so that each change restarts something."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments that replace the described ones, by path; None removes an argument."""
    today: date | None = None
    """The day on which waivers are checked; without it, all are ignored."""


def with_changes(args: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Replace arguments by path, such as `backend_options.kind` or `roles[0].replicas`.

    Raises:
        ChangeError: A path leads into a value that has no fields, or that is no path.
    """
    result: Any = dict(args)
    for path, value in changes.items():
        if not _PATH.fullmatch(path):
            raise ChangeError(f"'{path}' is not the path of an argument, such as roles[0].replicas")
        result = _changed(result, _PART.findall(path), value, path)
    return dict(result)


def _changed(holder: Any, parts: Sequence[str], value: Any, path: str) -> Any:
    if not parts:
        return value
    first, rest = parts[0], parts[1:]
    if first.startswith("["):
        index = int(first[1:-1])
        if not isinstance(holder, list) or index >= len(holder):
            raise ChangeError(f"'{path}' leads to no argument: there is no {first} at its place")
        return [
            _changed(item, rest, value, path) if at == index else item
            for at, item in enumerate(holder)
        ]
    if holder is not None and not isinstance(holder, Mapping):
        raise ChangeError(f"'{path}' leads to no argument: what is before '{first}' has no fields")
    fields = dict(holder or {})
    if not rest and value is None:
        fields.pop(first, None)
    else:
        fields[first] = _changed(fields.get(first), rest, value, path)
    return fields
