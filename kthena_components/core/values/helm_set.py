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
_ESCAPED = regex(r"\\(.?)", re.DOTALL)
_LIST = regex(r"\{((?:[^\\}]|\\.)*)\}", re.DOTALL)
_ITEM = regex(r"(?:\A|,)((?:[^\\,]|\\.)*)", re.DOTALL)
_TWO_VALUES = regex(r"(?<!\\)(?:\\\\)+,")
"""A comma behind an escaped backslash: Argo CD takes it for an escaped comma, and Helm does not."""
_INTEGER = regex(r"0|[1-9][0-9]{0,18}|[+-][0-9]{1,30}")
_INT64 = range(-(2**63), 2**63)
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

Step = str | int
"""A key of a map, or the position in a list."""


def typed(text: str) -> str | int | bool | None:
    """Read a text as --set does: integers, true, false and null are not texts."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text) and int(text) in _INT64:
        return int(text)
    return text


def parsed(value: object, *, as_text: bool) -> Any:
    """Read the value of a parameter of Argo CD; a text only, with --set-string.

    A list is in braces, and a backslash takes the meaning from a comma or a brace. Argo CD writes
    the backslash before other commas. Unknown for what Helm rejects.
    Source: argo-cd util/helm/cmd.go (cleanSetParameters).
    """
    if not isinstance(value, str) or is_unresolved(value):
        return value
    read = _unescaped if as_text else lambda text: typed(_unescaped(text))
    if value.startswith("{"):
        listed = _LIST.fullmatch(value)
        return [read(item) for item in _ITEM.findall(listed[1])] if listed else _not_read(value)
    return _not_read(value) if _TWO_VALUES.search(value) else read(value)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _not_read(value: str) -> Unknown:
    return Unknown(f"the value {display(value)} is not read")


def steps_of(name: object) -> tuple[Step, ...] | Unknown:
    """Read the name of a value, as keys and positions."""
    if not isinstance(name, str) or is_unresolved(name) or not _NAME.fullmatch(name):
        return unknown_in(name) or Unknown(f"the name of a value, {display(name)}, is not read")
    return tuple(
        int(step[1:-1]) if step.startswith("[") else _unescaped(step)
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
        if rest and step in below and below[step] is None:
            return Unknown(f"{step} is null, and a value in it is set")
        below[step] = with_value(below.get(step), rest, value)
        return below
    return _with_item(values, step, rest, value)


def _with_item(values: object, step: int, rest: Sequence[Step], value: object) -> Any:
    if values is not None and not isinstance(values, list | tuple):
        return Unknown(f"[{step}] is set in a value that is no list")
    if value == "" and rest and isinstance(rest[-1], str):
        return Unknown(f"Helm may leave out an empty value in [{step}]")
    items: list[Any] = list(values or ())
    items += [None] * (step + 1 - len(items))
    if rest and isinstance(rest[0], str) and not is_map(items[step]):
        items[step] = unknown_in(items[step])  # Helm puts a map in the place of what is no map
    items[step] = with_value(items[step], rest, value)
    return items
