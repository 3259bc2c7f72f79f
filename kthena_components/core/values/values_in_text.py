r"""Strings in manifests: YAML in a field, numbers, escapes, and values of `helm --set`.

Pure: a string is converted to a value, or to the reason why it is invalid.

A parser reads `"\x76llm"` as `vllm`, and `!!binary dmxsbQ==`, too. So a search in the text alone
misses words. Other ways to write a string change no word: folded lines and aliases keep it whole.
Source: yaml.org/spec/1.1, 5.6 (escapes) and 8.1 (tags); RFC 8259, 7.

Source: helm/helm v3 pkg/strvals/parser.go.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import yaml

from kthena_components.core.values.display import display, text_of
from kthena_components.core.values.read import is_map, unknown_in
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown, is_unresolved

MOST_TEXT = 200_000
"""Maximum length of a string that is read."""
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
        what: Its name, for the reason.

    Returns:
        The document, or Unknown with the reason why it cannot be read. A string with aliases is not
        read: a short one may expand to a huge value.
    """
    if is_unresolved(value):
        return Unknown(f"{what} is not known yet")
    return _read(value, what) if isinstance(value, str) else value


@lru_cache(maxsize=256)
def _read(text: str, what: str) -> Any:
    """Read YAML in a string; unknown if it is too long, too deep, or not valid."""
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
    """Say why a YAML text is not read: aliases or too many levels; empty if it is."""
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
"""A string may hold YAML, such as the values of a chart, in which a string may hold YAML again."""


def may_have(text: str, test: Callable[[str], bool]) -> bool:
    """Return whether what a parser reads from a string may pass a test that looks for words.

    It may be True where the parser reads no such word, and is never False where it does.

    Args:
        text: The text of a YAML or JSON file, or of a value that may be one.
        test: Returns whether a text has a word. If a part of a text has it, so must the text.
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
    """Replace the escapes of quoted strings everywhere.

    They are read in pairs from the left. No pair spans the quote at the start of a string, so those
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


_KEY = r"(?:[\w/-]|\\.){1,200}"
_INDEX = r"\[[0-9]{1,3}\]"
_NAME = regex(rf"{_KEY}(?:{_INDEX}){{0,9}}(?:\.{_KEY}(?:{_INDEX}){{0,9}}){{0,29}}", re.ASCII)
_STEP = regex(rf"{_KEY}|{_INDEX}", re.ASCII)
_ESCAPED = regex(r"\\(.?)", re.DOTALL)
_LIST = regex(r"\{((?:[^\\}]|\\.)*)\}", re.DOTALL)
_ITEM = regex(r"(?:\A|,)((?:[^\\,]|\\.)*)", re.DOTALL)
_TWO_VALUES = regex(r"(?<!\\)(?:\\\\)+,")
"""A comma behind an escaped backslash: Argo CD takes it for an escaped comma, and Helm does not."""
_INTEGER = regex(r"0|[1-9][0-9]{0,18}|[+-][0-9]{1,30}")
_INT64 = range(-(2**63), 2**63)
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}

Step = str | int
"""A key of a map, or the position in a list."""


def typed(text: str) -> str | int | bool | None:
    """Read a string as --set does: integers, true, false and null are not strings."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INTEGER.fullmatch(text) and int(text) in _INT64:
        return int(text)
    return text


def parsed(value: object, *, as_text: bool) -> Any:
    """Read the value of a parameter of Argo CD; a string only, with --set-string.

    A list is in braces, and a backslash takes the meaning from a comma or a brace. Argo CD writes
    the backslash before other commas. Unknown for what Helm rejects.
    Source: argo-cd util/helm/cmd.go (cleanSetParameters).
    """
    if not isinstance(value, str) or is_unresolved(value):
        return value
    read = _unescaped if as_text else lambda text: typed(_unescaped(text))
    if value.startswith("{"):
        listed = _LIST.fullmatch(value)
        return [read(item) for item in _ITEM.findall(listed[1])] if listed else _not_read(value)
    return _not_read(value) if _TWO_VALUES.search(value) else read(value)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _not_read(value: str) -> Unknown:
    return Unknown(f"the value {display(value)} is not read")


def steps_of(name: object) -> tuple[Step, ...] | Unknown:
    """Read the name of a value, as keys and positions."""
    if not isinstance(name, str) or is_unresolved(name) or not _NAME.fullmatch(name):
        return unknown_in(name) or Unknown(f"the name of a value, {display(name)}, is not read")
    return tuple(
        int(step[1:-1]) if step.startswith("[") else _unescaped(step)
        for step in _STEP.findall(name)
    )


def with_value(values: object, steps: Sequence[Step], value: object) -> Any:
    """Return values with one of them changed; Unknown if it does not fit into them."""
    if not steps:
        return value
    if gap := unknown_in(values):
        return gap
    below = _with_key if isinstance(steps[0], str) else _with_item
    return below(values, steps, value)


def merged(values: object, more: object) -> Any:
    """Return values with others over them: maps are merged, and anything else is replaced.

    Source: helm/helm v3 pkg/cli/values/options.go (mergeMaps).
    """
    if not is_map(more):
        return more
    if gap := unknown_in(values):
        return gap
    under = values if is_map(values) else {}
    return {
        **under,
        **{key: merged(under[key], each) if key in under else each for key, each in more.items()},
    }


def _with_key(values: object, steps: Sequence[Step], value: object) -> Any:
    """Set a key of a map at a path of `helm --set`; unknown where Helm would fail or drop it."""
    step, rest = steps[0], steps[1:]
    if values is not None and not is_map(values):
        return Unknown(f"{step} is set in a value that is not a map")
    below: dict[Any, Any] = dict(values or {})
    if rest and step in below and below[step] is None:
        return Unknown(f"{step} is null, and a value in it is set")
    below[step] = with_value(below.get(step), rest, value)
    return below


def _with_item(values: object, steps: Sequence[Any], value: object) -> Any:
    """Set an item of a list at a path of `helm --set`; missing items before it are null."""
    step, rest = steps[0], steps[1:]
    if values is not None and not isinstance(values, list | tuple):
        return Unknown(f"[{step}] is set in a value that is not a list")
    if value == "" and rest and isinstance(rest[-1], str):
        return Unknown(f"Helm may leave out an empty value in [{step}]")
    items: list[Any] = list(values or ())
    items += [None] * (step + 1 - len(items))
    if rest and isinstance(rest[0], str) and not is_map(items[step]):
        items[step] = unknown_in(items[step])  # Helm puts a map in the place of what is not a map
    items[step] = with_value(items[step], rest, value)
    return items
