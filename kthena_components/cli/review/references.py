"""Breaks links, mentions and references in a string, so that no host of pull requests follows them.

GitHub and GitLab find them in the text of the rendered Markdown. So a backslash or a character
reference does not prevent them: `&#64;team` still pings the team. A zero-width space inside does.

It imports only the standard library, because the program with the token uses it.
"""

import re

APART = "&#8203;"
"""A zero-width space, as Markdown."""
MARK = "\0"
"""Stands for APART while a string is escaped. Strings to escape contain no NUL."""
_LINKS = re.compile(
    r"@(?=[^\s\0])"
    r"|:(?=\\?/\\?/)|(?i:www)(?=\\?\.)|(?i:mailto|xmpp)(?=\\?:)"
    r"|\[(?=[\w\\]+:|\\?[\[^]|(?i:toc)\\?\])"
    r"|#(?=\w)|(?:[!^]|&amp;|&(?!(?:amp|lt|gt);))(?=[\w\"\\`$])"
    r"|[%~](?=[^\s\0])|\$(?![\s\0])"
    r"|(?i:iteration)(?=\\?:)"
    r"|(?i:g[hl]|ghsa|cve)(?=\\?-)|\b[A-Z][A-Z0-9_]+(?=\\?-\d)"
    r"|(?<!<)/(?=[\w.\\-]+(?:>|&gt;))"
)
"""The beginning of a link, a mention or a reference, followed by the rest of it.

A backslash may stand between the two, because Markdown drops it before punctuation. The first part
does not end with one, because it would also escape what is inserted.

Source: docs.github.com, Autolinked references and URLs; docs.gitlab.com, GitLab Flavored Markdown,
GitLab-specific references; gitlabhq, `reference_pattern` in app/models, and
lib/banzai/filter/autolink_filter.rb; github/cmark-gfm extensions/autolink.c.
"""
_COMMIT = re.compile(r"[0-9a-fA-F]{7,}")
_LONGEST = 6
"""A commit is linked from seven hexadecimal characters on, by GitLab also inside a word.

Source: gitlabhq app/models/commit.rb, COMMIT_SHA_PATTERN and reference_pattern.
"""


_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,251}[A-Za-z0-9_-])?"
_NAME = re.compile(rf"(?<!\S){_WORD}(?=[.:,;]?(?:\s|$))")
_CODE = re.compile(rf"(?<![\\`\w])(`{_WORD}`)(?![`\w])")
"""A name as code, in which no host looks for references, so that it stays as it is.

Source: docs.gitlab.com, GitLab Flavored Markdown, and gitlabhq lib/banzai/filter/references/
reference_filter.rb, which ignores code; docs.github.com, Autolinked references and URLs.
"""


def code_and_text(text: str) -> list[str]:
    """Split plain text at names that look like references, such as llm-fb35f097.

    Returns:
        Text and names in turn, the names as code, so that they can be copied.
    """
    parts, end = [], 0
    for found in _NAME.finditer(text):
        if broken(found[0]) != found[0]:
            parts += [text[end : found.start()], f"`{found[0]}`"]
            end = found.end()
    return [*parts, text[end:]]


def unlinked(text: str) -> str:
    """Insert MARK into each link, mention and reference of Markdown, except in names as code.

    A name is only code where nothing else begins or ends code: in a paragraph without other
    backticks, backslashes before them, and tags.
    """
    return "\n\n".join(map(_unlinked_block, text.split("\n\n")))


def _unlinked_block(block: str) -> str:
    parts = _CODE.split(block)
    others = parts[::2]
    if any("`" in part or "<" in part for part in others):
        return broken(block)
    parts[::2] = map(broken, others)
    return "".join(parts)


def broken(text: str) -> str:
    """Insert MARK into each link, mention and reference.

    Args:
        text: Markdown or plain text, with MARK where it is broken already.
    """
    return _COMMIT.sub(_in_pieces, _LINKS.sub(rf"\g<0>{MARK}", text))


def _in_pieces(found: re.Match[str]) -> str:
    digits = found[0]
    return MARK.join(digits[at : at + _LONGEST] for at in range(0, len(digits), _LONGEST))
