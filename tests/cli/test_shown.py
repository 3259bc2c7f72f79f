"""No format steers a terminal, a reader's eye, a pipeline or a comment, whatever a stranger wrote.

GitHub's own Markdown, cmark-gfm, judges what a comment becomes.
"""

import json
import re
from html.parser import HTMLParser

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import example, given
from hypothesis import strategies as st

from kthena_components.cli.check.reports import FORMATS, cell_text
from kthena_components.core.findings import Finding, tidy
from kthena_components.core.values.display import visible, visible_json, visible_lines
from tests.cli.conftest import Command, Write
from tests.support.manifests import pod

PIECES = [
    *"\x00\x07\x1b\x7f\x85\x9b\xad\u061c\u200b\u200e\u2028\u202e\u2066\u2069\ufeff\U000e0041",
    *"\u034f\u115f\u2800\u3164\ufe0f\u05d0\u0627\u0663\u0301\u20dd", "\u0301" * 9,
    *"@#!$%&~:/\\|*_`[]()<>\"' \n\r\t", "##[error]", "##vso[task.x]", "::error::", "https://",
    "ftp://", "www.", "@team", "a@b.example", "#12", "GH-12", "![x](", "<!--", "<a href=", "&#64;",
    "&commat;", "mailto:", "xmpp:", "\x1b]8;;http://x\x07", "word", "7", "é", "×",
]  # fmt: skip
nasty = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
COMMANDS = re.compile(r"##\w*\[")


class Page(HTMLParser):
    """The tags of a page, and its text, in `links` without code, where no host looks for any."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = self.links = ""
        self.in_code = False
        html = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's
        self.tags.append(tag)
        self.in_code = tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self.in_code = self.in_code and tag != "code"

    def handle_data(self, data: str) -> None:
        self.text += data
        self.links += "" if self.in_code else data


@given(nasty)
def test_a_text_is_one_line_of_characters_that_show(text: str) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert not COMMANDS.search(shown)
    assert not shown.lstrip().startswith("::")
    assert visible(shown) == shown
    assert visible_lines(text).count("\n") == text.count("\n")


@pytest.mark.parametrize(("text", "shown"), [
    ("cafe\u0301 \u0e17\u0e35\u0e48 日本 é", "cafe\u0301 \u0e17\u0e35\u0e48 日本 é"),
    ("'\u0301x", r"'\u0301x"),
    ("a\u0301\u0301\u0301\u0301\u0301b\u0301", "a\u0301\u0301\u0301\\u0301\\u0301b\u0301"),
    ("rack-\u05d0\u05d1 4/8", r"rack-\u05d0\u05d1 4/8"),
    ("a\ufe0f\u3164\u2800\u034f", r"a\ufe0f\u3164\u2800\u034f"),
])  # fmt: skip
def test_letters_stay_and_what_hides_or_turns_does_not(text: str, shown: str) -> None:
    assert visible(text) == shown
    finding = tidy(Finding(path=text, seen=f"{text}\n", remedy=text))
    assert (finding.path, finding.seen, finding.remedy) == (shown, f"{shown}\\x0a", shown)


@given(nasty)
@example("GH-12")
def test_a_cell_holds_nothing_but_text(text: str) -> None:
    page = Page(f"| a | b |\n|---|---|\n| {cell_text(text)} | end |\n")
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}
    assert page.tags.count("td") == 2
    assert page.text.rstrip().endswith("end")
    for mark in (r"@\w", r"#\d", r"GH-\d", r"!\d", r"://", r"www\."):
        assert not re.search(mark, page.links, re.IGNORECASE), page.links


@given(nasty)
@example("GH-12")
def test_a_list_item_holds_nothing_but_text(text: str) -> None:
    page = Page(f"- {cell_text(text)}\n")
    assert set(page.tags) <= {"ul", "li", "p", "code"}


@given(nasty)
def test_json_gives_the_text_itself_and_shows_every_character(text: str) -> None:
    written = visible_json({"text": text})
    assert json.loads(written) == {"text": text}
    assert written.isprintable()
    assert not COMMANDS.search(written)


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_hands_anything_on(run: Command, write: Write, form: str) -> None:
    name = "x\x1b[31m\x07\u202e##[error]::warning::@team https://evil.example"
    write("::error::a.yaml", pod(json.dumps(name)))
    done = run(".", "--format", form)
    assert done.status == 1
    for line in (*done.lines, *done.err.splitlines()):
        assert line.isprintable(), line
        assert not COMMANDS.search(line)
        written = line.startswith(("::error file=", "::warning file=", "::notice file="))
        assert not line.lstrip().startswith("::") or (form == "github" and written)
    if form == "markdown":
        assert not {"a", "img"} & set(Page(done.out).tags)
        assert "@team" not in Page(done.out).text
