r"""Texts inside manifests: YAML in a field, Go's numbers, and words written with escapes.

Pure: a text is converted to a value, or to the reason why it is invalid.

A parser reads `"\x76llm"` as `vllm`, and `!!binary dmxsbQ==`, too. So a search in the text alone
misses words. Other ways to write a text change no word: folded lines and aliases keep it whole.
Source: yaml.org/spec/1.1, 5.6 (escapes) and 8.1 (tags); RFC 8259, 7.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import yaml

from kthena_components.core.values.display import text_of
from kthena_components.core.values.regex import regex
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
