"""Draws nodes with their pods as SVG, and a whole picture as one SVG file. Pure.

All places are computed from the number of characters: a monospaced font has one width.
ElementTree writes the file, so every text is escaped. Colours are classes, and `page.css` has them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kthena_components.core.findings import count_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import visible
from kthena_components.drawing.picture import (
    FREE,
    OTHERS,
    GroupRow,
    NodeBox,
    Part,
    Picture,
    PodBox,
    RackBox,
    fit,
    parts_of,
    width_of,
)

STYLE = (Path(__file__).with_name("page.css")).read_text(encoding="utf-8")
WIDTH = 320
"""Width of a rack: it fits on a telephone."""
COLOURS = 8
CHAR = 7.0
"""Width of a character in 11 px: at most 0.62 em in the usual fonts, and a reserve."""
BAR, NAME, GAP = 18, 15, 8
NODE = NAME + BAR + GAP
"""Height of one node: its name, its bar and the space below."""
_SMALLEST_SLOT = 5
_PADDING = 3
_HEADER, _MARGIN = 24, 16

Numbers = Mapping[str, int]
"""The number of each group that `fit` places, by title. It stands in the boxes of its pods."""


def numbers_of(groups: Sequence[GroupRow]) -> Numbers:
    """Number the groups from 1."""
    return {group.title: index for index, group in enumerate(groups, 1)}


def tag(parent: Element, kind: str, text: str = "", **attributes: object) -> Element:
    """Add an element. Attributes are written with `-` for `_`, and without a last `_`."""
    stated = {
        key.rstrip("_").replace("_", "-"): visible(str(value)) for key, value in attributes.items()
    }
    found = SubElement(parent, kind, stated)
    if text:
        found.text = visible(text)
    return found


def height_of(nodes: Sequence[NodeBox]) -> int:
    """Return the height of some nodes."""
    return NODE * len(nodes)


def draw_nodes(parent: Element, nodes: Sequence[NodeBox], numbers: Numbers) -> None:
    """Draw nodes one below the other, from the upper left corner of the parent."""
    for index, node in enumerate(nodes):
        place = tag(parent, "g", transform=f"translate(0 {index * NODE})", class_="node")
        draw_node(place, node, numbers)


def draw_node(parent: Element, node: NodeBox, numbers: Numbers) -> None:
    """Draw a node: its name and GPUs, and below them a bar with its pods."""
    tag(parent, "title", describe_node(node))
    small = sum(pod.gpus == 0 for pod in node.pods)
    count = f"{node.used}/{node.gpus}"
    if small:
        count = f"+{small} without GPU  {count}"
    if node.closed:
        count = f"{node.closed}  {count}"
    count = fit(count, int(WIDTH / CHAR) - 8)
    room = int(WIDTH / CHAR) - width_of(count) - 1
    tag(parent, "text", fit(node.name, room), x=0, y=NAME - 4, class_="name")
    tag(parent, "text", count, x=WIDTH, y=NAME - 4, class_="count", text_anchor="end")
    bar = tag(parent, "g", transform=f"translate(0 {NAME})")
    _draw_bar(bar, node, numbers)


def _draw_bar(parent: Element, node: NodeBox, numbers: Numbers) -> None:
    """Draw the GPUs of a node as a bar of parts: pods and free ones."""
    parts = parts_of(node)
    slots = sum(part.gpus for part in parts)
    if not slots:
        tag(parent, "rect", x=0, y=0, width=WIDTH, height=BAR, class_="none", rx=3)
        return
    slot, left = WIDTH / slots, 0.0
    for part in parts:
        _draw_part(parent, part, left, part.gpus * slot, numbers)
        left += part.gpus * slot


def _draw_part(parent: Element, part: Part, left: float, width: float, numbers: Numbers) -> None:
    """Draw one part of a bar with its label; free GPUs have ticks between them."""
    group = tag(parent, "g", class_=f"part {part.state} {_colour(part.pod, numbers)}".strip())
    tag(group, "title", describe_part(part))
    tag(group, "rect", x=_short(left), y=0, width=_short(width), height=BAR, rx=3)
    slot = width / part.gpus
    if part.pod is None and part.gpus > 1 and slot >= _SMALLEST_SLOT:
        ticks = "".join(f"M{_short(left + slot * at)} 0v{BAR}" for at in range(1, part.gpus))
        tag(group, "path", d=ticks, class_="ticks")
    label = _label(part, int((width - 2 * _PADDING) / CHAR), numbers)
    if label:
        tag(group, "text", label, x=_short(left + width / 2), y=13, text_anchor="middle")


def _colour(pod: PodBox | None, numbers: Numbers) -> str:
    if pod is None:
        return ""
    number = numbers.get(pod.group)
    return OTHERS if number is None else f"c{(number - 1) % COLOURS}"


def _label(part: Part, columns: int, numbers: Numbers) -> str:
    """Return the longest text about a pod that fits into its box; empty if none does."""
    pod = part.pod
    if pod is None:
        return ""
    number, name = numbers.get(pod.group), visible(pod.group.rpartition("/")[2])
    engine = visible(pod.engine)
    texts = [f"{name} {engine}", engine, name]
    if number is not None:
        texts = [*(f"{number} {text}" for text in texts), str(number)]
    return next((text for text in texts if text.strip() and width_of(text) <= columns), "")


def _short(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def describe_node(node: NodeBox) -> str:
    """Describe a node in a sentence."""
    text = f"{node.name}: {node.used} of {count_of(node.gpus, 'GPU')} in use"
    product = f", {node.product}" if node.product else ""
    return f"{text}{product}{f', {node.closed}' if node.closed else ''}"


def describe_part(part: Part) -> str:
    """Describe a part of a bar in a sentence."""
    if part.state == FREE:
        return f"{part.gpus} free"
    if part.pod is None:
        return f"{part.gpus} in use by pods that are not shown"
    return (
        f"{part.pod.group} {part.pod.engine}, pod {part.pod.name}: "
        f"{count_of(part.gpus, 'GPU')}, {part.state}"
    )


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a drawing: the racks in it, and their height."""

    racks: list[RackBox]
    height: int


