"""Draws a picture as one HTML file that needs no network and no script. Pure.

ElementTree writes the file, so every string is escaped. The policy of the page allows its own style
and nothing else. What the drawings show is also in tables, for screen readers.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from kthena_components.core.findings import count_of
from kthena_components.drawing.picture import (
    FREE,
    OTHERS,
    GroupRow,
    NodeBox,
    Picture,
    PodBox,
    RackBox,
    asked_titles,
    folded,
)
from kthena_components.drawing.rows_and_mermaid import choose
from kthena_components.drawing.svg import (
    BAR,
    STYLE,
    WIDTH,
    Numbers,
    describe_node,
    draw_nodes,
    height_of,
    numbers_of,
    tag,
)

_MOST_NODES = 32
"""Nodes of one rack that are drawn."""
_MOST_GROUPS, _MOST_RACKS, _MOST_WAITING = 40, 40, 12
"""Groups, racks, and groups without a node, that are not folded."""
_SIGNS = {
    "fits": "✓ fits",
    "in part": "… in part",
    "waits": "… waits",
    "never": "✕ never",
    "not checked": "? not checked",
    "runs": "✓ runs",
    "starts": "… starts",
}
_MEANINGS = (
    ("running", "c0", "running"),
    ("placed", "c0", "placed, does not run yet"),
    ("waiting", "c0", "without a node"),
    ("lost", "lost", "lost"),
    (OTHERS, "", "other pods"),
    (FREE, "", "free"),
)


def draw_page(picture: Picture) -> str:
    """Return the page."""
    html = Element("html", {"lang": "en"})
    _head(html, picture)
    body = tag(html, "body")
    tag(body, "a", "Skip to the table of pods", href="#pods", class_="skip")
    _header(body, picture)
    main, numbers = tag(body, "main"), numbers_of(picture.groups)
    _groups(main, picture, numbers)
    _racks(main, picture, numbers)
    _nodes(main, picture)
    return f"<!doctype html>\n{tostring(html, encoding='unicode', method='html')}\n"


def _head(html: Element, picture: Picture) -> None:
    """Write the page's head; its policy allows only its own style."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = tag(html, "head")
    tag(head, "meta", charset="utf-8")
    tag(head, "meta", http_equiv="Content-Security-Policy", content=policy)
    tag(head, "meta", name_="viewport", content="width=device-width, initial-scale=1")
    tag(head, "meta", name_="referrer", content="no-referrer")
    tag(head, "title", picture.title)
    SubElement(head, "style").text = STYLE


def _header(body: Element, picture: Picture) -> None:
    """Write the heading: GPUs in use, groups with a place, and where the data is from."""
    header = tag(body, "header")
    tag(header, "h1", picture.title)
    gpus, used = sum(r.gpus for r in picture.racks), sum(r.used for r in picture.racks)
    nodes = sum(len(rack.nodes) for rack in picture.racks)
    text = f"{used} of {count_of(gpus, 'GPU')} in use on {count_of(nodes, 'node')}."
    if picture.groups:
        placed = sum(not group.unplaced for group in picture.groups)
        of = count_of(len(picture.groups), "group")
        have = "has" if 1 in {placed, len(picture.groups)} else "have"
        text = f"{placed} of {of} {have} a node for every pod. {text}"
    tag(header, "p", text)
    read = f"{picture.taken:%Y-%m-%d %H:%M %Z}".strip() if picture.taken else ""
    origin = ", ".join(filter(None, (picture.source, read and f"read {read}")))
    if origin:
        tag(header, "p", f"Cluster: {origin}", class_="quiet")
    for note in picture.notes:
        tag(header, "p", note)


def _groups(main: Element, picture: Picture, numbers: Numbers) -> None:
    """Write the table of groups; those that wait or change come first."""
    if not picture.groups and not picture.before:
        return
    section = tag(main, "section", aria_labelledby="groups")
    tag(section, "h2", "Groups", id="groups")
    before = {group.title: group for group in picture.before.groups} if picture.before else None
    heads = ["#", "Group", "Made by", "Answer", "GPUs", "Where", "Why"]
    if before is not None:
        heads.insert(3, "Before")
    first = sorted(picture.groups, key=lambda group: (not group.unplaced, not group.changed))
    _group_rows(section, "Groups", heads, first[:_MOST_GROUPS], numbers=numbers, before=before)
    if others := first[_MOST_GROUPS:]:
        details = tag(section, "details")
        tag(details, "summary", count_of(len(others), "more group"))
        _group_rows(details, "More groups", heads, others, numbers=numbers, before=before)
    removed = [group for title, group in (before or {}).items() if title not in numbers]
    if removed:
        tag(section, "h3", "Removed")
        rows = _scrolled_table(section, "Removed groups", ["Group", "Made by", "Before"])
        for group in removed:
            _cells(rows, [group.title, group.serving, _sign(group)])


