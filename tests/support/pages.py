"""The commands that README and docs show, in the order of a page, with its files and outputs.

A fenced block that begins with `$ ` shows commands, each with what it prints below it. A block with
a language is a file if the paragraph above it ends with a colon and names one: `llama.yaml`.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PROMPT = "$ "
FILE = re.compile(r"`([\w./-]+\.(?:yaml|py|ts))`")
ANY_LINES, ANYTHING = "…\n", "…"


@dataclass(frozen=True, slots=True)
class File:
    """A file that a page shows."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Step:
    """A command that a page shows."""

    line: int
    command: str
    printed: str
    """Empty: the page does not show what it prints."""


@cache
def pages() -> tuple[str, ...]:
    """List all pages for users, from the root."""
    folders = chain(ROOT.glob("docs/**/*.md"), ROOT.glob("examples/**/README.md"))
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *folders]
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found))


@cache
def items(page: str) -> tuple[File | Step, ...]:
    """List what a page shows, in its order."""
    return tuple(_items((ROOT / page).read_text()))


def block(page: str, start: str) -> str:
    """Give the only fenced block of a page that begins with a string."""
    tokens = MarkdownIt().parse((ROOT / page).read_text())
    found = [one.content for one in tokens if one.type == "fence"]
    (only,) = (text for text in found if text.startswith(start))
    return only


def steps(page: str) -> list[Step]:
    """List the commands of a page."""
    return [item for item in items(page) if isinstance(item, Step)]


def _items(text: str) -> Iterator[File | Step]:
    above = ""
    for token in MarkdownIt().parse(text):
        if token.type == "inline":
            above = token.content
        elif token.type == "fence":
            named = FILE.search(above) if above.endswith(":") else None
            if token.content.startswith(PROMPT):
                yield from _steps(token.content, (token.map or [0])[0] + 2)
            elif token.info and named:
                yield File(named[1], token.content)
            above = ""


def _steps(block: str, line: int) -> Iterator[Step]:
    for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = piece.partition("\n")
        yield Step(line, command, printed)
        line += piece.count("\n")


def agrees(printed: str, shown: str, varying: Iterable[str] = ()) -> bool:
    """Return whether a command prints what a page shows.

    A line `…` of the page stands for any lines, and what matches `varying` for its like.
    """
    kinds = [re.escape(ANY_LINES), *varying]
    pieces = re.split("|".join(f"({kind})" for kind in kinds), shown)
    width = len(kinds) + 1
    pattern = "".join(
        re.escape(piece) if at % width == 0 else r"(?:.*\n)*" if at % width == 1 else
        f"(?:{kinds[at % width - 1]})"
        for at, piece in enumerate(pieces) if piece is not None
    )  # fmt: skip
    return re.fullmatch(pattern, printed) is not None