def draw_svg(picture: Picture, *, columns: int = 2) -> str:
    """Return an SVG file with all racks of a small picture, for a page of documentation."""
    numbers = numbers_of(picture.groups)
    filled = _fill(picture.racks, columns)
    legend = [f"{numbers[g.title]} {g.title}: {g.verdict}" for g in picture.groups]
    width = _MARGIN + len(filled) * (WIDTH + _MARGIN)
    top = _MARGIN + _HEADER * (len(legend) + 1) + _MARGIN // 2
    height = top + max(column.height for column in filled) + _MARGIN if filled else top
    root = Element("svg", {
        "xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {width} {height}",
        "width": str(width), "height": str(height), "role": "img", "aria-labelledby": "title",
    })  # fmt: skip
    tag(root, "title", picture.title, id="title")
    SubElement(root, "style").text = STYLE
    tag(root, "rect", width=width, height=height, class_="paper")
    room = int((width - 2 * _MARGIN) / CHAR)
    for index, line in enumerate([fit(picture.title, room), *(fit(line, room) for line in legend)]):
        tag(root, "text", line, x=_MARGIN, y=_MARGIN + 12 + index * _HEADER,
            class_="heading" if index == 0 else "name")  # fmt: skip
    for index, column in enumerate(filled):
        _draw_column(root, column, _MARGIN + index * (WIDTH + _MARGIN), top, numbers)
    indent(root, " ")
    return f"{tostring(root, encoding='unicode')}\n"


def _fill(racks: Sequence[RackBox], columns: int) -> list[Column]:
    """Put each rack into the shortest column."""
    found = [Column([], 0) for _ in range(max(1, min(columns, len(racks))))]
    for rack in racks:
        index = min(range(len(found)), key=lambda at: found[at].height)
        height = found[index].height + _HEADER + height_of(rack.nodes)
        found[index] = Column([*found[index].racks, rack], height)
    return found


def _draw_column(parent: Element, column: Column, left: int, top: int, numbers: Numbers) -> None:
    """Draw a column of racks from the top; sizes are in pixels."""
    for rack in column.racks:
        place = tag(parent, "g", transform=f"translate({left} {top})")
        count = f"{rack.used}/{rack.gpus}"
        name = fit(rack.name or "in no rack", int(WIDTH / CHAR) - len(count) - 1)
        tag(place, "text", name, x=0, y=12, class_="heading")
        tag(place, "text", count, x=WIDTH, y=12, class_="count", text_anchor="end")
        inside = tag(place, "g", transform=f"translate(0 {_HEADER})")
        draw_nodes(inside, rack.nodes, numbers)
        top += _HEADER + height_of(rack.nodes)
