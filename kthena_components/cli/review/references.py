"""Breaks links, mentions and references in a text, so that no host of pull requests follows them.

GitHub and GitLab find them in the text of the rendered Markdown. So a backslash or a character
reference does not prevent them: `&#64;team` still pings the team. A zero-width space inside does.

It imports only the standard library, because the program with the token uses it.
"""

import re

APART = "&#8203;"
"""A zero-width space, as Markdown."""
MARK = "\0"
"""Stands for APART while a text is escaped. Texts to escape contain no NUL."""
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


def broken(text: str) -> str:
    """Insert MARK into each link, mention and reference.

    Args:
        text: Markdown or plain text, with MARK where it is broken already.
    """
    return _COMMIT.sub(_in_pieces, _LINKS.sub(rf"\g<0>{MARK}", text))


def _in_pieces(found: re.Match[str]) -> str:
    digits = found[0]
    return MARK.join(digits[at : at + _LONGEST] for at in range(0, len(digits), _LONGEST))
