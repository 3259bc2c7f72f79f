"""Rows of the terminal: widths, shares of bars, ASCII, and which racks are drawn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.drawing.picture import (
    GroupRow,
    NodeBox,
    Picture,
    PodBox,
    RackBox,
    fit,
    shares,
    width_of,
)
from kthena_components.drawing.rows_and_mermaid import draw_rows
from tests.drawing.hostile import hostile
from tests.support.for_each import for_each
from tests.support.pictured import pictured


def rack(name: str, *nodes: NodeBox) -> RackBox:
    return RackBox(name=name, tier=1, nodes=nodes)


def pod(gpus: int, state: str = "placed", group: str = "a/chat-0") -> PodBox:
    return PodBox(name="p", group=group, engine="serve-0", gpus=gpus, state=state)


def node(used: int, *pods: PodBox, gpus: int = 8, closed: str = "") -> NodeBox:
    return NodeBox(name="n", gpus=gpus, used=used, pods=pods, closed=closed)


def picture(*racks: RackBox, groups: tuple[str, ...] = ("a/chat-0",)) -> Picture:
    rows = tuple(GroupRow(title=title, serving="", verdict="fits") for title in groups)
    return Picture(title="", racks=racks, groups=rows)


def test_a_cell_is_a_gpu_where_there_is_room() -> None:
    seen = picture(
        rack("rack-1", node(6, pod(2, "running"), pod(2))),
        rack("rack-2", node(0)),
        rack("", node(8, pod(8, "lost"), closed="lost")),
    )
    assert draw_rows(seen) == [
        "rack-1     ██▓▓▒▒░░ 6/8  chat-0",
        "rack-2     ░░░░░░░░ 0/8",
        "in no rack ×××××××× 8/8  1 node lost, chat-0",
        "█ others  ▓ running  ▒ placed now  × lost  ░ free",
    ]


def test_without_blocks_everything_is_ascii() -> None:
    seen = picture(rack("räck", node(6, pod(2, "running"), pod(2))))
    assert draw_rows(seen, blocks=False) == [
        r"r\xe4ck ##==++.. 6/8  chat-0",
        "# others  = running  + placed now  . free",
    ]
    for servings in (1, 20, 300):
        assert all(line.isascii() for line in draw_rows(pictured(servings), blocks=False))
    assert all(line.isascii() for line in draw_rows(hostile(), blocks=False))


def test_groups_of_two_namespaces_keep_them() -> None:
    seen = picture(
        rack("r", node(4, pod(2), pod(2, group="b/chat-0"))), groups=("a/chat-0", "b/chat-0")
    )
    assert draw_rows(seen)[0].endswith("4/8  a/chat-0, b/chat-0")


def test_parts_of_a_bar_are_painted_by_their_state() -> None:
    seen = picture(rack("r", node(2, pod(2))))
    painted = draw_rows(seen, paint=lambda state, text: f"<{state}:{text}>")
    assert painted[0] == "r    <placed:▒▒><free:░░░░░░> 2/8  chat-0"


@for_each("servings", [1, 20, 300])
def test_no_line_is_wider_than_the_terminal(servings: int) -> None:
    for width in (40, 60, 80, 100, 200):
        for line in draw_rows(pictured(servings), width=width)[:-1]:
            assert width_of(line) <= width, (width, line)


def test_hostile_names_stay_on_their_line() -> None:
    for line in draw_rows(hostile()):
        assert line.isprintable()
        assert width_of(line) <= 100


def test_racks_that_do_not_matter_are_one_row() -> None:
    racks = [rack(f"rack-{n}", node(8 if n % 2 else 0)) for n in range(100)]
    racks[70] = rack("rack-70", node(2, pod(2)))
    lines = draw_rows(picture(*racks))
    assert [line.split()[0] for line in lines[:-1]] == ["rack-70", "99"]
    assert "99 more racks" in lines[1]
    assert lines[1].endswith("400/792  50 of them full")


def test_many_racks_that_matter_are_folded_too() -> None:
    racks = [rack(f"rack-{n}", node(n % 8 + 1, pod(n % 8 + 1))) for n in range(300)]
    lines = draw_rows(picture(*racks))
    assert len(lines) <= 26
    assert "276 more racks" in lines[-2]


def test_a_cluster_without_gpus_or_racks_has_rows_without_bars() -> None:
    assert draw_rows(picture()) == []
    assert draw_rows(picture(rack("r", node(0, gpus=0)))) == ["r         0/0"]


@pytest.mark.property
@given(amounts=st.lists(st.integers(0, 10_000), max_size=6), cells=st.integers(0, 64))
def test_shares_sum_up_and_hide_nothing(amounts: list[int], cells: int) -> None:
    found = shares(amounts, cells)
    positive = sum(amount > 0 for amount in amounts)
    assert sum(found) == (cells if positive else 0)
    assert all(share == 0 for share, amount in zip(found, amounts, strict=True) if not amount)
    if positive <= cells:
        assert sum(share > 0 for share in found) == positive


@pytest.mark.property
@given(text=st.text(max_size=60), columns=st.integers(1, 40))
def test_a_fitted_text_has_its_width(text: str, columns: int) -> None:
    assert width_of(fit(text, columns)) <= columns
