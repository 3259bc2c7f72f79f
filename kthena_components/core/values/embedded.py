"""Texts inside manifests: YAML in a field, numbers as Go writes them, and values of `helm --set`.

Pure: a text is converted to a value, or to the reason why it is invalid.
Source of `helm --set`: helm/helm v3 pkg/strvals/parser.go.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from kthena_components.core.values.display import display, text_of
from kthena_components.core.values.read import is_map, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown, is_unresolved

MOST_TEXT = 200_000
"""Maximum length of a text that is read."""
MOST_LEVELS = 50
"""Maximum depth of maps and lists in it."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_EXPONENT = 21
"""Maximum digits of an integer that is read."""
_SHORTEST = 6
"""Go's shortest float format uses an exponent from this power of ten on."""


def read_yaml_text(value: object, what: str) -> Any:
    """Read a field with YAML as text. None and values that are not text are returned unchanged.

    Args:
        value: The field.
        what: Its name, for the reason.

    Returns:
        The document, or Unknown with the reason why it cannot be read. A text with aliases is not
        read: a short one may expand to a huge value.
    """
    if is_unresolved(value):
        return Unknown(f"{what} is not known yet")
    return _read(value, what) if isinstance(value, str) else value


@lru_cache(maxsize=256)
def _read(text: str, what: str) -> Any:
    if len(text) > MOST_TEXT:
        return Unknown(f"{what} has {len(text)} characters, and at most {MOST_TEXT} are read")
    try:
        reason = _too_much(text)
        if reason:
            return Unknown(f"{what} {reason}")
        return yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader, quicker where it can be
    except Exception as error:  # noqa: BLE001 - PyYAML raises all sorts for odd scalars
        return Unknown(f"{what} is not valid YAML ({type(error).__name__})")


def _too_much(text: str) -> str:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            return "uses aliases, which are not resolved here"
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MOST_LEVELS:
            return f"is nested more deeply than {MOST_LEVELS} levels"
    return ""


def go_text(value: object) -> str:
    """Write a scalar of a manifest as Go's `%v` does, which Helm and Kthena use.

    JSON's numbers are floats there, so 1048576 becomes 1.048576e+06.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "<nil>"
    if isinstance(value, int | float) and abs(value) < 10**_EXPONENT:
        number = float(value)
        if number.is_integer() and abs(number) >= 10**_SHORTEST:
            return _with_exponent(number)
    return text_of(value)


def _with_exponent(number: float) -> str:
    """Write a float with the fewest digits that identify it."""
    tries = (f"{number:.{places}e}" for places in range(17))
    return next((text for text in tries if float(text) == number), f"{number:.16e}")


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
