"""Texts as they are shown: nothing in them steers a terminal, a reader's eye or a pipeline.

What is checked may be written by a stranger, and what is said of it quotes it: into terminals, logs
of pipelines and comments.
"""

import re

_COMMAND = re.compile(r"##(?=\w{0,20}\[)")
"""What begins a command in a log, wherever it stands in a line: `##[error]`, `##vso[…]`.

Source: actions/runner src/Runner.Common/ActionCommand.cs: TryParse searches the whole line for
`##[`, and TryParseV2 wants `::` first, after spaces. The agent of Azure Pipelines descends from it.
"""


def visible(text: str) -> str:
    r"""Write a text as one line in which every character shows: ESC as `\x1b`, U+202E as `\u202e`.

    Escaped are control characters, line ends, what changes the direction or joins without a width,
    and every space but the plain one. `##[` and `::` at the beginning, which are commands to
    GitHub's and other pipelines, no longer are.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else escaped(char) for char in text)
    if "##" in text:
        text = _COMMAND.sub(r"#\\x23", text)
    if text.lstrip().startswith("::"):
        text = text.replace(":", r"\x3a", 1)
    return text


def visible_lines(text: str) -> str:
    """Write each line of a text so that every character shows."""
    return "\n".join(map(visible, text.split("\n")))


def escaped(char: str) -> str:
    r"""Write one character as Python does: `\x1b`, `\u202e`, `\U000e0001`."""
    code = ord(char)
    if code <= 0xFF:  # noqa: PLR2004 - what two digits write
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004 - four digits
