"""Texts inside manifests: YAML that a field holds, and numbers as Go programs write them.

Pure: a text comes in, a value or the reason why there is none goes out.
"""

from functools import lru_cache
from typing import Any

import yaml

from kthena_components.core.values.display import text_of
from kthena_components.core.values.unknown import Unknown, is_unresolved

MOST_TEXT = 200_000
"""Characters of a text that is read."""
MOST_LEVELS = 50
"""Levels of maps and lists in it."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_EXPONENT = 21
"""Digits of a whole number that is looked at; more are no number of anything."""
_SHORTEST = 6
"""Go writes a float with an exponent from this power of ten on, where it is to be as short as
possible."""


def read_yaml_text(value: object, what: str) -> Any:
    """Read a field that holds YAML as text. None and what is no text are given back as they are.

    Args:
        value: The field.
        what: Its name, for the reason.

    Returns:
        The document, or Unknown with the reason why it cannot be read. A text with aliases is not
        read: a short one may stand for a huge value.
    """
    if is_unresolved(value):
        return Unknown(f"{what} is not known yet")
    return _read(value, what) if isinstance(value, str) else value


@lru_cache(maxsize=256)
def _read(text: str, what: str) -> Any:
    if len(text) > MOST_TEXT:
        return Unknown(f"{what} has {len(text)} characters, and {MOST_TEXT} are read at most")
    try:
        reason = _too_much(text)
        if reason:
            return Unknown(f"{what} {reason}")
        return yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader, quicker where it can be
    except Exception as error:  # noqa: BLE001 - PyYAML raises all sorts for odd scalars
        return Unknown(f"{what} is not YAML that can be read ({type(error).__name__})")


def _too_much(text: str) -> str:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent):
            return "uses aliases, which are not followed here"
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
    """Write a float with as few digits as lead back to it."""
    tries = (f"{number:.{places}e}" for places in range(17))
    return next((text for text in tries if float(text) == number), f"{number:.16e}")
