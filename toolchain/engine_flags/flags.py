"""One option of one release of an engine, as its own parser defines it."""

from dataclasses import dataclass
from typing import TypeAlias

Default: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One option of one release."""

    names: tuple[str, ...]
    """Spellings in the parser's order, without the `--no-…` of a switch."""
    arity: str
    """Number of words: 0 for a switch, or 1 or more. ?: none or one. *: any number. +: one or
    more."""
    type: str
    """Type of the words: text, int, float, json, object (of JSON), bool (a word), size (an integer
    with an optional unit), or the name of another converter. Followed by ? if `None` is accepted,
    too."""
    off: tuple[str, ...] = ()
    """Spellings that disable a switch."""
    choices: tuple[str, ...] | None = None
    """Accepted words. None: any."""
    default: Default = None
    """Also None if the default is computed or is not a plain value."""
