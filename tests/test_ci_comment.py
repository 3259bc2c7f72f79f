"""The last job of a workflow seals whatever text it is given, and shortens it to what fits."""

import os
import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import example, given
from hypothesis import strategies as st

from kthena_components.cli.review import post_comment as script
from kthena_components.cli.review.post_comment import MARK, fitting
from tests.cli.test_shown import Page, nasty
from tests.support.for_each import for_each

SCRIPT = Path(__file__).parent.parent / "kthena_components" / "cli" / "review" / "post_comment.py"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OURS = f"""\
## Servings in this change

1 stack touched.

<details><summary>a</summary>

- roles\\[0\\] &lt;b&gt; @&#8203;x

</details>

{MARK}
"""
ITEMS = "\n".join(f"- a finding about llama-{number} [a-rule]" for number in range(20_000))
nasty_lines = st.lists(
    st.one_of(
        nasty,
        st.sampled_from(["<details><summary>a</summary>", "</details>", "- a", "", "- 5 more: x"]),
        st.integers(0, 700).map(lambda number: "@a b " * number),
        st.integers(0, 5000).map(lambda number: "&" * number),
    ),
    max_size=40,
).map("\n".join)


@given(nasty)
def test_whatever_a_program_wrote_leads_nowhere(text: str) -> None:
    sealed = script.sealed(text)
    page = Page(sealed)
    assert not {"a", "img", "script", "iframe"} & set(page.tags)
    for part in ("@team", "#12", "GH-12", "://", "www."):
        assert part not in page.text
    assert sealed.count(MARK) == 1
    assert sealed.endswith(f"\n{MARK}\n")


@pytest.mark.parametrize(
    "text",
    ["[a](https://x)", "[a][b]\n\n[b]: https://x", "<a href=x>", "![i](x)", "&#64;team",
     "&commat;team", "\\@team", "https:/\\/x", "@\u202eteam", f"{MARK} {MARK}", "<!-- x -->",
     "<details open><summary>", "/label ~bug", " /approve"],
)  # fmt: skip
def test_a_text_is_sealed(text: str) -> None:
    page = Page(script.sealed(text))
    assert set(page.tags) <= {"p", "summary"}, script.sealed(text)
    assert "@team" not in page.text
    assert "href" not in page.text or "<a href=x>" in page.text


def test_our_own_comment_stays_what_it_is() -> None:
    assert Page(script.sealed(OURS)).text.replace("\u200b", "") == Page(OURS).text.replace(
        "\u200b", ""
    )
    assert Page(script.sealed(OURS)).tags == Page(OURS).tags
    assert script.sealed(script.sealed(OURS)) == script.sealed(OURS)


def test_what_the_check_says_cannot_be_left_out() -> None:
    said = "**A person must approve this branch.** It changes ci/review."
    judge = f"{said}\n\n- gpuBudget would be 64\n\n{MARK}\n"
    folded = f"<details>\n{said}\n</details>"
    for forged in ("", "all is well", folded, f"{'x ' * 40_000}\n{said}", judge):
        sealed = script.sealed(script.put_together(judge, forged))
        assert sealed.startswith(f"{said}\n\n- gpuBudget would be 64\n"), forged
        assert sealed.count(said) == 1
        assert sealed.endswith(f"{MARK}\n")


def test_only_a_regular_file_is_read(tmp_path: Path) -> None:
    """A link could lead to the environment, where the token is, and a pipe would never end."""
    (tmp_path / "link.md").symlink_to("/proc/self/environ")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    for name in ("link.md", "pipe.md", "folder.md", "nothing.md"):
        assert script.read(str(tmp_path / name)) is None


def test_the_findings_of_the_check_are_cut_last() -> None:
    judge = "\n".join(f"- the judge's {number}" for number in range(1000))
    body = script.sealed(script.written(judge, ITEMS)[0])
    assert f"{judge}\n" in body
    both = script.sealed(script.written(ITEMS, judge)[0])
    assert "the judge's" not in both
    assert len(both) <= 65_536


HIDING = (
    "<details>", "<details>\n\n`</details>`", "<details>\n`</details>`", "</details>\n<details>",
    "- <details>", "> <details>", "<details><summary>x", "<details><summary><details></summary>",
    "<details>\n\n    </details>", "<details>\n\n- </details>", "a <details>", "<summary>",
    "<details><summary>a</summary>\n\n<details>\n\n</details>", "<details>\n\n\\</details>",
)  # fmt: skip


