"""Makes texts safe to show: nothing in them controls a terminal, hides text or steers a pipeline.

Checked files may be untrusted, and messages quote them in terminals, pipeline logs and comments.
"""

import re

_COMMAND = re.compile(r"##(?=\w{0,20}\[)")
"""Start of a command in a log, anywhere in a line: `##[error]`, `##vso[…]`.

Source: actions/runner src/Runner.Common/ActionCommand.cs: TryParse searches the whole line for
`##[`, and TryParseV2 requires `::` first, after spaces. The agent of Azure Pipelines descends from
it.
"""


def visible(text: str) -> str:
    r"""Write a text as one line in which every character shows: ESC as `\x1b`, U+202E as `\u202e`.

    Escapes control characters, line ends, characters that change the direction or have no width,
    and every space except the plain one. Also breaks `##[` and a leading `::`, which are commands
    to GitHub's and other pipelines.
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
