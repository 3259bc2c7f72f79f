r"""Searches texts of YAML and JSON for words that may be written in another way than they are read.

A parser reads `"\x76llm"` as `vllm`, and `!!binary dmxsbQ==`, too. So a search in the text alone
misses words. Other ways to write a text change no word: folded lines and aliases keep it whole.
Source: yaml.org/spec/1.1, 5.6 (escapes) and 8.1 (tags); RFC 8259, 7.
"""

import re
from collections.abc import Callable

from kthena_components.core.values.regex import regex

_BREAK = r"\r\n|[\r\n\x85\u2028\u2029]"
_HIDING = regex(rf"\\(?:[xuU/]|{_BREAK})")
"""Escapes that stand for a character of a word, or for nothing. The others stand for blanks."""
_ESCAPE = regex(
    rf"\\(?:x([0-9A-Fa-f]{{2}})|u([0-9A-Fa-f]{{4}})|U([0-9A-Fa-f]{{8}})|(?:{_BREAK})[ \t]*|(.))",
    re.DOTALL,
)
_BLANKS = frozenset("0abtnvfreNLP_ \t")
_TAG = regex(r"%TAG|![^\s!]*(?:binary|%[0-9A-Fa-f]{2})")
"""A tag that may be !!binary. Percent signs and %TAG write its name in another way."""
_QUOTE, _BACKSLASH, _MARK = '"', "\\", "!"
_MOST = 0x10FFFF
_LEVELS = 3
"""A text may hold YAML, such as the values of a chart, in which a text may hold YAML again."""


def may_have(text: str, test: Callable[[str], bool]) -> bool:
    """Return whether what a parser reads from a text may pass a test that looks for words.

    It may be True where the parser reads no such word, and is never False where it does.

    Args:
        text: The text of a YAML or JSON file, or of a value that may be one.
        test: Returns whether a text has a word. If a part of a text has it, the text must have it.
    """
    if test(text):
        return True
    if _MARK in text and _TAG.search(text) is not None:
        return True
    for _ in range(_LEVELS):
        if _BACKSLASH not in text or _QUOTE not in text or _HIDING.search(text) is None:
            return False
        text = unescaped(text)
        if test(text):
            return True
    return False


def unescaped(text: str) -> str:
    """Replace the escapes of quoted texts everywhere.

    They are read in pairs from the left. No pair spans the quote at the start of a text, so those
    inside are read as a parser does.
    """
    return _ESCAPE.sub(_replaced, text)


def _replaced(found: re.Match[str]) -> str:
    digits = found[1] or found[2] or found[3]
    if digits:
        code = int(digits, 16)
        return chr(code) if code <= _MOST else ""
    other = found[4]
    return "" if other is None else " " if other in _BLANKS else other
