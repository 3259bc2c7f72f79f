"""Boxes, strings and arrows on a sheet that fits on a telephone.

A string that is wider than its box is an error, so no figure has a cut or overlapping text.
"""

from collections.abc import Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from kthena_components.core.values.dataclass import dataclass
from kthena_components.drawing.picture import width_of
from kthena_components.drawing.svg import CHAR, STYLE, tag

WIDTH = 400
MARGIN, PADDING, LINE = 12, 8, 16
GAP = 10
_HEAD = 5
_LABEL, _DOT = 240, 4
"""Width of the names of rows in a grid, and the radius of a mark."""
_STYLE = """.arrow { stroke: var(--quiet); fill: none; } .rule { stroke: var(--line); }
.mark { fill: var(--ink); stroke: var(--ink); } .mark.some { fill: none; }
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A box with lines of text, the first one bold, and boxes inside."""

    lines: Sequence[str]
    inside: Sequence["Box"] = ()
    colour: str = ""
    """A class of `page.css`, such as c0; the colour of the paper if empty."""


def begin(title: str, height: int) -> Element:
    """Begin a figure with its title as a heading."""
    root = Element("svg", {
        "xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {height}",
        "width": str(WIDTH), "height": str(height), "role": "img", "aria-labelledby": "title",
    })  # fmt: skip
    tag(root, "title", title, id="title")
    SubElement(root, "style").text = STYLE + _STYLE
    tag(root, "rect", width=WIDTH, height=height, class_="paper")
    write(root, title, MARGIN, MARGIN + LINE - 4, WIDTH - 2 * MARGIN, class_="heading")
    return root


def end(root: Element) -> str:
    """Return a figure as a file."""
    indent(root, " ")
    return f"{tostring(root, encoding='unicode')}\n"


def write(
    parent: Element, text: str, left: float, base: float, room: float, **attributes: object
) -> None:
    """Write a string.

    Raises:
        ValueError: It is wider than its room.
    """
    if width_of(text) * CHAR > room:
        raise ValueError(f"'{text}' needs {width_of(text) * CHAR:.0f} px and has {room:.0f}")
    tag(parent, "text", text, x=left, y=base, **attributes)


def height_of(box: Box) -> int:
    """Return the height of a box with all boxes in it."""
    inside = sum(GAP + height_of(one) for one in box.inside)
    return 2 * PADDING + LINE * len(box.lines) + inside


def draw_box(parent: Element, box: Box, left: int, top: int, width: int) -> int:
    """Draw a box and the boxes in it, one below the other. Return where it ends."""
    height = height_of(box)
    group = tag(parent, "g", class_=f"part {box.colour or 'free'}")
    tag(group, "rect", x=left, y=top, width=width, height=height, rx=4)
    below = top + PADDING
    for number, line in enumerate(box.lines):
        below += LINE
        write(group, line, left + PADDING, below - 4, width - 2 * PADDING,
              class_="name" if number else "heading")  # fmt: skip
    for one in box.inside:
        below = draw_box(parent, one, left + PADDING, below + GAP, width - 2 * PADDING)
    return top + height


def draw_arrow(parent: Element, at: int, top: int, bottom: int) -> None:
    """Draw an arrow down."""
    ends = f"M{at} {top}V{bottom}m-{_HEAD} -{_HEAD}l{_HEAD} {_HEAD}l{_HEAD} -{_HEAD}"
    tag(parent, "path", d=ends, class_="arrow")


def draw_grid(title: str, key: Sequence[str], heads: Sequence[str], rows: Mapping[str, str]) -> str:
    """Return a figure with a row of marks for each name.

    Args:
        title: The heading.
        key: What a full, an open and no mark mean: one line each.
        heads: The names of the columns, written upwards.
        rows: For each name one letter for each column: `+` full, `-` open, a space for none.
    """
    longest = int(max(map(width_of, heads)) * CHAR)
    top = MARGIN + LINE + len(key) * LINE + longest + 2 * PADDING
    root = begin(title, top + LINE * len(rows) + MARGIN)
    below = MARGIN + LINE
    for mark, meaning in zip("+- ", key, strict=True):
        _draw_mark(root, MARGIN + _DOT + 1, below + LINE // 2, mark)
        write(
            root, meaning, MARGIN + LINE, below + LINE - 4, WIDTH - 2 * MARGIN - LINE, class_="name"
        )
        below += LINE
    column = (WIDTH - MARGIN - _LABEL) // len(heads)
    centres = [_LABEL + column * number + column // 2 for number in range(len(heads))]
    for head, at in zip(heads, centres, strict=True):
        place = tag(root, "g", transform=f"translate({at + 4} {top - 6}) rotate(-90)")
        write(place, head, 0, 0, longest, class_="name")
    for number, (name, marks) in enumerate(rows.items()):
        line = top + LINE * number
        tag(root, "path", d=f"M{MARGIN} {line}H{WIDTH - MARGIN}", class_="rule")
        write(root, name, MARGIN, line + LINE - 4, _LABEL - MARGIN, class_="name")
        for mark, at in zip(marks, centres, strict=True):
            _draw_mark(root, at, line + LINE // 2, mark)
    return end(root)


def _draw_mark(parent: Element, left: int, middle: int, mark: str) -> None:
    if mark != " ":
        kind = "mark" if mark == "+" else "mark some"
        tag(parent, "circle", cx=left, cy=middle, r=_DOT, class_=kind)
