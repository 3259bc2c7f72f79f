"""Fields that a shell makes of a word: splitting, braces, patterns, and names of files.

Brace expansion, `{a,b}`, and patterns of a shell, `*`, `?` and `[…]`.

Source: bash's manual, 3.5.1; braces.c.

Python's fnmatch does the matching: its expressions do not run away.

Parts of a word, and the fields that they make: splitting, and names of files.

Source: POSIX.1-2024, Shell Command Language, 2.6.5 and 2.6.6.
"""

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from enum import Enum
from functools import lru_cache

from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import Shell
from kthena_components.core.engines.bash.shell_state import BLANKS, Many
from kthena_components.core.engines.bash.syntax import Parameter, Piece, Text, Word
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import SECRET
from kthena_components.core.values.regex import regex

_MOST_WORDS = 1000
_MOST_BRACES = 100
_RANGE = regex(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.(-?[0-9]{1,9}))?")
_LETTERS = regex(r"([A-Za-z])\.\.([A-Za-z])(?:\.\.(-?[0-9]{1,9}))?")
_PADDED = regex(r"-?0[0-9]")

_HIDDEN = regex(r'"[^"]*\{[^"]*(?:,|\.\.)[^"]*\}')

Token = str | Piece
"""One character that may be a brace or a comma, or anything else."""


def has_braces(word: Word) -> bool:
    """Return quickly whether a word may have a brace expansion."""
    return any(isinstance(piece, Text) and not piece.quoted and "{" in piece.text for piece in word)


def hides_braces(word: Word) -> bool:
    """Return whether quotes inside of quotes hold braces: bash may take them for unquoted."""
    return any(
        isinstance(piece, Parameter) and piece.quoted and _HIDDEN.search(piece.written) is not None
        for piece in word
    )


def expand_braces(word: Word) -> list[Word]:
    """Return the words that one becomes."""
    tokens: list[Token] = []
    if sum(piece.text.count("{") for piece in word if isinstance(piece, Text)) > _MOST_BRACES:
        raise BeyondError(f"a word of its script has more than {_MOST_BRACES} braces")
    for piece in word:
        plain = isinstance(piece, Text) and not piece.quoted
        tokens += piece.text if plain and isinstance(piece, Text) else [piece]
    return [_joined(made) for made in _expand(tokens)]


def _joined(tokens: Sequence[Token]) -> Word:
    """Join neighbouring characters to unquoted strings, around the tokens that are pieces."""
    pieces: list[Piece] = []
    text = ""
    for token in tokens:
        if isinstance(token, str):
            text += token
            continue
        if text:
            pieces.append(Text(text, quoted=False))
        pieces.append(token)
        text = ""
    return (*pieces, Text(text, quoted=False)) if text else tuple(pieces)


def _expand(tokens: Sequence[Token]) -> list[list[Token]]:
    """Expand the braces of a word, the first outermost: one list of tokens for each result."""
    start = 0
    while start < len(tokens):
        found = _alternatives(tokens, start) if tokens[start] == "{" else None
        if found is not None:
            close, alternatives = found
            heads = [[*tokens[:start], *one] for one in alternatives]
            tails = _expand(tokens[close + 1 :])
            if len(heads) * len(tails) > _MOST_WORDS:
                raise BeyondError(f"its braces expand to more than {_MOST_WORDS} words")
            return [[*head, *tail] for head in heads for tail in tails]
        start += 1
    return [list(tokens)]


def _alternatives(tokens: Sequence[Token], start: int) -> tuple[int, list[list[Token]]] | None:
    """Return where a brace closes and what it stands for; None if it stands for itself."""
    depth, cuts = 0, [start]
    for at in range(start, len(tokens)):
        char = tokens[at]
        if char == "{":
            depth += 1
        elif char == "," and depth == 1:
            cuts.append(at)
        elif char == "}":
            depth -= 1
            if not depth:
                break
    else:
        return None
    if len(cuts) > 1:
        parts = zip(cuts, [*cuts[1:], at], strict=True)
        return at, [made for a, b in parts for made in _expand(tokens[a + 1 : b])]
    inside = tokens[start + 1 : at]
    if not all(isinstance(token, str) for token in inside):
        return None
    made = list(_sequence("".join(map(str, inside))))
    return (at, [list(one) for one in made]) if made else None


def _sequence(inside: str) -> Iterator[str]:
    """Return the members of `a..b` or `a..b..step`; none where it is not a sequence."""
    numbers, letters = _RANGE.fullmatch(inside), _LETTERS.fullmatch(inside)
    match = numbers or letters
    if match is None:
        return
    if numbers:
        first, last = int(match[1]), int(match[2])
    else:
        first, last = ord(match[1]), ord(match[2])
    step = abs(int(match[3] or 1)) or 1
    if abs(last - first) // step >= _MOST_WORDS:
        raise BeyondError(f"its braces expand to more than {_MOST_WORDS} words")
    padded = numbers and any(_PADDED.match(end) for end in match.groups()[:2])
    width = max(len(match[1]), len(match[2])) if padded else 0
    for value in range(first, last + 1, step) if first <= last else range(first, last - 1, -step):
        yield f"{value:0{width}d}" if numbers else chr(value)


