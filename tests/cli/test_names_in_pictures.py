"""A law: the names of a cluster and of what is asked about change no output but for themselves.

Each output is compared with the same one for plain names: its lines, its tags, its data.
"""

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import HealthCheck, assume, example, given, reject, settings
from hypothesis import strategies as st

from kthena_components.cli.main import main
from kthena_components.cli.review.placement import StackPlacement, write_placement
from kthena_components.drawing.from_outcomes_and_servings import picture_of
from kthena_components.drawing.page import draw_page
from kthena_components.drawing.rows_and_mermaid import draw_mermaid
from kthena_components.drawing.svg import draw_svg
from kthena_components.placement.answer import FitQuestion, answer, ask
from kthena_components.placement.from_objects import cluster_of

PIECES = (
    *"\x07\x08\x1b\x7f\x85\x9b\xad\n\r\t\v\f \u00a0\u2028\u2029",
    *"\u200b\u200c\u200d\u2060\ufeff\u180e\u034f\u115f\u3164\ufe0f\u2800\U000e0041\U000e0101",
    *"\u061c\u200e\u200f\u202a\u202d\u202e\u2066\u2067\u2069", "\u05d0", "\u0627\u0628", "\u0663",
    "\u0301", "e\u0301", "\u20dd", "\u0e4c" * 9, "\x1b[2J", "\x1b[31m", "\x1b]8;;http://x\x07",
    "|", "| a |", "`", "```", "**", "_", "[a](http://x)", "![a](x)", "<b>", "</title>", "</svg>",
    "<script>", "<!--", "-->", "]]>", "&lt;", "&#8203;", "#lt;", "#quot;", '"', "'", "]", "])",
    "%%{init: {}}%%", "end", "subgraph x", ":::waiting", "-->", "$$", "click r0", "graph TD",
    "##[error]", "::error::", "@team", "#12", "\\", "/", "{", "}", "- ", "1. ", "---", "é", "日本",
    "a", "name",
)  # fmt: skip
NASTY = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)
PLACES = ("node", "rack", "group", "namespace", "queue", "serving", "label")
PLAIN = {place: f"{place}-x" for place in PLACES}
MANY = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
names = st.fixed_dictionaries({}, optional=dict.fromkeys(PLACES, NASTY))


def shows(text: str) -> bool:
    """Say whether each character takes its place in the line, from left to right."""
    before = ""
    for char in text:
        kind = unicodedata.category(char)
        if not char.isprintable() or unicodedata.bidirectional(char) in {"R", "AL", "AN"}:
            return False
        if char in "\u034f\u115f\u1160\u3164\uffa0\u2800\ufe0f\U000e0101":
            return False
        if kind in {"Mn", "Me"} and before in {"", " "}:
            return False
        before = char
    return True


