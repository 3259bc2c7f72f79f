"""Mermaid for a comment: its size, its escapes, and its place in Markdown."""

import re
from dataclasses import replace

import cmarkgfm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.drawing.picture import GroupRow, NodeBox, Picture, PodBox, RackBox
from kthena_components.drawing.rows_and_mermaid import MOST, draw_mermaid
from tests.drawing.hostile import LONG, hostile
from tests.support.for_each import for_each
from tests.support.pictured import pictured

LINE = re.compile(
    r"%%\{init: .*\}%%|flowchart LR|  end|  classDef \w+ [\w:, -]+"
    r'|(    |  )\w+(\["[^"\]\[{}]*"\]|\(\["[^"\]\[{}]*"\]\))(:::\w+)?'
    r'|  subgraph r\d+\["[^"\]\[{}]*"\]|  g\d+ -->\|"\d+ pods?"\| \w+'
)
"""The lines that the block may have: no name can write another one."""


def code_of(block: str) -> list[str]:
    return block.partition("```mermaid\n")[2].partition("\n```")[0].split("\n")


def test_a_changed_group_is_drawn_in_its_rack() -> None:
    code = code_of(draw_mermaid(pictured(1)))
    assert code[2:9] == [
        '  subgraph r0["rack-0 · 18 → 30 of 64 GPUs"]',
        '    r0n0["node-0-0<br/>3 → 7 of 8 GPUs<br/>chat-0 prefill-0<br/>chat-0 router-0"]',
        '    r0n1["node-0-2<br/>4 → 8 of 8 GPUs<br/>chat-0 prefill-0"]',
        '    r0n2["node-0-3<br/>0 → 4 of 8 GPUs<br/>chat-0 decode-0<br/>chat-0 decode-1"]',
        "  end",
        '  others["1 more rack<br/>58 GPUs free"]:::others',
        '  g0(["serving/chat-0<br/>fits"])',
    ]
    assert code[9] == '  g0 -->|"5 pods"| r0'


def test_groups_that_wait_point_to_no_node() -> None:
    block = draw_mermaid(pictured(20))
    assert "10 changed groups in the racks, 7 with pods that have no node" in block
    assert '  g0 -->|"9 pods"| nowhere' in code_of(block)
    assert '  nowhere["no node"]:::waiting' in code_of(block)


def test_without_changed_groups_there_is_no_block() -> None:
    picture = pictured(20)
    groups = tuple(replace(group, changed=False) for group in picture.groups)
    assert draw_mermaid(replace(picture, groups=groups)) == ""
    assert "chat-0<br/>" not in draw_mermaid(picture)


@for_each("servings", [1, 20, 300])
def test_the_block_has_the_form_that_mermaid_reads(servings: int) -> None:
    code = code_of(draw_mermaid(pictured(servings)))
    assert [line for line in code if not LINE.fullmatch(line)] == []
    assert sum("-->" in line for line in code) < 500


def crowded(groups: int) -> Picture:
    """Return groups with the longest names, each in many racks."""
    titles = [f"{n:03}{LONG}/{LONG}" for n in range(groups)]
    pods = [PodBox(name=LONG, group=title, engine="\x00" * 99, gpus=1) for title in titles]
    racks = tuple(
        RackBox(
            name="\x00" * 253, tier=1,
            nodes=tuple(NodeBox(name="#" * 253, gpus=8, used=8, pods=pods) for _ in range(2)),
        )
        for _ in range(120)
    )  # fmt: skip
    rows = tuple(GroupRow(title=t, serving="", verdict='"', changed=True) for t in titles)
    return Picture(title="", racks=racks, groups=rows)


@for_each("groups", [1, 20, 300])
def test_the_block_is_always_below_the_limit(groups: int) -> None:
    block = draw_mermaid(crowded(groups))
    assert 0 < len(block) < MOST
    assert len(draw_mermaid(crowded(groups), most=3000)) < 3000
    assert draw_mermaid(crowded(groups), most=10) == ""


def test_nothing_leaves_the_block() -> None:
    block = draw_mermaid(hostile())
    assert [line for line in code_of(block) if not LINE.fullmatch(line)] == []
    page = cmarkgfm.github_flavored_markdown_to_html(f"before\n\n{block}\nafter\n")
    assert page.count("<pre") == 1
    assert page.endswith("</code></pre>\n<!-- raw HTML omitted -->\n<p>after</p>\n")


@pytest.mark.property
@given(name=st.text(min_size=1, max_size=60))
def test_no_name_writes_syntax(name: str) -> None:
    pod = PodBox(name=name, group=name, engine=name, gpus=1)
    node = NodeBox(name=name, gpus=8, used=1, pods=(pod,))
    group = GroupRow(title=name, serving=name, verdict=name, changed=True, unplaced=(pod,))
    racks = (RackBox(name=name, tier=1, nodes=(node,)),)
    code = code_of(draw_mermaid(Picture(title=name, racks=racks, groups=(group,))))
    assert [line for line in code if not LINE.fullmatch(line)] == []
    assert len(code) == 11
    assert "#36;#36;" not in "".join(code)
