"""Draws the changed groups of a picture as Mermaid, for a comment on a pull request. Pure.

GitHub renders the block. Its renderer reads at most 50,000 characters and 500 edges.

Source: mermaid v11 packages/mermaid/src/defaultConfig.ts and schemas/config.schema.yaml:
maxTextSize 50000, maxEdges 500.
"""

import re
from collections.abc import Iterator, Sequence

from kthena_components.core.findings import count_of
from kthena_components.core.values.safe_text import visible
from kthena_components.drawing.picture import GroupRow, NodeBox, Picture, RackBox, asked_titles, fit

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
    told = f"{count_of(len(groups) + left_out, 'changed group')} in the racks"
    waiting = sum(group.changed and bool(group.unplaced) for group in picture.groups)
    if waiting:
        told += f", {waiting} with pods that have no node"
    summary = f"<details>\n<summary>Picture: {told}</summary>\n\n"
    return "\n".join((f"{summary}```mermaid", *lines, "```", "", "</details>", ""))


def _lines(picture: Picture, groups: Sequence[GroupRow], left_out: int) -> Iterator[str]:
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
        told = f"{count_of(free, 'GPU')} free"
        yield f"  others[{_label(count_of(others, 'more rack'), told)}]:::others"
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
        told = [*engines][:8]
        if len(engines) > len(told):
            told.append(f"{len(engines) - len(told)} more")
        used = _change(before[node.name].used if node.name in before else None, node.used)
        told_of = f"{used} of {count_of(node.gpus, 'GPU')}"
        yield f"    r{index}n{number}[{_label(node.name, told_of, *told)}]"
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
