"""Texts inside manifests: YAML in a field, and numbers as Go programs write them.

Pure: a text is converted to a value, or to the reason why it is invalid.
"""

from functools import lru_cache
from typing import Any

import yaml

from kthena_components.core.values.display import text_of
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
