"""Texts of strangers in JSON and in Markdown: shown, and never followed.

GitHub and GitLab look for mentions, references and links in what Markdown has become, so neither a
backslash nor a character reference hides one from them: `&#64;team` pings the team. A space without
a width, between the mark and what follows, does.
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
"""The first part of what becomes a link, and the part that follows.

Source: docs.github.com, Autolinked references and URLs; docs.gitlab.com, GitLab Flavored Markdown,
GitLab-specific references; github/cmark-gfm extensions/autolink.c.
"""
_BLOCK = re.compile(r"^(?=[-+=/]|\d+[.)])")
"""Where a text would begin a list, a heading, a rule, or a quick action of GitLab."""


def cell_text(text: str) -> str:
    """Write a text so that Markdown and HTML take nothing in it for their own, also in a table."""
    plain = _BLOCK.sub("\0\\g<0>", _LINKS.sub("\\g<0>\0", visible(text).strip()))
    plain = plain.replace("\\", "\\\\").replace("&", "&amp;")
    plain = plain.replace("<", "&lt;").replace(">", "&gt;")
    for mark in "|*_`[]~#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("\0", _APART)


def visible_json(value: object, indent: int | None = None) -> str:
    r"""Write JSON in which every character shows: `\u202e` stands for itself, and so does `##[`."""
    text = json.dumps(value, ensure_ascii=False, indent=indent).replace("##[", "#\\u0023[")
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text
    )
