"""No text leads anywhere, whatever form of link, mention or reference it has.

The judges are GitHub's own Markdown, cmark-gfm, and the patterns that GitHub and GitLab search in
the text of the page that it makes.
"""

import html
import re
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import example, given
from hypothesis import strategies as st

from kthena_components.cli.check.reports import cell_text
from kthena_components.cli.review.post_comment import sealed
from kthena_components.cli.review.references import APART
from tests.support.for_each import for_each

FORMS = (
    # docs.github.com, Autolinked references and URLs; Basic writing and formatting syntax.
    "https://github.com/a/b/pull/1", "www.example.org", "WWW.example.org", "a@example.org",
    "mailto:a@example.org", r"https:\\//example.org", r"https:/\\/example.org", r"\\@team",
    f"\\{APART}",
    "@team", "@org/team", "#26", "GH-26", "gh-26", "jlord/sheetsee.js#26", "github-linguist#4039",
    "a5c3785ed8d6a35868bc169f07e40e889087fd2e", "a5c3785", "1234567", "deadbee", "A5C3785",
    "jlord@a5c3785ed8d6a35868bc169f07e40e889087fd2e", "jlord/sheetsee.js@a5c3785", "JIRA-123",
    "TICKET_A-7", "GHSA-jfh8-c2jp-5v3q", "CVE-2021-44228", "[^1]\n\n[^1]: a note",
    "[a](https://x)", "[a](x 'y')", "[a][b]\n\n[b]: x", "[b]\n\n[b]: x", "![a](x)", "<https://x>",
    "<a href='x'>a</a>", "<img src='x'>", "[a](<x y>)", "ftp://x.org/y", "xmpp:a@b.org/c",
    # docs.gitlab.com, GitLab Flavored Markdown, GitLab-specific references.
    "@all", "GL-123", "#123", "a/b#123", "[issue:123]", "[work_item:a/b/123]", "!123", "a/b!123",
    "$123", "&123", "group&123", "[epic:123]", "*iteration:123", '*iteration:"a title"', "a/b!1+s",
    "[cadence:123]", '[cadence:"a"]', "[vulnerability:123]", "[vulnerability:a/b/123]",
    "[feature_flag:123]", "~123", "~bug", '~"feature request"', "~-x", "~?x", "~.x", "a/b~bug",
    "%123", "%v1.23", '%"release candidate"', "9ba12248", "9ba12248...b19a04f5", "a/b@9ba12248",
    "^alert#123", "[contact:test@example.com]", "[wiki_page:home]", "[wiki_page:a/b:home]",
    "[[home]]", "[[a|b]]", "a/b>", "a/b&gt;", "#123[homescreen.jpg]", "smb://foo/bar", "irc://irc.net/a",
    "```mermaid\nflowchart\n  click A href '//x'\n```", "~~~mermaid\nx\n~~~", "$$\\href{x}{y}$$",
    "$`\\href{x}{y}`$", "```math\n\\href{x}{y}\n```",
    r"$(\\href{x}{y})$", r"$-\\url{x}$", "[TOC]",
    "::include{file=a.md}", " ::include{url=x}",
    "/close", " /label ~bug", "a\n\t/approve",
    # What a break after four characters of a commit would leave over.
    "deada5c3785ed8d6a35868bc", "ga5c3785", "_1234567_",
)  # fmt: skip
PATTERNS = (
    # GitHub.
    r"@\w", r"#\d", r"(?i)gh-\d", r"://", r"(?i)www\.", r"GHSA-\w", r"CVE-\d",
    r"\b[A-Z][A-Z0-9_]+-\d",
    # gitlabhq: app/models, `reference_pattern` of each class; an epic also in its escaped form.
    r"@[\w.]", r"[#!$]\d", r"(?:&|&amp;)\d", r"~[A-Za-z0-9_\-?.&]*[A-Za-z0-9_\-&]", r'~".+?"',
    r'%(?!\u200b)[^"\s<]+\b', r'%"[^"]+"', r"\*iteration:\S", r"\^alert#\d", r"[0-9a-fA-F]{7}",
    r"(?i)gl-\d", r"(?i)\[toc\]", r"\$[^\s\u200b]",
    r"\[\w+:[^\]]+\]", r"\[\[.+\]\]", r"\w/[\w.-]+(?:>|&gt;)",
)  # fmt: skip
"""A name that begins with a zero-width space is none of a milestone."""
QUICK_ACTION = re.compile(r"^[ \t]*(?:/\w|::include)", re.MULTILINE)
"""Source: gitlabhq lib/gitlab/quick_actions/extractor.rb, which reads the lines of the source; and
docs.gitlab.com, GitLab Flavored Markdown, Includes.
"""
BETWEEN = (
    "", " ", "\n", "\n\n", "\\", "*", "_", "`", "\0", "\u200b", "\u202e", APART, "&", "&amp;", "-",
    "<details>", "</details>", "<summary>", "|", "(", "[", "]", '"', "~", "#", "&#35;", "&#x40;",
    "- ", "> ", "    ", "1", "a",
)  # fmt: skip
texts = st.lists(st.sampled_from((*FORMS, *BETWEEN)), max_size=6).map("".join)


