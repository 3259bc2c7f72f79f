"""Patterns of a shell: `*`, `?` and `[…]`, with a backslash before what is quoted.

Python's fnmatch does the matching: its expressions do not run away.
"""

import fnmatch
import re
from functools import lru_cache

from kthena_components.core.engines.bash.syntax import Text, Word
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.display import SECRET
from kthena_components.core.values.regex import regex

_LONGEST = 200
_SPECIAL = regex(r"([\\*?\[\](])")
_EXTENDED = regex(r"[?*+@!]\(")
_LETTERS = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_ESCAPE = regex(r"\\([abeEfnrtv\\'\"?])")
_PART = regex(r"\\(.)|\[([!^]?)([^\\\[\]/!^-][^\\\[\]/]*)\]|([*?])|([^\\*?\[])", re.DOTALL)


def escape(text: str) -> str:
    """Write a quoted text as a part of a pattern."""
    return _SPECIAL.sub(r"\\\1", text)


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
    """Return the expression of a pattern; None also if it depends on the locale what it fits."""
    by_character = not text.isascii() and ("?" in pattern or "[" in pattern)
    return None if by_character else compiled(pattern)


def matches(text: str, pattern: str) -> bool | None:
    """Return whether a whole text fits a pattern; None if that is not known."""
    expression = _expression(text, pattern)
    return None if expression is None else expression.match(text) is not None


def trimmed(text: str, pattern: str, operator: str) -> str | None:
    """Return a text without the part that `#`, `##`, `%` or `%%` takes off."""
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
    return None if "\\" in others else _ESCAPE.sub(lambda match: _LETTERS[match[1]], text)


def is_plain(text: str) -> bool:
    """Return whether a text has no escapes but those for a line, a tab and a backslash."""
    return re.fullmatch(r"(?:[^\\]|\\[nt\\])*", text) is not None


def plain_text(word: Word) -> str | None:
    """Return the text of a word that stands for itself; None for any other."""
    piece = word[0] if len(word) == 1 else None
    if not isinstance(piece, Text) or piece.bash:
        return None
    text = piece.text
    special = "~" in text or "{" in text or has_glob(text) or has_gap(text)
    return text if piece.quoted or not special else None
