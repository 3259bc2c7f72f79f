"""Formats values for messages."""

from collections.abc import Iterable, Mapping

from kthena_components.core.naming import DNS_LABEL
from kthena_components.core.values.unknown import (
    OUTPUT_OPEN,
    UNKNOWN_WORD,
    is_unresolved,
    show_tokens,
)

SECRET = "[secret]"  # noqa: S105 - a placeholder, as in Pulumi's own messages
"""Stands for a secret value in messages, and in objects that are checked again for them."""


_LONG_INT = 10_000
"""Bits of the largest integer that Python converts to decimal by default, rounded down."""


def text_of(value: object) -> str:
    """Write a scalar of a command line as Kubernetes would; policies see 8 as 8.0."""
    if is_unresolved(value) and OUTPUT_OPEN not in str(value):
        return UNKNOWN_WORD
    if isinstance(value, str):
        return value
    if isinstance(value, int) and value.bit_length() > _LONG_INT:
        return hex(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


_SHOWN, _BITS, INT32 = 40, 64, 2**31


def display(value: object, longest: int = _SHOWN) -> str:
    """Format a value for a message, in one line of limited length."""
    match value:
        case str():
            known = show_tokens(value)
            shown = repr(known if len(known) <= longest else f"{known[:longest]}…")
        case None:
            shown = "null"
        case bool():
            shown = str(value).lower()
        case int() if value.bit_length() > _BITS:
            shown = f"a number of {value.bit_length()} bits"
        case int() | float():
            shown = str(value)
        case Mapping() | list() | tuple():
            shown = "a map" if isinstance(value, Mapping) else "a list"
        case _:
            shown = f"a value of type {type(value).__name__}"
    return shown


def key_text(key: object) -> str:
    """Format a map's key for a path."""
    if key == "":
        return "''"
    return key if isinstance(key, str) and len(key) <= DNS_LABEL else display(key).strip("'")


def listing(words: Iterable[str], last: str = "and") -> str:
    """Join words: `a, b and c`."""
    *before, end = words
    return f"{', '.join(before)} {last} {end}" if before else end


def sentence(text: str) -> str:
    """End a text with a full stop, unless it has an end."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