class Depth(HTMLParser):
    """Whether a string is folded away in a page."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.depth, self.shown = 0, ""
        html = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - the parser's
        self.depth += tag == "details"

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag == "details" and self.depth > 0

    def handle_data(self, data: str) -> None:
        self.shown += "" if self.depth else data


@for_each("text", HIDING)
@for_each("more", [0, 1000])
def test_no_text_hides_what_the_job_says_below_it(text: str, more: int) -> None:
    sealed = script.sealed(f"{text}\n\n" + "a line\n\n" * more, 1500, "About the commit.")
    shown = Depth(sealed).shown
    assert "About the commit." in shown, sealed
    assert ("The comment is too long, so " in shown) == bool(more), sealed


@given(st.lists(st.sampled_from([*HIDING, "", "a", "</details>", "`", "- "])).map("\n".join))
def test_nothing_hides_what_the_job_says_below_it(text: str) -> None:
    assert "About the commit." in Depth(script.sealed(text, last="About the commit.")).shown


@example("\n".join(["", "", "</details>", "<details><summary>a</summary>", "@a b " * 76]), 1000)
@given(nasty_lines, st.integers(1000, 3000))
def test_a_text_is_cut_between_lines(text: str, most: int) -> None:
    whole, cut = script.sealed(text), script.sealed(text, most)
    assert len(cut) <= most
    if len(whole) <= most:
        assert cut == whole
        return
    shown, sentence, mark = cut.rstrip().rsplit("\n\n", 2)
    assert mark == MARK
    assert sentence.startswith("The comment is too long, so ")
    kept = re.sub(r"(?:\n\n</details>)+\Z", "", shown).splitlines()
    assert cut.count("</details>") >= cut.count("<details>"), "the sentence is not folded"
    told = whole.splitlines()
    for line, original in zip(kept, told, strict=False):
        if line != original.rstrip() and line != original:
            assert line == "" or (line.endswith(" …") and original.startswith(line[:-2])), line
            assert not re.search(r"&[#\w]{0,6}$|\\$", line[:-2])


def test_what_is_left_out_is_counted() -> None:
    lines = ["x" * 900, "", "- a [b]", "", "- 17 more: see the log of this job", "| a | b |", "- c"]
    sentence = "The comment is too long, so {}: see the log."
    cut = fitting("\n".join([*lines, "y " * 200]), 1000, "the log")
    assert cut.endswith(
        sentence.format("6 further lines are not shown, with 19 findings and changes")
    )
    cut = fitting("\n".join([*["x" * 90] * 9, "- a", "y" * 400]), 1140, "the log")
    assert cut.endswith(sentence.format("1 further line is not shown"))
    cut = fitting("\n".join([*["x" * 90] * 9, f"- {'y ' * 400}"]), 1140, "the log")
    assert cut.endswith(sentence.format("1 further line is not shown, with 1 finding or change"))


@pytest.mark.parametrize("line", ["<details>", "<details><summary>a</summary>", "- a", ""])
def test_every_length_fits(line: str) -> None:
    """Whatever is closed and said below the text counts."""
    text = "\n".join([line] * 30_000 + ["end"])
    for most in (1000, 1001, 5000):
        assert len(fitting(text, most, "the log")) <= most
        assert len(script.sealed(text, most, "last " * 100)) <= most


def test_a_title_stays_above_its_own_list_only() -> None:
    judge = f"### Weaker checks: **fails**\n\nMandatory:\n\n- a [x]\n\n{MARK}\n"
    comment = f"## Servings\n\n{judge[: -len(MARK) - 3]}\n\n### Stack a\n\nMandatory:\n\n- b [y]\n"
    assert script.put_together(judge, comment) == (
        "### Weaker checks: **fails**\n\nMandatory:\n\n- a [x]\n\n"
        "## Servings\n\n### Stack a\n\nMandatory:\n\n- b [y]"
    )


@pytest.mark.parametrize(
    ("module", "others"), [("post_comment", {"hosts", "references"}), ("artifact", {"hosts"})]
)
def test_only_the_standard_library_is_beside_the_token(module: str, others: set[str]) -> None:
    """The process that has it loads nothing that pip has installed but this package."""
    program = (
        f"import sys; before = set(sys.modules); import kthena_components.cli.review.{module};"
        "print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True
    )
    loaded = ran.stdout.split()
    own = {name for name in loaded if name.startswith("kthena_components")}
    names = {f"kthena_components.cli.review.{name}" for name in {module, *others}}
    assert own == {
        "kthena_components",
        "kthena_components.cli",
        "kthena_components.cli.review",
        *names,
    }
    roots = {name.partition(".")[0] for name in loaded} - {"kthena_components"}
    assert roots <= set(sys.stdlib_module_names)


PIECES = (
    "\\", "/", "[", "[a", "]", "A", "A_", "@", "<details>", "&", "a/", "/a.", ":", "- ", "`", "\n",
    "\n/", " ", "0", "&#8203;", "\\&#8203;", "Mandatory:\n\n",
)  # fmt: skip


@for_each("piece", PIECES)
def test_no_text_takes_long(piece: str) -> None:
    """A string that took minutes would keep the comment away. These take a few seconds."""
    text = piece * (2**20 // len(piece))
    start = time.process_time()
    script.sealed(script.written(piece, text)[0])
    assert time.process_time() - start < 20
