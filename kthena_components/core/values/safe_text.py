"""Makes texts safe to show: nothing in them controls a terminal, hides text or steers a pipeline.

Checked files may be untrusted, and messages quote them in terminals, pipeline logs and comments.
Generated files quote them, too: a comment there is `visible`, so it stays one line.
"""

import shlex
from collections.abc import Callable, Mapping

from kthena_components.core.values.regex import regex

COMMAND = regex(r"##(?=\w{0,20}\[)")
"""Start of a command in a log, anywhere in a line: `##[error]`, `##vso[…]`.

Source: actions/runner src/Runner.Common/ActionCommand.cs: TryParse searches the whole line for
`##[`, and TryParseV2 requires `::` first, after spaces. The agent of Azure Pipelines descends from
it.
"""

_LAYOUT = dict.fromkeys(map(ord, "\n\t"))
_SURROGATE = regex(r"[\ud800-\udfff]")


def visible(text: str) -> str:
    r"""Write a text as one line in which every character shows: ESC as `\x1b`, U+202E as `\u202e`.

    Escapes control characters, line ends, characters that change the direction or have no width,
    and every space except the plain one. Also breaks `##[` and a leading `::`, which are commands
    to GitHub's and other pipelines.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else escaped(char) for char in text)
    if "##" in text:
        text = COMMAND.sub(r"#\\x23", text)
    if text.lstrip().startswith("::"):
        text = text.replace(":", r"\x3a", 1)
    return text


def printable(text: str, escape: Callable[[str], str]) -> str:
    """Escape what does not show in a generated text, except its line ends and tabs.

    Args:
        text: Generated code or YAML, in which only quoted texts contain such characters.
        escape: Writes one character as the language does.
    """
    if text.translate(_LAYOUT).isprintable():
        return text
    shown = (char if char.isprintable() or char in "\n\t" else escape(char) for char in text)
    return "".join(shown)


def visible_lines(text: str) -> str:
    """Write each line of a text so that every character shows."""
    return "\n".join(map(visible, text.split("\n")))


def shell_word(text: str) -> str:
    r"""Quote one word of a command that a message suggests, so that a shell runs nothing else.

    A word with a character that messages escape is written as Bash and Zsh read it: `$'a\x0ab'`.
    """
    if visible(text) == text:
        return shlex.quote(text)
    told = (
        chr(byte) if chr(byte).isascii() and chr(byte).isalnum() else f"\\x{byte:02x}"
        for byte in text.encode(errors="replace")
    )
    return f"$'{''.join(told)}'"


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
    """Return whether a text contains a string in the format of Hugging Face tokens."""
    return isinstance(value, str) and "hf_" in value and _TOKEN.search(value) is not None
