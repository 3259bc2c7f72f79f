"""Read an engine's arguments: every flag to its value, and everything that is wrong with them.

What a field means for the engine is in that engine's module. Nothing here raises, whatever the
words are.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from kthena_components.core.engines.facts import CommandFacts, Problem
from kthena_components.core.engines.options import (
    Dialect,
    Kind,
    Meaning,
    Option,
    probably,
    understand,
)
from kthena_components.core.engines.values import Refused, convert
from kthena_components.core.engines.words import Scope, has_gap
from kthena_components.core.known import Unknown

_NEGATIVE = re.compile(r"-[0-9]+|-[0-9]*\.[0-9]+")
_PIECES = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+")
_LATER_FLAG = re.compile(r"\s--?[A-Za-z]")
_SWITCH_LIKE = ("--no-", "--enable-", "--disable-")
MAX_PROBLEMS = 50
"""Problems that one command line can have. Nobody would read the rest."""
_MAX_LISTED = 6


@dataclass(slots=True)
class Reading:
    """The arguments of one engine command."""

    dialect: Dialect
    scope: Scope
    values: dict[str, Any] = field(default_factory=dict)
    """Field to value: int, float, str, bool, a tuple of str, None or Unknown."""
    where: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    bare: list[str] = field(default_factory=list)
    """Words that belong to no flag."""
    flags: list[tuple[str, Option]] = field(default_factory=list)
    """Each flag that states something, as written."""
    hidden: Unknown | None = None
    """Why a value that is not stated may be stated all the same, out of sight."""
    _doubts: dict[str, Unknown] = field(default_factory=dict)
    _given: dict[str, dict[str, str]] = field(default_factory=dict)
    _guesses: int = 0

    def read(self, words: Sequence[str]) -> "Reading":
        """Read all arguments."""
        self._items(words)
        for name, given in self._given.items():
            self._repeated(name, list(given.values()))
        return self

    def _items(self, items: Sequence[str]) -> None:
        at = 0
        while at < len(items):
            word = items[at]
            at += 1
            if word == "--":
                self.bare += items[at:]
                break
            if self._is_line(word):
                self._line(word)
            elif is_flag(word):
                at = self._flag(word, items, at)
            else:
                self.bare.append(word)

    def _unquoted(piece: str) -> str:
    for mark in "'\"":
        if len(piece) > 1 and piece[0] == piece[-1] == mark:
            return piece[1:-1]
    return piece


def _listed(names: Sequence[str], joint: str = " or ") -> str:
    """List names for a message: `a, b or c`."""
    if len(names) > _MAX_LISTED:
        return ", ".join([*names[:_MAX_LISTED], f"… {len(names) - _MAX_LISTED} more"])
    return joint.join(filter(None, (", ".join(names[:-1]), names[-1])))