def _group_rows(
    section: Element,
    name: str,
    heads: Sequence[str],
    groups: Sequence[GroupRow],
    *,
    numbers: Numbers,
    before: dict[str, GroupRow] | None,
) -> None:
    """Write the rows of groups; `numbers` are those in the boxes of the picture."""
    rows = _scrolled_table(section, name, heads)
    for group in groups:
        _group_row(rows, group, str(numbers[group.title]), before)


def _group_row(
    rows: Element, group: GroupRow, number: str, before: dict[str, GroupRow] | None
) -> None:
    """Write the row of a group; with `before`, also its verdict before the change."""
    reason = group.reason
    if group.unplaced:
        reason = f"{count_of(len(group.unplaced), 'pod')} without a node. {reason}".strip()
    cells = [number, group.title, group.serving, _sign(group), str(group.gpus), group.where, reason]
    if before is not None:
        cells.insert(3, _sign(before[group.title]) if group.title in before else "new")
    _cells(rows, cells)


def _sign(group: GroupRow) -> str:
    return _SIGNS.get(group.verdict, group.verdict)


def _scrolled_table(section: Element, name: str, heads: Sequence[str]) -> Element:
    """Add a table that scrolls by itself on a narrow screen, and return its body."""
    place = tag(
        section, "div", class_="scroll", role="region", tabindex="0", aria_label=f"{name}, table"
    )
    table = tag(place, "table")
    row = tag(tag(table, "thead"), "tr")
    for head in heads:
        tag(row, "th", head, scope="col", class_="number" if head in {"#", "GPUs"} else "")
    return tag(table, "tbody")


def _cells(rows: Element, cells: Sequence[str]) -> None:
    """Write a row of strings; numbers, verdicts and the last column have classes of their own."""
    row = tag(rows, "tr")
    for index, text in enumerate(cells):
        name = "verdict" if text in _SIGNS.values() else ""
        if text.isdecimal():
            name = "number"
        elif index == len(cells) - 1 and len(cells) > 3:  # noqa: PLR2004
            name = "wide"
        tag(row, "td", text, class_=name)


def _racks(main: Element, picture: Picture, numbers: Numbers) -> None:
    """Draw the racks that matter most; the others are folded."""
    section = tag(main, "section", aria_labelledby="racks")
    tag(section, "h2", "Racks", id="racks")
    _legend(section)
    shown, others = choose(picture, _MOST_RACKS)
    before = {rack.name: rack for rack in picture.before.racks} if picture.before else None
    grid = tag(section, "div", class_="racks")
    for rack in shown:
        _rack(grid, rack, numbers, before)
    if others:
        details = tag(section, "details")
        full = sum(rack.used >= rack.gpus > 0 for rack in others)
        tag(details, "summary", f"{count_of(len(others), 'more rack')}, {full} of them full")
        rest = tag(details, "div", class_="racks")
        for rack in others:
            _rack(rest, rack, numbers, before)
    _without_node(main, [group for group in picture.groups if group.unplaced], numbers)


def _legend(section: Element) -> None:
    """Write what the colours of the boxes mean."""
    place = tag(section, "ul", class_="legend")
    for state, colour, meaning in _MEANINGS:
        item = tag(place, "li")
        box = tag(item, "svg", viewBox=f"-1 -1 30 {BAR + 2}", width=30, height=BAR + 2,
                  aria_hidden="true")  # fmt: skip
        part = tag(box, "g", class_=f"part {state} {colour}".strip())
        tag(part, "rect", width=28, height=BAR, rx=3)
        tag(item, "span", meaning)
    tag(section, "p", "The number in a box is the number of its group.", class_="quiet")