_LONGEST = 200
_SPECIAL = regex(r"([\\*?\[\](])")
_EXTENDED = regex(r"[?*+@!]\(")
_CONTROLS = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = regex(r"\\([abeEfnrtv\\'\"?])")
_PART = regex(r"\\(.)|\[([!^]?)([^\\\[\]/!^-][^\\\[\]/]*)\]|([*?])|([^\\*?\[])", re.DOTALL)


def escape(text: str) -> str:
    """Write a quoted string as a part of a pattern."""
    return _SPECIAL.sub(r"\\\1", text)


_ADDRESS = regex(r"\[[0-9a-fA-F:.]*:[0-9a-fA-F:.]*\]:[0-9]{1,5}")
"""An address of IPv6 with its port."""


def has_glob(text: str) -> bool:
    """Return whether a text may stand for names of files. `[secret]` stands for a hidden value."""
    rest = text.replace(SECRET, "")
    return "*" in rest or "?" in rest or ("[" in rest and "]" in rest)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """Return the expression of a pattern; None if it has a form that is not read."""
    if len(pattern) > _LONGEST or not pattern.isascii() or _EXTENDED.search(pattern):
        return None
    written, at = "", 0
    while at < len(pattern):
        part = _PART.match(pattern, at)
        if part is None:
            return None
        at = part.end()
        quoted, negated, inside, wild, plain = part.groups()
        if inside:
            # Ranges of letters follow the locale, and classes have names.
            if re.search(r"[A-Za-z]-|\[:", inside):
                return None
            written += f"[{'!' if negated else ''}{inside}]"
        else:
            written += wild or f"[{quoted or plain}]".replace("[!]", "!").replace("[^]", "^")
    try:
        return re.compile(fnmatch.translate(written))
    except re.error:
        return None


def _expression(text: str, pattern: str) -> re.Pattern[str] | None:
    """Return the regular expression of a shell pattern.

    None: the pattern is not supported, or its matches in this text depend on the locale.
    """
    by_character = not text.isascii() and ("?" in pattern or "[" in pattern)
    return None if by_character else compiled(pattern)


def matches(text: str, pattern: str) -> bool | None:
    """Return whether a whole string fits a pattern; None if that is not known."""
    expression = _expression(text, pattern)
    return None if expression is None else expression.match(text) is not None


def trimmed(text: str, pattern: str, operator: str) -> str | None:
    """Return a string without the part that `#`, `##`, `%` or `%%` takes off."""
    expression = _expression(text, pattern)
    if expression is None or len(text) > _LONGEST:
        return None
    cuts = range(len(text) + 1)
    front = operator.startswith("#")
    for cut in cuts if operator in {"#", "%%"} else reversed(cuts):
        if expression.match(text[:cut] if front else text[cut:]):
            return text[cut:] if front else text[:cut]
    return text


def unescaped(text: str) -> str | None:
    """Replace the escapes of `$'…'` that are a letter or a sign; None if there are others.

    Source: bash's lib/sh/strtrans.c (ansicstr).
    """
    others = _ESCAPE.sub("", text)
    return None if "\\" in others else _ESCAPE.sub(lambda match: _CONTROLS[match[1]], text)


def is_plain(text: str) -> bool:
    """Return whether a string has no escapes but those for a line, a tab and a backslash."""
    return re.fullmatch(r"(?:[^\\]|\\[nt\\])*", text) is not None


def plain_text(word: Word) -> str | None:
    """Return the text of a word that stands for itself; None for any other."""
    piece = word[0] if len(word) == 1 else None
    if not isinstance(piece, Text) or piece.bash:
        return None
    text = piece.text
    special = "~" in text or "{" in text or has_glob(text) or has_gap(text)
    return text if piece.quoted or not special else None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a word."""

    text: str
    quoted: bool
    splits: bool = False
    """Whether its blanks end a field: not those of a literal."""


class Next(Enum):
    """The boundaries of words in `"$@"`, between its parameters."""

    NEXT = "next"
    """Between two of them: the next field begins."""
    NONE = "none"
    """There are none: no field, but shells differ in what becomes of empty strings beside it."""


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
        """Add a string outside quotes."""
        self._many = self._many or has_gap(text)
        self._globs = self._globs or has_glob(text)
        self._add(text)

    def _split(self, text: str, separator: re.Pattern[str] | None) -> None:
        """Split a string at IFS; a separator other than blanks also ends an empty field."""
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
            self._add(
                self.shell.gap('"$@"', "shells differ in what an empty string beside it makes")
            )

    def _close(self, *, force: bool) -> None:
        """End a field; force makes one of nothing."""
        if self._nothing:
            self._beside_nothing()
        if self._parts is None and not force:
            return
        made, many, globs = "".join(self._parts or ()), self._many, self._globs
        self._parts, self._many, self._globs = None, False, False
        # No file is called so.
        other = made.startswith(("-", "{")) or "=" in made or _ADDRESS.fullmatch(made) is not None
        if globs and has_glob(made) and not other:
            unset = self.shell.state.get("-f")
            if unset is not True:
                made, many = self.shell.gap(made, "the shell looks for files of such names"), True
        self.found.append(Many(made) if many else made)