class Page(HTMLParser):
    """The tags of a page, and its strings outside code, in which the hosts search."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self._code = 0
        options = Options.CMARK_OPT_UNSAFE | Options.CMARK_OPT_FOOTNOTES
        self.feed(cmarkgfm.github_flavored_markdown_to_html(markdown, options))
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's
        self.tags.add(tag)
        self._code += tag in {"code", "pre"}
        self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in {"code", "pre"}
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.texts[-1:] = [f"{self.texts[-1] if self.texts else ''}{data}"]


def leads_nowhere(markdown: str) -> None:
    page = Page(markdown)
    assert not page.tags & {"a", "img", "script", "iframe", "sup"}, markdown
    for text in page.texts:
        for shown in (text, html.escape(text, quote=False)):
            for pattern in PATTERNS:
                assert not re.search(pattern, shown), (pattern, markdown)
    assert not QUICK_ACTION.search(markdown)


def test_the_checks_see_every_form() -> None:
    for form in FORMS:
        page = Page(form)
        found = {"a", "img", "sup"} & page.tags or [
            pattern for pattern in PATTERNS for text in page.texts if re.search(pattern, text)
        ]
        drawn = "mermaid" in form or "href" in form
        assert found or drawn or QUICK_ACTION.search(form) or "\\" in form, form


@for_each("form", FORMS)
def test_no_form_of_a_reference_survives(form: str) -> None:
    leads_nowhere(sealed(form))
    leads_nowhere(sealed(f"- x\n\n| a |\n|---|\n| {form} |\n"))
    leads_nowhere(f"- {cell_text(form)}\n")
    escaped = re.sub(r"([^\w\s])", r"\\\1", form)
    leads_nowhere(sealed(escaped))
    leads_nowhere(sealed(f"{form[:1]}\\{form[1:]}"))


@for_each("name", ("llm-fb35f097", "chat-1234567", "acme/deadbee", "A-7", "JIRA-123", "gh-26"))
def test_a_name_can_be_copied(name: str) -> None:
    """As code it has nothing inside, and what is posted leaves it so."""
    for text in (name, f"Service {name}", f"Service {name}: is wrong"):
        shown = cell_text(text)
        assert "`" in shown or shown == text
        for line in (f"- {shown}", f"| a |\n|---|\n| {shown} |", f"### Stack {shown}: passes"):
            assert APART not in line
            assert APART not in sealed(line)
            leads_nowhere(sealed(line))


HIDDEN_CODE = (
    "` a `{}` b `", "\\`{}`", "``{}`", "<details>\n`{}`\n</details>", "`\n`{}`", "$`{}`$",
    "` | `{}` | `", "`{}``", "\\\\\\`{}` `",
)  # fmt: skip


@for_each("form", HIDDEN_CODE)
def test_what_only_looks_like_code_is_broken(form: str) -> None:
    for name in ("a5c3785", "JIRA-123", "CVE-2021-44228"):
        leads_nowhere(sealed(form.format(name)))
        leads_nowhere(sealed(f"- {form.format(name)}\n- x `b`\n"))
        leads_nowhere(f"- {cell_text(form.format(name))}\n")


@example(["\\", "\0"])  # a break of the text's own, behind a backslash that would show it
@example(["\\", "\x01", APART])  # a backslash that is next to it once something is removed
@given(st.lists(st.sampled_from((*BETWEEN, "`", "`a5c3785`", "a5c3785", "GH-26")), max_size=7))
def test_no_mix_of_code_and_text_leads_anywhere(parts: list[str]) -> None:
    leads_nowhere(sealed("".join(parts)))
    leads_nowhere(f"- {cell_text(''.join(parts))}\n")


@example("$$\\href{x}{y}$$    ")  # spaces at the end are cut off
@given(texts)
def test_whatever_is_written_leads_nowhere(text: str) -> None:
    leads_nowhere(sealed(text))
    leads_nowhere(f"| a |\n|---|\n| {cell_text(text)} |\n")
    assert sealed(sealed(text)) == sealed(text)


@given(texts)
def test_an_escaped_text_stays_what_it_is(text: str) -> None:
    item = f"- {cell_text(text)}\n"
    before, after = Page(item), Page(sealed(item))
    assert before.tags == after.tags
    plain, shown = ("".join(page.texts).replace("\u200b", "") for page in (before, after))
    assert plain.split() == shown.split()


@pytest.mark.parametrize("form", [form for form in FORMS if "mermaid" in form or "math" in form])
def test_no_block_is_drawn(form: str) -> None:
    assert "pre" not in Page(sealed(form)).tags
