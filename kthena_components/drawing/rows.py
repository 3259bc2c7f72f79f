"""Draws the racks of a picture as rows for a terminal. Pure: `rack-1 ████░░░░ 4/8  chat-0`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from kthena_components.core.findings import count_of
from kthena_components.drawing.picture import (
    FREE,
    OTHERS,
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
"""Writes a text in the colour of a state."""
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
    """Leave a text as it is."""
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
    """Return how much of a rack the groups that are asked about hold."""
    held = (pod.gpus + 1 for node in rack.nodes for pod in node.pods if pod.group in asked)
    return sum(held) + sum(node.closed == "lost" for node in rack.nodes)


class _Row:
    """What one row shows."""

    def __init__(self, name: str, racks: Sequence[RackBox], told: Sequence[str]) -> None:
        self.name, self.told, self.is_one = name, told, len(racks) == 1
        self.gpus, self.used = sum(r.gpus for r in racks), sum(r.used for r in racks)
        self.totals = totals_of(list(chain.from_iterable(rack.nodes for rack in racks)))

    @classmethod
    def of(cls, rack: RackBox, names: Mapping[str, str]) -> "_Row":
        """Describe one rack with the groups in it and its nodes that take no pods."""
        told = [*_closed_in(rack.nodes), *_groups_in(rack.nodes, names)]
        return cls(rack.name or _OUTSIDE, [rack], told)

    @classmethod
    def together(cls, racks: Sequence[RackBox]) -> "_Row":
        """Describe all racks that are not drawn one by one."""
        full = sum(rack.used >= rack.gpus > 0 for rack in racks)
        told = [f"{full} of them full"] if full else []
        return cls(count_of(len(racks), "more rack"), racks, told)

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
        return f"{begin}  {self._list(row.told, left)}".rstrip()

    def _list(self, told: Sequence[str], columns: int) -> str:
        """Write as many of some texts as there is room for, and the number of the others."""
        for number in range(len(told), 0, -1):
            others = len(told) - number
            more = [f"and {others} more"] if others else []
            text = ", ".join([*told[:number], *more])
            if width_of(self._fit(text, len(text))) <= columns or number == 1:
                return self._fit(text, columns)
        return ""