def _rack(
    grid: Element, rack: RackBox, numbers: Numbers, before: dict[str, RackBox] | None
) -> None:
    """Draw a rack; if its nodes change, before and after."""
    figure = tag(grid, "figure")
    caption = tag(figure, "figcaption")
    tag(caption, "span", rack.name or "In no rack")
    tag(caption, "span", f"{rack.used}/{count_of(rack.gpus, 'GPU')}", class_="quiet")
    if rack.within:
        tag(figure, "p", f"in {', '.join(rack.within)}", class_="quiet")
    old = before.get(rack.name) if before is not None else None
    if old is not None and old.nodes != rack.nodes:
        tag(figure, "p", f"Before: {old.used}/{old.gpus}")
        _drawing(figure, old.nodes, numbers, f"{old.name or 'In no rack'} before the change")
        tag(figure, "p", f"After: {rack.used}/{rack.gpus}")
    _drawing(figure, rack.nodes, numbers, rack.name or "In no rack")


def _drawing(figure: Element, nodes: Sequence[NodeBox], numbers: Numbers, name: str) -> None:
    shown, others = folded(
        nodes, _MOST_NODES, lambda node: any(pod.group in numbers for pod in node.pods)
    )
    drawn = [*shown, *([_together(others)] if others else [])]
    box = f"-1 0 {WIDTH + 2} {height_of(drawn)}"
    svg = tag(figure, "svg", viewBox=box, role="img", aria_label=_description(name, drawn))
    draw_nodes(svg, drawn, numbers)


def _description(name: str, nodes: Sequence[NodeBox]) -> str:
    return ". ".join((name, *map(describe_node, nodes), "The table below lists the pods."))


def _together(nodes: Sequence[NodeBox]) -> NodeBox:
    return NodeBox(
        name=count_of(len(nodes), "more node"),
        gpus=sum(node.gpus for node in nodes),
        used=sum(node.used for node in nodes),
    )


def _without_node(main: Element, groups: Sequence[GroupRow], numbers: Numbers) -> None:
    """Draw the pods that have no node: those of the first groups, and the others folded."""
    if not groups:
        return
    section = tag(main, "section", aria_labelledby="waiting")
    tag(section, "h2", "Pods without a node", id="waiting")
    grid = tag(section, "div", class_="racks")
    for group in groups[:_MOST_WAITING]:
        _unplaced(grid, group, numbers)
    if others := groups[_MOST_WAITING:]:
        details = tag(section, "details")
        tag(details, "summary", count_of(len(others), "more group"))
        rest = tag(details, "div", class_="racks")
        for group in others:
            _unplaced(rest, group, numbers)


def _unplaced(grid: Element, group: GroupRow, numbers: Numbers) -> None:
    """Draw the pods of a group that have no node, one row for each engine."""
    engines: dict[str, list[PodBox]] = {}
    for pod in group.unplaced:
        engines.setdefault(pod.engine, []).append(pod)
    rows = [
        NodeBox(name=engine, gpus=gpus, used=gpus, pods=tuple(pods))
        for engine, pods in engines.items()
        for gpus in [sum(pod.gpus for pod in pods)]
    ]
    figure = tag(grid, "figure")
    caption = tag(figure, "figcaption")
    tag(caption, "span", f"{numbers[group.title]} {group.title}")
    tag(caption, "span", count_of(len(group.unplaced), "pod"), class_="quiet")
    _drawing(figure, rows, numbers, f"{group.title}, without a node")


def _nodes(main: Element, picture: Picture) -> None:
    """Write all nodes and pods as tables: the drawing as text."""
    section = tag(main, "section", aria_labelledby="pods")
    tag(section, "h2", "Pods and nodes as a table", id="pods")
    heads = ["Rack", "Node", "GPUs", "In use", "Product", "Pods"]
    rows = _scrolled_table(section, "Pods and nodes", heads)
    asked = asked_titles(picture.groups)
    for rack in picture.racks:
        for node in rack.nodes:
            name = f"{node.name} ({node.closed})" if node.closed else node.name
            pods = "; ".join(_pod_lines(node.pods, asked))
            gpus, used = str(node.gpus), str(node.used)
            _cells(rows, [rack.name or "none", name, gpus, used, node.product, pods])
    for group in picture.groups:
        if group.unplaced:
            reasons = "; ".join(_pod_lines(group.unplaced, asked))
            _cells(rows, ["", "none", "", "", "", reasons])


def _pod_lines(pods: Sequence[PodBox], asked: frozenset[str]) -> Iterator[str]:
    for pod in sorted(pods, key=lambda pod: pod.group not in asked):
        state = "" if pod.state == "running" else f", {pod.state}"
        yield f"{pod.group} {pod.engine}: {pod.name} ({count_of(pod.gpus, 'GPU')}{state})"
