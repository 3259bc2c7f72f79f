"""Escapes untrusted text for Markdown.

In Markdown, no part of a text is a link, a mention or a reference (`references.py`).
"""

from kthena_components.cli.review.references import APART, MARK, broken, code_and_text
from kthena_components.core.values.display import visible
from kthena_components.core.values.regex import regex

_BLOCK = regex(r"^(?=[-+=/]|\d+[.)])")
"""The beginning of a list, a heading, a horizontal rule, or a quick action of GitLab."""


def cell_text(text: str) -> str:
    """Escape a text for Markdown, also inside a table."""
    parts = code_and_text(visible(text).strip())
    parts[::2] = map(_escaped, parts[::2])
    return _BLOCK.sub(rf"{APART}\g<0>", "".join(parts))


def _escaped(text: str) -> str:
    plain = broken(text).replace("\\", "\\\\").replace("&", "&amp;")
    plain = plain.replace("<", "&lt;").replace(">", "&gt;")
    for mark in "|*_`[]~#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace(MARK, APART)
