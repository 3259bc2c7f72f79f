"""One option of one release of an engine, as its own parser has it."""

from dataclasses import dataclass
from typing import TypeAlias

Default: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One option of one release."""

    names: tuple[str, ...]
    """Spellings in the parser's order, without the `--no-…` of a switch that has one."""
    arity: str
    """0: a switch. 1, or another number: as many words. ?: none or one. + and *: any number, at
    least one for +."""
    type: str
    """What its words are read as: text, int, float, json, bool (a word), size (an integer that may
    have a unit), or the name of what else converts them. With a ? where `None` is accepted too."""
    off: tuple[str, ...] = ()
    """Spellings that turn a switch off."""
    choices: tuple[str, ...] | None = None
    """Words that are accepted. None: any."""
    default: Default = None
    """None too where the default is computed or no plain value."""
