"""Reads the boxes of a drawing without a browser: from its places and its numbers of characters."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from xml.etree.ElementTree import Element, fromstring

from kthena_components.drawing.picture import width_of
from kthena_components.drawing.svg import BAR, CHAR

_HIGH = 12


@dataclass(frozen=True, slots=True)
class Box:
    kind: str
    text: str
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: "Box") -> bool:
        wide = min(self.right, other.right) - max(self.left, other.left)
        high = min(self.bottom, other.bottom) - max(self.top, other.top)
        return wide > 0.05 and high > 0.05

    def is_in(self, other: "Box") -> bool:
        return (
            self.left >= other.left - 0.05 and self.right <= other.right + 0.05
            and self.top >= other.top - 0.05 and self.bottom <= other.bottom + 0.05
        )  # fmt: skip


def read_svg(text: str) -> Element:
    return fromstring(text)  # noqa: S314 - drawn by these tests


def boxes(element: Element, x: float = 0, y: float = 0) -> Iterator[Box]:
    """Yield the strings and rectangles below an element, with the places that its parents give."""
    if (moved := element.get("transform")) is not None:
        dx, dy = moved.removeprefix("translate(").removesuffix(")").split()
        x, y = x + float(dx), y + float(dy)
    kind = element.tag.rpartition("}")[2]
    left, top = x + float(element.get("x", 0)), y + float(element.get("y", 0))
    if kind == "rect":
        width, height = float(element.get("width", 0)), float(element.get("height", 0))
        yield Box("rect", element.get("class", ""), left, top, left + width, top + height)
    if kind == "text":
        text = element.text or ""
        width = width_of(text) * CHAR
        shift = {"middle": width / 2, "end": width}.get(element.get("text-anchor", ""), 0)
        yield Box("text", text, left - shift, top - _HIGH + 2, left - shift + width, top + 2)
    for child in element:
        yield from boxes(child, x, y)


def troubles(svg: Element) -> list[str]:
    """List what overlaps and what leaves the drawing."""
    left, top, width, height = map(float, svg.get("viewBox", "").split())
    whole = Box("svg", "", left, top, left + width, top + height)
    found = [box for box in boxes(svg) if box.text != "paper"]
    wrong = [f"outside: {box}" for box in found if not box.is_in(whole)]
    texts = [box for box in found if box.kind == "text"]
    rects = [box for box in found if box.kind == "rect"]
    for alike in (texts, rects):
        ordered = sorted(alike, key=lambda box: box.top)
        for one, other in combinations(ordered, 2):
            if one.overlaps(other):
                wrong.append(f"overlap: {one} {other}")
    for text in texts:
        around = [rect for rect in rects if rect.overlaps(text) and rect.bottom - rect.top == BAR]
        wrong += [f"cut: {text}" for rect in around if not text.is_in(rect)]
    return wrong
