"""Parts of a word, and the fields that they make: splitting, and names of files.

Source: POSIX.1-2024, Shell Command Language, 2.6.5 and 2.6.6.
"""

import re
from collections.abc import Iterable
from dataclasses import field
from enum import Enum
from functools import lru_cache

from kthena_components.core.engines.bash.braces_and_patterns import has_glob
from kthena_components.core.engines.bash.shell import Shell
from kthena_components.core.engines.bash.shell_state import BLANKS, Many
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a word."""

    text: str
    quoted: bool
    splits: bool = False
    """Whether its blanks end a field: not those of a literal."""


class Next(Enum):
    """What `"$@"` makes besides its parameters."""

    NEXT = "next"
    """Between two of them: the next field begins."""
    NONE = "none"
    """There are none: no field, but shells differ in what becomes of empty texts beside it."""


NEXT, NONE = Next.NEXT, Next.NONE
Chunks = Chunk | Next


@lru_cache(maxsize=32)
def separators(written: str) -> re.Pattern[str] | None:
    """Return what separates fields, for a value of IFS; None if nothing does."""
    blank = re.escape("".join(char for char in written if char in BLANKS))
    other = re.escape("".join(char for char in written if char not in BLANKS))
    blanks = f"[{blank}]" if blank else ""
    if other:
        around = f"{blanks}*" if blank else ""
        return re.compile(f"{around}[{other}]{around}" + (f"|{blanks}+" if blank else ""))
    return re.compile(f"{blanks}+") if blank else None


@dataclass(slots=True)
class Fields:
    """Makes fields of the parts of one word."""

    shell: Shell
    found: list[str] = field(default_factory=list)
    _parts: list[str] | None = None
    _many: bool = False
    _globs: bool = False
    _nothing: int = 0
    _follows: bool = False
    """Whether a field began behind another parameter of `"$@"`."""

    def take(self, chunks: Iterable[Chunks]) -> list[str]:
        """Return the fields of all parts."""
        ifs = self.shell.state.separators
        for chunk in chunks:
            if isinstance(chunk, Next):
                self._next(chunk)
            elif chunk.quoted:
                self._add(chunk.text)
            elif not chunk.splits:
                self._open(chunk.text)
            elif ifs is not None:
                self._split(chunk.text, separators(ifs))
            elif chunk.text:
                self._many = True
                self._add(self.shell.gap(chunk.text, "the value of IFS is unknown"))
        self._close(force=False)
        return self.found

    def _next(self, mark: Next) -> None:
        if mark is NONE:
            self._nothing += 1
        elif self._many and self._parts and len(self._parts) > 1:
            return  # A parameter that may be nothing leaves the text before it to the next one.
        else:
            self._close(force=False)
            self._follows = True

    def _add(self, text: str) -> None:
        if self._follows and self._many and self._parts and self.found:
            # It may be nothing, and the text behind it then belongs to the parameter before.
            because = "a parameter behind it may be nothing"
            self.found[-1] = Many(self.shell.gap(self.found[-1], because))
        if self._parts is None:
            self._parts = []
        self._parts.append(text)

    def _open(self, text: str) -> None:
        """Add a text outside quotes."""
        self._many = self._many or has_gap(text)
        self._globs = self._globs or has_glob(text)
        self._add(text)

    def _split(self, text: str, separator: re.Pattern[str] | None) -> None:
        at = 0
        for match in separator.finditer(text) if separator else ():
            if match.start() > at:
                self._open(text[at : match.start()])
            self._close(force=bool(match[0].strip(BLANKS)))
            at = match.end()
        if at < len(text):
            self._open(text[at:])

    def _beside_nothing(self) -> None:
        """Doubt a field without text beside a `"$@"` that makes none."""
        several = self._nothing > 1 and not self.shell.bash
        parts = self._parts
        empty = several if parts is None else all(not part or has_gap(part) for part in parts)
        self._nothing = 0
        if empty:
            self._many = True
            self._add(self.shell.gap('"$@"', "shells differ in what an empty text beside it makes"))

    def _close(self, *, force: bool) -> None:
        """End a field; force makes one of nothing."""
        if self._nothing:
            self._beside_nothing()
        if self._parts is None and not force:
            return
        made, many, globs = "".join(self._parts or ()), self._many, self._globs
        self._parts, self._many, self._globs = None, False, False
        # No file is called so.
        other = made.startswith(("-", "{")) or "=" in made
        if globs and has_glob(made) and not other:
            unset = self.shell.state.get("-f")
            if unset is not True:
                made, many = self.shell.gap(made, "the shell looks for files of such names"), True
        self.found.append(Many(made) if many else made)
