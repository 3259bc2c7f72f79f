"""Lets a finding on a page wrap: it is one long line, and its remedy comes last."""

import re
from pathlib import Path

WRAPPED = "``` { .text .wrap }"
"""The fence of a block whose lines wrap: site.css has the class."""
_BLOCK = re.compile(r"^```(?P<language>.*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)
_FINDING = re.compile(r"^.{80,} \[[a-z0-9-]+\]$", re.MULTILINE)
_TABLE = re.compile(r"^ *-{2,}  +-{2,}", re.MULTILINE)


def wrap_findings(pages: Path) -> None:
    """Change the blocks with findings in all pages of a folder."""
    for page in pages.rglob("*.md"):
        page.write_text(_BLOCK.sub(_wrapped, page.read_text()))


def _wrapped(block: re.Match[str]) -> str:
    text = block["text"]
    if block["language"] not in {"", "text"} or not _FINDING.search(text) or _TABLE.search(text):
        return block[0]
    return f"{WRAPPED}\n{text}```"
