"""Formats values for messages, and makes strings safe to show.

In a string that is safe to show, nothing controls a terminal, hides text or steers a pipeline.

Checked files may be untrusted, and messages quote them in terminals, pipeline logs and comments.
Generated files quote them, too: a comment there is `visible`, so it stays one line.
"""

import json
import re
import shlex
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping

from kthena_components.core.naming import DNS_LABEL
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    OUTPUT_OPEN,
    PREVIEW_LENGTH,
    UNKNOWN_WORD,
    is_unresolved,
    show_tokens,
)

COMMAND = regex(r"##(?=\w{0,20}\[)")
"""Start of a command in a log, anywhere in a line: `##[error]`, `##vso[…]`.

Source: actions/runner src/Runner.Common/ActionCommand.cs: TryParse searches the whole line for
`##[`, and TryParseV2 requires `::` first, after spaces. The agent of Azure Pipelines descends from
it.
"""

_HIDDEN = regex(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
    "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
r"""Characters that `str.isprintable` accepts, and that show nothing or turn the line around.

The first row is invisible. The second is written from right to left: after a name in it, the
numbers of a row stand on the wrong side.

Source: Unicode 14.0, DerivedCoreProperties.txt (Default_Ignorable_Code_Point) with U+2800, whose
pattern is empty; DerivedBidiClass.txt (the blocks whose characters are R or AL).
"""
_MOST_MARKS = 3
"""Combining marks on one letter. More of them cover the rows above and below."""

MARKS = frozenset({"Mn", "Me"})
"""Unicode's categories of what is drawn on the character before it."""

_LAYOUT = dict.fromkeys(map(ord, "\n\t"))
_MARK = regex("([\ue000-\ue003])")
_NOT_PLAIN = regex(r"[^\n -~]")
"""A character that may need an escape: neither a line end nor printable ASCII."""
_SURROGATE = regex(r"[\ud800-\udfff]")
SECRET = "[secret]"  # noqa: S105 - a placeholder, as in Pulumi's own messages
"""Stands for a secret value in messages, and in objects that are checked again for them."""


_LONG_INT = 10_000
"""Bits of the largest integer that Python converts to decimal by default, rounded down."""


def visible(text: str) -> str:
    r"""Write a text as one line in which every character shows: ESC as `\x1b`, U+202E as `\u202e`.

    Escapes control characters, line ends, characters that change the direction or have no width,
    letters that are written from right to left, combining marks without a letter, and every space
    except the plain one. Also breaks `##[` and a leading `::`, which are commands to GitHub's and
    other pipelines.
    """
    if not (text.isascii() and text.isprintable()):
        text = "".join(_shown(text))
    if "##" in text:
        text = COMMAND.sub(r"#\\x23", text)
    if text.lstrip().startswith("::"):
        text = text.replace(":", r"\x3a", 1)
    return text


def visible_around_marks(text: str) -> str:
    """Make a string visible, but keep the marks around values that come later."""
    if text.isascii():
        return visible(text)
    return "".join(part if _MARK.match(part) else visible(part) for part in _MARK.split(text))


def _shown(text: str) -> Iterator[str]:
    """Write each character, or its escape. A combining mark needs a letter or number before it."""
    marks = _MOST_MARKS
    for char in text:
        kind = unicodedata.category(char)
        is_mark = kind in MARKS
        shows = _has_place(char) and not (is_mark and marks >= _MOST_MARKS)
        yield char if shows else escaped(char)
        marks = marks + 1 if is_mark else 0 if kind[0] in "LN" else _MOST_MARKS


def _has_place(char: str) -> bool:
    return char.isprintable() and not _HIDDEN.match(char)


def visible_json(value: object, indent: int | None = None) -> str:
    r"""Write JSON with escapes for invisible characters, such as `\u202e`, and for `##vso[`."""
    text = COMMAND.sub(r"#\\u0023", json.dumps(value, ensure_ascii=False, indent=indent))
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    # Not each character: a report names all rules, in half a million characters.
    return _NOT_PLAIN.sub(_json_character, text)


def _json_character(found: re.Match[str]) -> str:
    char = found[0]
    shows = _has_place(char) and unicodedata.category(char) not in MARKS
    return char if shows else json.dumps(char)[1:-1]


def printable(text: str, escape: Callable[[str], str]) -> str:
    """Escape what does not show in a generated text, except its line ends and tabs.

    Args:
        text: Generated code or YAML, in which only quoted strings contain such characters.
        escape: Writes one character as the language does.
    """
    if text.translate(_LAYOUT).isprintable():
        return text
    shown = (char if char.isprintable() or char in "\n\t" else escape(char) for char in text)
    return "".join(shown)


def visible_lines(text: str) -> str:
    """Write each line of a string so that every character shows."""
    return "\n".join(map(visible, text.split("\n")))


def shell_word(text: str) -> str:
    r"""Quote one word of a command that a message suggests, so that a shell runs nothing else.

    A word with a character that messages escape is written as Bash and Zsh read it: `$'a\x0ab'`.
    """
    if visible(text) == text:
        return shlex.quote(text)
    escaped = (
        chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\x{byte:02x}"
        for byte in text.encode(errors="replace")
    )
    return f"$'{''.join(escaped)}'"


def lone_surrogate(value: object) -> str:
    """Return the first lone surrogate in plain data; empty if there is none.

    It is half of a character: no file in UTF-8 can contain it, and neither can an object in a
    cluster. JSON and the name of a file can.
    """
    waiting = [value]
    for each in waiting:
        if isinstance(each, str):
            if not each.isascii() and (found := _SURROGATE.search(each)):
                return found[0]
        elif isinstance(each, Mapping):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list | tuple):
            waiting += each
    return ""


