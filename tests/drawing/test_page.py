"""The page without a browser: its places, its tables, its policy and its escapes."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree.ElementTree import Element, SubElement

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kthena_components.drawing.page import draw_page
from kthena_components.drawing.picture import (
    FREE,
    GroupRow,
    NodeBox,
    Picture,
    PodBox,
    RackBox,
    parts_of,
)
from kthena_components.drawing.svg import STYLE, WIDTH, draw_nodes, draw_svg, height_of
from tests.drawing.geometry import read_svg, troubles
from tests.drawing.hostile import LONG, NAMES, hostile
from tests.support.for_each import for_each
from tests.support.pictured import pictured

NAME = st.text(min_size=1, max_size=80)
POD = st.builds(
    PodBox, name=NAME, group=st.sampled_from(["a/b-0", "a/c-0", "x/" + "g" * 60]), engine=NAME,
    gpus=st.integers(0, 16), state=st.sampled_from(["placed", "running", "waiting", "lost"]),
)  # fmt: skip
NODE = st.builds(
    NodeBox, name=NAME, gpus=st.integers(0, 72), used=st.integers(0, 72),
    pods=st.lists(POD, max_size=9).map(tuple), product=NAME,
    closed=st.sampled_from(["", "cordoned", "not ready", "lost"]),
)  # fmt: skip
COLOURS = re.compile(r"--([\w-]+): (#[0-9a-f]{6})")
VOID = frozenset({"meta"})


class Reader(HTMLParser):
    """Reads a page: its strings, tags and attributes, and whether each tag is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def drawn(nodes: list[NodeBox], numbers: dict[str, int]) -> Element:
    box = f"0 0 {WIDTH} {height_of(nodes)}"
    svg = Element("svg", {"viewBox": box})
    draw_nodes(SubElement(svg, "g"), nodes, numbers)
    return svg


@pytest.mark.property
@given(nodes=st.lists(NODE, min_size=1, max_size=6), number=st.integers(1, 9999))
def test_no_drawing_has_overlaps_or_cut_texts(nodes: list[NodeBox], number: int) -> None:
    assert troubles(drawn(nodes, {"a/b-0": number, "x/" + "g" * 60: 7})) == []


def test_the_geometry_finds_overlaps_and_cut_texts() -> None:
    svg = read_svg(
        f'<svg viewBox="0 0 100 {2 * 18}"><rect width="20" height="18"/>'
        '<rect x="10" width="20" height="18"/><text x="0" y="13">longer</text></svg>'
    )
    found = " ".join(troubles(svg))
    assert "overlap" in found
    assert "cut" in found


@pytest.mark.property
@given(node=NODE)
def test_the_parts_of_a_bar_sum_up_to_the_node(node: NodeBox) -> None:
    parts = parts_of(node)
    told = sum(pod.gpus for pod in node.pods)
    assert sum(part.gpus for part in parts) == max(node.gpus, node.used, told)
    free = sum(part.gpus for part in parts if part.state == FREE)
    assert free == max(0, node.gpus - max(node.used, told))


@pytest.mark.parametrize("servings", [1, 20, 300])
def test_the_tables_have_every_pod_and_node(servings: int) -> None:
    picture = pictured(servings)
    page = Reader(draw_page(picture))
    text = "\n".join(page.texts)
    for rack in picture.racks:
        for node in rack.nodes:
            assert node.name in page.texts
            for pod in node.pods:
                assert f"{pod.group} {pod.engine}: {pod.name}" in text
    for group in picture.groups:
        assert group.title in page.texts
        for pod in group.unplaced:
            assert f"{pod.name} (" in text
    assert page.open == []


@for_each(
    ("unplaced", "groups", "told"),
    [
        (1, 1, "0 of 1 group has a node for every pod. "),
        (0, 1, "1 of 1 group has a node for every pod. "),
        (2, 2, "0 of 2 groups have a node for every pod. "),
        (1, 2, "1 of 2 groups has a node for every pod. "),
        (0, 2, "2 of 2 groups have a node for every pod. "),
        (0, 0, "0 of 0 GPUs in use on 0 nodes."),
    ],
)
def test_the_first_sentence_agrees_with_its_numbers(unplaced: int, groups: int, told: str) -> None:
    pod = PodBox(name="pod", group="group", engine="engine", gpus=1)
    rows = [
        GroupRow(
            title=f"chat-{at}", serving="chat", verdict="waits", unplaced=(pod,) * (at < unplaced)
        )
        for at in range(groups)
    ]
    page = Reader(draw_page(Picture(title="chat", racks=(), groups=rows)))
    assert any(text.startswith(told) for text in page.texts)


def test_the_svg_file_has_no_overlaps_and_is_xml() -> None:
    for picture in (pictured(1), hostile()):
        svg = read_svg(draw_svg(picture))
        assert troubles(svg) == []


def test_the_page_needs_no_network_and_no_script() -> None:
    page = Reader(draw_page(pictured(20)))
    (policy,) = (
        str(meta["content"]) for meta in page.all("meta")
        if meta.get("http-equiv") == "Content-Security-Policy"
    )  # fmt: skip
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert STYLE in page.texts
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "form", "base"}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        assert all(name not in attributes for name in ("src", "xlink:href"))
        assert str(attributes.get("href", "#")).startswith("#")
    assert "url(" not in STYLE
    assert "@import" not in STYLE


def test_hostile_names_are_texts_of_the_page() -> None:
    page = Reader(draw_page(hostile()))
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "b", "i"}
    assert "<i>Placement</i>" in page.texts
    assert NAMES[0] in page.texts
    assert LONG in page.texts
    assert page.open == []


@pytest.mark.property
@given(name=st.text(st.characters(codec=None), max_size=30))
@example(name="\ud800")
@example(name="\x00")
def test_any_name_gives_a_page(name: str) -> None:
    pod = PodBox(name=name, group=name, engine=name, gpus=1)
    node = NodeBox(name=name, gpus=8, used=1, pods=(pod,), product=name, closed=name)
    picture = Picture(title=name, racks=(RackBox(name=name, tier=1, nodes=(node,)),), groups=())
    page = draw_page(picture)
    page.encode()
    assert Reader(page).open == []
    read_svg(draw_svg(picture))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@for_each("scheme", ["light", "dark"])
def test_texts_have_the_contrast_of_wcag_aa(scheme: str) -> None:
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)")
    found = dict(COLOURS.findall(light))
    if scheme == "dark":
        found |= dict(COLOURS.findall(dark.partition("\nbody")[0]))
    fills = ["paper", "card", "free", "others", "lost", *(f"c{index}" for index in range(8))]
    weak = {fill: contrast(found["ink"], found[fill]) for fill in fills}
    assert {fill: ratio for fill, ratio in weak.items() if ratio < 4.5} == {}
    for background in ("paper", "card"):
        assert contrast(found["quiet"], found[background]) >= 4.5
        assert contrast(found["link"], found[background]) >= 4.5