class Tags(HTMLParser):
    """The tags and attributes of a page, without its strings."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(key for key, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def dump(names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return a cluster of two racks as kubectl would list it, with any names."""
    nodes = []
    for name, cordoned in ((names["node"], False), ("n2", False), ("n3", True)):
        labels = {"nvidia.com/gpu.product": names["label"]}
        nodes.append({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "spec": {"unschedulable": cordoned},
            "status": {
                "allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "8"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        })  # fmt: skip
    racks = [
        {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode",
         "metadata": {"name": name},
         "spec": {"tier": 1, "members": [
             {"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in members]}}
        for name, members in ((names["rack"], [names["node"], "n2"]), ("r2", ["n3"]))
    ]  # fmt: skip
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": names["queue"]},
        "spec": {"capability": {"nvidia.com/gpu": 8}}, "status": {"state": "Open"},
    }  # fmt: skip
    return [*nodes, *racks, queue]


def objects(names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return two PodGroups of one pod each: the first fits, the second waits for its queue."""
    made = []
    for index, name in enumerate((names["group"], "second", "third")):
        metadata = {"namespace": names["namespace"], "name": name}
        made.append({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": metadata,
            "spec": {"minMember": 1, "queue": names["queue"]},
        })  # fmt: skip
        requests = {"nvidia.com/gpu": [4, 8, 2][index], "cpu": 1}
        made.append({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": names["namespace"], "name": f"{names['serving']}-{index}",
                         "annotations": {"scheduling.k8s.io/group-name": name}},
            "spec": {"schedulerName": "volcano", "containers": [
                {"name": "c", "resources": {"requests": requests, "limits": requests}}]},
        })  # fmt: skip
    return made


def judged(names: Mapping[str, str]) -> tuple[FitQuestion, list[Any]]:
    cluster, wrong = cluster_of(dump(names), source="a dump")
    assume(not wrong)
    asked = ask(cluster, objects(names))
    outcomes = answer(asked)
    assume(all(outcome.group.unknown is None for outcome in outcomes))  # `<b>` is a placeholder
    return asked, outcomes


def comment(names: Mapping[str, str]) -> str:
    asked, outcomes = judged(names)
    before = ask(asked.drawn, [])
    found = StackPlacement(cluster=asked.drawn, asked=(before, asked), old=[], new=outcomes)
    return "\n\n".join(write_placement(found))


def run(folder: Path, capsys: Any, names: Mapping[str, str], *flags: str) -> str:
    for file, items in (("cluster.json", dump(names)), ("asked.json", objects(names))):
        listed = {"apiVersion": "v1", "kind": "List", "items": items}
        (folder / file).write_text(json.dumps(listed), encoding="utf-8")
    files = [str(folder / "asked.json"), "--inventory", str(folder / "cluster.json")]
    try:
        main(["fit", *files, *flags])
    except SystemExit:
        told = capsys.readouterr()
        assert told.out == ""
        assert [line for line in lines(told.err) if not shows(line)] == []
        reject()
    return str(capsys.readouterr().out)


def lines(text: str) -> Iterator[str]:
    return iter(text.split("\n"))


@MANY
@given(changed=names)
@example(changed={"group": "a\nb"})
@example(changed={"node": "\u05d0\u05d1"})
@example(changed={"rack": "\u0301x"})
def test_a_name_changes_no_row_of_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str]
) -> None:
    plain = run(tmp_path, capsys, PLAIN, "--grow", "--lose", "1")
    text = run(tmp_path, capsys, {**PLAIN, **changed}, "--grow", "--lose", "1")
    assume("not checked" not in text)  # `<b>` is a placeholder
    assert text.count("\n") == plain.count("\n")
    assert [line for line in lines(text) if not shows(line)] == []


@MANY
@given(changed=names)
def test_a_name_changes_no_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str]
) -> None:
    text = run(tmp_path, capsys, {**PLAIN, **changed}, "-o", "json")
    assert shows(text.removesuffix("\n"))
    assert "##[" not in text
    found = json.loads(text)
    told = {**PLAIN, **changed}
    assert found["groups"][0]["group"] == f"{told['namespace']}/{told['group']}"
    assert {rack["name"] for rack in found["racks"]} == {told["rack"], "r2"}


@MANY
@given(changed=names)
def test_a_name_changes_no_tag_of_the_page_and_of_the_drawing(changed: dict[str, str]) -> None:
    for draw in (draw_page, draw_svg):
        found = []
        for names in (PLAIN, {**PLAIN, **changed}):
            asked, outcomes = judged(names)
            found.append(Tags(draw(picture_of(asked.drawn, outcomes))))
        # A name decides which rack comes first, and whether its label fits.
        words = [{word for tag in one.tags for word in tag} for one in found]
        assert words[1] <= words[0] | {"text", "text-anchor"}
        assert [text for text in found[1].texts if not shows(text.replace("\n", ""))] == []


@MANY
@given(changed=names)
def test_a_name_changes_no_statement_of_the_mermaid_picture(changed: dict[str, str]) -> None:
    found = []
    for names in (PLAIN, {**PLAIN, **changed}):
        asked, outcomes = judged(names)
        block = draw_mermaid(picture_of(asked.drawn, outcomes))
        labels = re.findall(r'"([^"\n]*)"', block)
        for label in labels:
            assert shows(html.unescape(re.sub(r"#(\d+);", r"&#\1;", label))), label
        found.append(re.sub(r'"[^"\n]*"', '""', block))
    assert found[0] == found[1]


@MANY
@given(changed=names)
def test_a_name_changes_nothing_else_of_the_comment(changed: dict[str, str]) -> None:
    found = []
    for names in (PLAIN, {**PLAIN, **changed}):
        page = cmarkgfm.github_flavored_markdown_to_html(comment(names), Options.CMARK_OPT_UNSAFE)
        tags = Tags(page)
        found.append([tag for tag in tags.tags if tag != ("code",)])
        shown = "".join(tags.texts).replace("\u200b", "")
        assert [line for line in lines(shown) if not shows(line.strip())] == []
    assert found[0] == found[1]