def escaped(char: str) -> str:
    r"""Write one character as Python does: `\x1b`, `\u202e`, `\U000e0001`."""
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 - what two digits write
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - four digits


_TOKEN = regex(r"(?<![A-Za-z0-9_])hf_(?!([A-Za-z0-9])\1{5})[A-Za-z0-9]{20,}")


def looks_like_token(value: object) -> bool:
    """Return whether a string contains a string in the format of Hugging Face tokens."""
    return isinstance(value, str) and "hf_" in value and _TOKEN.search(value) is not None


def text_of(value: object) -> str:
    """Write a scalar of a command line as Kubernetes would; policies see 8 as 8.0."""
    if type(value) is str and value.isascii() and len(value) != PREVIEW_LENGTH:  # most words
        return value
    if is_unresolved(value) and OUTPUT_OPEN not in str(value):
        return UNKNOWN_WORD
    if isinstance(value, str):
        return value
    if isinstance(value, int) and value.bit_length() > _LONG_INT:
        return hex(value)
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


_SHOWN, _BITS, INT32 = 40, 64, 2**31


def display(value: object, longest: int = _SHOWN) -> str:
    """Format a value for a message, in one line of limited length."""
    match value:
        case str():
            known = show_tokens(value)
            shown = repr(known if len(known) <= longest else f"{known[:longest]}…")
        case None:
            shown = "null"
        case bool():
            shown = str(value).lower()
        case int() if value.bit_length() > _BITS:
            shown = f"a number of {value.bit_length()} bits"
        case int() | float():
            shown = str(value)
        case Mapping() | list() | tuple():
            shown = "a map" if isinstance(value, Mapping) else "a list"
        case _:
            shown = f"a value of type {type(value).__name__}"
    return shown


def key_text(key: object) -> str:
    """Format a map's key for a path."""
    if key == "":
        return "''"
    return key if isinstance(key, str) and len(key) <= DNS_LABEL else display(key).strip("'")


def listing(words: Iterable[str], last: str = "and") -> str:
    """Join words: `a, b and c`."""
    *before, end = words
    return f"{', '.join(before)} {last} {end}" if before else end


def sentence(text: str) -> str:
    """End a string with a full stop, unless it has an end."""
    return text if text.endswith((".", "?", "!")) else f"{text}."
