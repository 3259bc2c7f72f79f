"""Values as `helm --set` writes them: `a.b[0].c` and a text.

Source: helm/helm v3 pkg/strvals/parser.go.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kthena_components.core.values.display import display
from kthena_components.core.values.read import is_map, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown, is_unresolved

_KEY = r"(?:[\w/-]|\\.){1,200}"
_INDEX = r"\[[0-9]{1,3}\]"
_NAME = regex(rf"{_KEY}(?:{_INDEX}){{0,9}}(?:\.{_KEY}(?:{_INDEX}){{0,9}}){{0,29}}", re.ASCII)
_STEP = regex(rf"{_KEY}|{_INDEX}", re.ASCII)
_ESCAPED = regex(r"\\(.)")
_INTEGER = regex(r"0|[+-]?[1-9][0-9]{0,17}")
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

Step = str | int
"""A key of a map, or the position in a list."""


def typed(text: str) -> str | int | bool | None:
    """Read a text as --set does: integers, true, false and null are not texts."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    return int(text) if _INTEGER.fullmatch(text) else text


def parsed(value: object, *, as_text: bool) -> Any:
    """Read what --set gets as a value; a text only, with --set-string. A list is in braces."""
    if not isinstance(value, str) or is_unresolved(value):
        return value
    if value.startswith("{") and value.endswith("}"):
        return [parsed(item, as_text=as_text) for item in value[1:-1].split(",")]
    plain = _ESCAPED.sub(r"\1", value)
    return plain if as_text else typed(plain)


def steps_of(name: object) -> tuple[Step, ...] | Unknown:
    """Read the name of a value, as keys and positions."""
    if not isinstance(name, str) or is_unresolved(name) or not _NAME.fullmatch(name):
        return unknown_in(name) or Unknown(f"the name of a value, {display(name)}, is not read")
    return tuple(
        int(step[1:-1]) if step.startswith("[") else _ESCAPED.sub(r"\1", step)
        for step in _STEP.findall(name)
    )


def with_value(values: object, steps: Sequence[Step], value: object) -> Any:
    """Return values with one of them changed; Unknown if it does not fit into them."""
    if not steps:
        return value
    if gap := unknown_in(values):
        return gap
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if values is not None and not is_map(values):
            return Unknown(f"{step} is set in a value that is no map")
        below: dict[Any, Any] = dict(values or {})
        below[step] = with_value(below.get(step), rest, value)
        return below
    if values is not None and not isinstance(values, list | tuple):
        return Unknown(f"[{step}] is set in a value that is no list")
    items: list[Any] = list(values or ())
    items += [None] * (step + 1 - len(items))
    items[step] = with_value(items[step], rest, value)
    return items
