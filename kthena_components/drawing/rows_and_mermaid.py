"""Draws a picture as text: racks as rows for a terminal, changed groups as Mermaid. Pure.

GitHub renders the block. Its renderer reads at most 50,000 characters and 500 edges.

Source: mermaid v11 packages/mermaid/src/defaultConfig.ts and schemas/config.schema.yaml:
maxTextSize 50000, maxEdges 500.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from kthena_components.core.findings import count_of
from kthena_components.core.values.display import visible
from kthena_components.drawing.picture import (
    FREE,
    OTHERS,
    GroupRow,
    NodeBox,
    Picture,
    RackBox,
    asked_titles,
    fit,
    pad,
    shares,
    totals_of,
    width_of,
)

Paint = Callable[[str, str], str]
"""Writes a string in the colour of a state."""
_STATES = (OTHERS, "running", "placed", "waiting", "lost", FREE)
_BLOCKS = dict(zip(_STATES, "█▓▒▚×░", strict=True))
_ASCII = dict(zip(_STATES, "#=+?x.", strict=True))
_MEANINGS = {
    OTHERS: "others", "running": "running", "placed": "placed now", "waiting": "waiting",
    "lost": "lost", FREE: "free",
}  # fmt: skip
_ALWAYS = 12
"""Racks up to this number are all drawn."""
_MOST = 24
_LONGEST_NAME, _LONGEST_BAR, _SHORTEST_BAR = 30, 32, 4
_OUTSIDE = "in no rack"


def no_colour(_state: str, text: str) -> str:
    """Leave a string as it is."""
    return text


def draw_rows(
    picture: Picture, *, width: int = 100, blocks: bool = True, paint: Paint = no_colour
) -> list[str]:
    """Return a row for each rack that matters, one for the others, and the legend.

    Args:
        picture: What is drawn. Its state before the change is left out.
        width: Columns of the terminal.
        blocks: Whether the terminal shows block characters. Else the rows are ASCII.
        paint: Colours a part of a bar.
    """
    if not picture.racks:
        return []
    shown, others = choose(picture)
    names = _names(picture)
    rows = [_Row.of(rack, names) for rack in shown]
    if others:
        rows.append(_Row.together(others))
    signs, form = (_BLOCKS if blocks else _ASCII), _Form(rows, width, blocks=blocks)
    lines = [form.line(row, paint) for row in rows]
    used = {state for row in rows for state, gpus in row.totals.items() if gpus}
    legend = "  ".join(
        f"{paint(state, signs[state])} {_MEANINGS[state]}" for state in _STATES if state in used
    )
    return [*lines, *([legend] if legend else [])]


def choose(picture: Picture, most: int = _MOST) -> tuple[list[RackBox], list[RackBox]]:
    """Return the racks to draw one by one, in their order, and the others."""
    racks = list(picture.racks)
    if len(racks) <= _ALWAYS:
        return racks, []
    asked = asked_titles(picture.groups)
    weights = [_weight(rack, asked) for rack in racks]
    heaviest = sorted(range(len(racks)), key=lambda index: -weights[index])[:most]
    chosen = {index for index in heaviest if weights[index]}
    return (
        [rack for index, rack in enumerate(racks) if index in chosen],
        [rack for index, rack in enumerate(racks) if index not in chosen],
    )


def _weight(rack: RackBox, asked: frozenset[str]) -> int:
    """Return how much of a rack the groups hold that `fit` places."""
    held = (pod.gpus + 1 for node in rack.nodes for pod in node.pods if pod.group in asked)
    return sum(held) + sum(node.closed == "lost" for node in rack.nodes)


class _Row:
    """What one row shows."""

    def __init__(self, name: str, racks: Sequence[RackBox], notes: Sequence[str]) -> None:
        self.name, self.notes, self.is_one = name, notes, len(racks) == 1
        self.gpus, self.used = sum(r.gpus for r in racks), sum(r.used for r in racks)
        self.totals = totals_of(list(chain.from_iterable(rack.nodes for rack in racks)))

    @classmethod
    def of(cls, rack: RackBox, names: Mapping[str, str]) -> "_Row":
        """Describe one rack with the groups in it and its nodes that take no pods."""
        notes = [*_closed_in(rack.nodes), *_groups_in(rack.nodes, names)]
        return cls(rack.name or _OUTSIDE, [rack], notes)

    @classmethod
    def together(cls, racks: Sequence[RackBox]) -> "_Row":
        """Describe all racks that are not drawn one by one."""
        full = sum(rack.used >= rack.gpus > 0 for rack in racks)
        notes = [f"{full} of them full"] if full else []
        return cls(count_of(len(racks), "more rack"), racks, notes)

    @property
    def count(self) -> str:
        """Write the GPUs that are held, and all of them."""
        return f"{self.used}/{self.gpus}"


def _names(picture: Picture) -> dict[str, str]:
    """Name the groups by their titles, without their namespace if they share it."""
    namespaces = {group.title.partition("/")[0] for group in picture.groups}
    short = len(namespaces) == 1
    return {
        group.title: (group.title.partition("/")[2] if short else "") or group.title
        for group in picture.groups
    }


def _groups_in(nodes: Iterable[NodeBox], names: Mapping[str, str]) -> Iterator[str]:
    titles = dict.fromkeys(pod.group for node in nodes for pod in node.pods if pod.group in names)
    return (names[title] for title in titles)


def _closed_in(nodes: Iterable[NodeBox]) -> Iterator[str]:
    for reason, number in Counter(node.closed for node in nodes if node.closed).items():
        yield f"{count_of(number, 'node')} {reason}"


class _Form:
    """The columns of all rows: name, bar, count, and the groups in what is left."""

    def __init__(self, rows: Sequence[_Row], width: int, *, blocks: bool) -> None:
        self._width, self._blocks = width, blocks
        self._count = max(len(row.count) for row in rows)
        longest = max(width_of(self._fit(row.name, _LONGEST_NAME)) for row in rows)
        self._name = max(4, min(longest, width - self._count - _SHORTEST_BAR - 2))
        room = min(_LONGEST_BAR, (width - self._name - self._count - 2) // 2)
        self._most = max((row.gpus for row in rows if row.is_one), default=1)
        self._bar = max(_SHORTEST_BAR, min(room, self._most))

    def _fit(self, text: str, columns: int) -> str:
        if self._blocks:
            return fit(text, columns)
        return fit(text.encode("ascii", "backslashreplace").decode(), columns, "~")

    def line(self, row: _Row, paint: Paint) -> str:
        """Write one row. The bars of all racks have one scale, if every GPU has a cell."""
        fills = not row.is_one or self._most > self._bar
        cells = self._bar if fills else row.gpus
        states = [state for state in _STATES if row.totals.get(state)]
        parts = shares([row.totals[state] for state in states], cells)
        signs = _BLOCKS if self._blocks else _ASCII
        bar = "".join(
            paint(state, signs[state] * part)
            for state, part in zip(states, parts, strict=True)
            if part
        )
        name = pad(self._fit(row.name, self._name), self._name)
        begin = f"{name} {bar}{' ' * (self._bar - sum(parts))} {row.count:>{self._count}}"
        left = self._width - self._name - self._bar - self._count - 4
        return f"{begin}  {self._list(row.notes, left)}".rstrip()

    def _list(self, notes: Sequence[str], columns: int) -> str:
        """Write as many of some strings as there is room for, and the number of the others."""
        for number in range(len(notes), 0, -1):
            others = len(notes) - number
            more = [f"and {others} more"] if others else []
            text = ", ".join([*notes[:number], *more])
            if width_of(self._fit(text, len(text))) <= columns or number == 1:
                return self._fit(text, columns)
        return ""


MOST = 50_000
"""Characters that a block is shorter than."""
_MOST_GROUPS, _MOST_RACKS, _MOST_NODES = 20, 20, 32
"""What a reader can still see in one diagram."""
_LONGEST = 48
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 ./,()\-·…→]")
_TITLES = '%%{init: {"flowchart": {"subGraphTitleMargin": {"top": 4, "bottom": 24}}}}%%'
"""Room for the title of a rack, which has two lines if its nodes are narrower than it."""
_NOWHERE = "nowhere"
_FORMULA = re.compile(r"\$(?=\$)")
_STYLES = """\
  classDef waiting stroke-width:2px,stroke-dasharray:6 4
  classDef others stroke-dasharray:2 3"""
"""Lines only: GitHub's fills are those of the reader's light or dark theme."""


def draw_mermaid(picture: Picture, *, most: int = MOST) -> str:
    """Return a folded block of Markdown with the changed groups; empty if there are none.

    Args:
        picture: What is drawn, with the state before the change if there is one.
        most: Characters that the block is shorter than.
    """
    changed = [group for group in picture.groups if group.changed]
    waiting = [group for group in changed if group.unplaced]
    placed = [group for group in changed if not group.unplaced]
    first = max(_MOST_GROUPS // 2, _MOST_GROUPS - len(placed))
    groups = [*waiting[:first], *placed, *waiting[first:]]
    number = min(len(groups), _MOST_GROUPS)
    while number:
        block = _block(picture, groups[:number], len(groups) - number)
        if len(block) < most:
            return block
        number //= 2
    return ""


def _block(picture: Picture, groups: Sequence[GroupRow], left_out: int) -> str:
    lines = [_TITLES, "flowchart LR", *_lines(picture, groups, left_out), _STYLES]
    counts = f"{count_of(len(groups) + left_out, 'changed group')} in the racks"
    waiting = sum(group.changed and bool(group.unplaced) for group in picture.groups)
    if waiting:
        counts += f", {waiting} with pods that have no node"
    summary = f"<details>\n<summary>Picture: {counts}</summary>\n\n"
    return "\n".join((f"{summary}```mermaid", *lines, "```", "", "</details>", ""))


def _lines(picture: Picture, groups: Sequence[GroupRow], left_out: int) -> Iterator[str]:
    """Yield the lines of the Mermaid diagram: racks, nodes and groups."""
    asked = asked_titles(groups)
    before = {node.name: node for rack in _racks_before(picture) for node in rack.nodes}
    racks = [rack for rack in picture.racks if _nodes_of(rack, asked)]
    shown = sorted(racks, key=lambda rack: -_pods_in(rack, asked))[:_MOST_RACKS]
    held = [rack for rack in racks if rack in shown]
    is_small = sum(len(_nodes_of(rack, asked)) for rack in held) <= _MOST_NODES
    for index, rack in enumerate(held):
        if is_small:
            yield from _rack_with_nodes(index, rack, asked, before)
        else:
            yield f"  r{index}[{_label(rack.name or 'in no rack', _counts(rack, before))}]"
    others = len(picture.racks) - len(held)
    if others:
        free = sum(rack.gpus - rack.used for rack in picture.racks if rack not in held)
        free_gpus = f"{count_of(free, 'GPU')} free"
        yield f"  others[{_label(count_of(others, 'more rack'), free_gpus)}]:::others"
    for index, group in enumerate(groups):
        yield from _group(index, group, held)
    if any(group.unplaced for group in groups):
        yield f"  {_NOWHERE}[{_label('no node')}]:::waiting"
    if left_out:
        yield f"  more[{_label(count_of(left_out, 'more changed group'))}]:::others"


def _racks_before(picture: Picture) -> Sequence[RackBox]:
    return picture.before.racks if picture.before else ()


def _nodes_of(rack: RackBox, asked: frozenset[str]) -> list[NodeBox]:
    return [node for node in rack.nodes if any(pod.group in asked for pod in node.pods)]


def _pods_in(rack: RackBox, asked: frozenset[str]) -> int:
    return sum(pod.group in asked for node in rack.nodes for pod in node.pods)


def _rack_with_nodes(
    index: int, rack: RackBox, asked: frozenset[str], before: dict[str, NodeBox]
) -> Iterator[str]:
    """Write a rack as a box around the nodes that changed groups use."""
    title = f"{fit(rack.name or 'in no rack', _LONGEST // 2)} · {_counts(rack, before)}"
    yield f"  subgraph r{index}[{_label(title)}]"
    for number, node in enumerate(_nodes_of(rack, asked)):
        engines = dict.fromkeys(
            f"{pod.group.rpartition('/')[2]} {pod.engine}"
            for pod in node.pods
            if pod.group in asked
        )
        listed = [*engines][:8]
        if len(engines) > len(listed):
            listed.append(f"{len(engines) - len(listed)} more")
        used = _change(before[node.name].used if node.name in before else None, node.used)
        used_of = f"{used} of {count_of(node.gpus, 'GPU')}"
        yield f"    r{index}n{number}[{_label(node.name, used_of, *listed)}]"
    yield "  end"


def _counts(rack: RackBox, before: dict[str, NodeBox]) -> str:
    seen = [before[node.name].used for node in rack.nodes if node.name in before]
    used = _change(sum(seen) if before else None, rack.used)
    return f"{used} of {count_of(rack.gpus, 'GPU')}"


def _change(before: int | None, now: int) -> str:
    return str(now) if before in {None, now} else f"{before} → {now}"


def _group(index: int, group: GroupRow, racks: Sequence[RackBox]) -> Iterator[str]:
    """Write a group and its edges to the racks that hold its pods."""
    yield f"  g{index}([{_label(group.title, group.verdict)}])"
    for number, rack in enumerate(racks):
        pods = sum(pod.group == group.title for node in rack.nodes for pod in node.pods)
        if pods:
            yield _edge(index, pods, f"r{number}")
    if group.unplaced:
        yield _edge(index, len(group.unplaced), _NOWHERE)


def _edge(group: int, pods: int, to: str) -> str:
    return f"  g{group} -->|{_label(count_of(pods, 'pod'))}| {to}"


def _label(*lines: str) -> str:
    """Quote the lines of a label, so that nothing in them is syntax, a tag or an entity."""
    return f'"{"<br/>".join(_escape(fit(line, _LONGEST)) for line in lines)}"'


def _escape(text: str) -> str:
    """Write every character that is not plain by its number, which Mermaid decodes.

    It looks for formulas between $$ after that, so two of them are kept apart.

    Source: mermaid v11 packages/mermaid/src/utils.ts, encodeEntities and decodeEntities.
    """
    return _NOT_PLAIN.sub(lambda found: f"#{ord(found[0])};", _FORMULA.sub("$ ", visible(text)))
