"""Escapes in `$'…'`, in the format of printf, and in `echo -e`.

Source: bash's lib/sh/strtrans.c (ansicstr).
"""

import re

_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})"
    r"|U([0-9A-Fa-f]{1,8})|c(.))",
    re.DOTALL,
)
_LETTERS = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_LAST = 0x10FFFF
_SURROGATES = range(0xD800, 0xE000)
_NO_CHARACTER = "\0"
_FIRST_BEYOND_ASCII = 0x80


def decode(text: str) -> str | None:
    """Replace the escapes of `$'…'`; None if one stands for a byte that is no character."""
    made = _ESCAPE.sub(_character, text)
    return None if _NO_CHARACTER in made else made


def is_plain(text: str) -> bool:
    """Return whether a text has no escapes but those for a line, a tab and a backslash."""
    return re.fullmatch(r"(?:[^\\]|\\[nt\\])*", text) is not None


def _character(match: re.Match[str]) -> str:
    letter, octal, *codes, control = match.groups()
    if letter:
        return _LETTERS[letter]
    if control:
        return chr(ord(control.upper()) & 0x1F) if control.isascii() else _NO_CHARACTER
    code = int(octal, 8) & 0xFF if octal else int(next(filter(None, codes)), 16)
    single = bool(octal or codes[0])
    beyond = code > _LAST or code in _SURROGATES or (single and code >= _FIRST_BEYOND_ASCII)
    return _NO_CHARACTER if beyond else chr(code)
