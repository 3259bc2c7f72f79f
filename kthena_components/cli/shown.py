"""Escapes untrusted text for JSON and Markdown.

GitHub and GitLab find mentions, references and links in the rendered Markdown. So a backslash or a
character reference does not prevent them: `&#64;team` still pings the team. A zero-width space
after the mark does.
"""

import json
import re

from kthena_components.core.values.visible import visible

_APART = "&#8203;"
_LINKS = re.compile(
    r"@(?=\S)|:(?=//)|www(?=\.)|[#!$%~&^](?=[\w\"])|GH-(?=\d)|\[(?=\w+:)"
    r"|(?<!\w)(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{4}(?=[0-9a-f]{3,36}(?!\w))",
    re.IGNORECASE,
)
"""The beginning of a link, mention or reference, followed by the rest of it.

Source: docs.github.com, Autolinked references and URLs; docs.gitlab.com, GitLab Flavored Markdown,
GitLab-specific references; github/cmark-gfm extensions/autolink.c.
"""
_BLOCK = re.compile(r"^(?=[-+=/]|\d+[.)])")
"""The beginning of a list, a heading, a horizontal rule, or a quick action of GitLab."""


def cell_text(text: str) -> str:
    """Escape a text for Markdown, also inside a table."""
    plain = _BLOCK.sub("\0\\g<0>", _LINKS.sub("\\g<0>\0", visible(text).strip()))
    plain = plain.replace("\\", "\\\\").replace("&", "&amp;")
    plain = plain.replace("<", "&lt;").replace(">", "&gt;")
    for mark in "|*_`[]~#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("\0", _APART)


def visible_json(value: object, indent: int | None = None) -> str:
    r"""Write JSON with escapes for invisible characters, such as `\u202e`, and for `##[`."""
    text = json.dumps(value, ensure_ascii=False, indent=indent).replace("##[", "#\\u0023[")
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text
    )
