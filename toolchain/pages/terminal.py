"""Draws docs/terminal.svg: an update and a refusal, as README shows them.

The tests of README's commands compare these blocks with the real output. `make pictures` runs it.
"""

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parents[2]
README, PICTURE = ROOT / "README.md", ROOT / "docs" / "terminal.svg"
_FONTS = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
"""Rich loads its font from the web. A picture of the documentation loads nothing."""
_WIDTH = 108
_BLOCK = re.compile(r"^```\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_RULE = re.compile(r"\[[a-z-]+\]$")


def draw() -> str:
    """Return the picture of the first blocks of README with an update and a refusal."""
    blocks = _BLOCK.findall(README.read_text(encoding="utf-8"))
    table = next(block for block in blocks if block.startswith("1 serving"))
    refusal = next(block for block in blocks if block.startswith("error: stack"))
    console = Console(
        record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    _print_command(console, "make up")
    console.print(Text(table))
    _print_command(console, "sed -i 's/pipeline: 2/pipeline: 3/' stacks/Pulumi.dev.yaml")
    _print_command(console, "make up")
    for line in refusal.splitlines():
        text = Text(line, style="red" if line.startswith("error:") else "")
        text.highlight_regex(_RULE, "bold yellow")
        console.print(text)
    console.print()  # Rich's frame cuts the last line, and with it each underscore there.
    return console.export_svg(
        title="kthena_components",
        code_format=_FONTS.sub("", CONSOLE_SVG_FORMAT),
        unique_id="terminal",
    )


def _print_command(console: Console, command: str) -> None:
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
