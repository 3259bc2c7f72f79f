"""Limits the cost of a hostile document to its length.

libyaml's binding composes nested nodes by recursion in C, which no Python limit stops, and aliases
expand a short text to a huge or endless one. Both are checked before anything is built.
"""

from collections.abc import Iterator
from typing import Any

import yaml

from kthena_components.core.values.regex import regex
from kthena_components.reading.loader import Loader

MOST_DEPTH = 250
"""Maximum depth of maps and lists in a document."""
MOST_NODES = 1_000_000
"""Maximum nodes of a document with aliases, each counted as often as it is used."""
_FEW_BRACKETS = MOST_DEPTH // 2
# A pattern that starts with a line feed is searched much faster than one with ^.
_DEEP_LINE, _DEEP_FIRST = (regex(rf"{start}[ \t?:-]{{{MOST_DEPTH // 4}}}") for start in (r"\n", ""))
_ANCHOR, _ALIAS = regex(r"&[\w-]"), regex(r"\*[\w-]")


class LimitError(ValueError):
    """A document exceeds a limit."""

    def __init__(self, text: str, mark: Any = None) -> None:
        """Keep the position, as PyYAML's own errors do."""
        super().__init__(text)
        self.problem_mark = mark


def check_depth(text: str) -> None:
    """Reject a document that is nested too deeply, before it is composed.

    Each level needs a bracket, or a column at the start of a line that at most two levels share.
    Few of both are sufficient; otherwise the document is read event by event.
    """
    brackets = text.count("[") + text.count("{")
    if brackets >= _FEW_BRACKETS:
        brackets -= text.count("[]") + text.count("{}")
    deep = _DEEP_FIRST.match(text) or _DEEP_LINE.search(text)
    if brackets < _FEW_BRACKETS and not deep:
        return
    depth = 0
    for event in yaml.parse(text, Loader=Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MOST_DEPTH:
                raise _too_deep(event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def check_json_depth(text: str, body: object) -> None:
    """Reject JSON that is nested too deeply."""
    if text.count("[") + text.count("{") <= MOST_DEPTH:
        return
    level, depth = [body], 0
    while level := [item for part in level for item in _items(part)]:
        depth += 1
        if depth > MOST_DEPTH:
            raise _too_deep()


def _items(part: object) -> Iterator[object]:
    if isinstance(part, dict):
        yield from part.values()
    elif isinstance(part, list):
        yield from part


def check_aliases(text: str, root: yaml.Node) -> None:
    """Reject a document that contains itself, or that its aliases make too large."""
    if not (_ALIAS.search(text) and _ANCHOR.search(text)):
        return
    sizes: dict[yaml.Node, int] = {}
    heights: dict[yaml.Node, int] = {}
    path: dict[yaml.Node, Iterator[yaml.Node]] = {root: _parts(root)}
    while path:
        node = next(reversed(path))
        part = next(path[node], None)
        if part is None:
            del path[node]
            sizes[node] = 1 + sum(sizes[each] for each in _parts(node))
            heights[node] = 1 + max((heights[each] for each in _parts(node)), default=-1)
            if heights[node] > MOST_DEPTH:
                raise _too_deep(node.start_mark)
            if sizes[node] > MOST_NODES:
                seen = f"expands to more than {MOST_NODES:,} values by its aliases, the limit"
                raise LimitError(f"{seen} of a document", node.start_mark)
        elif part in path:
            raise LimitError("contains itself, by an alias inside its own anchor", part.start_mark)
        elif part not in sizes:
            if len(path) >= MOST_DEPTH:
                raise _too_deep(part.start_mark)
            path[part] = _parts(part)


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _too_deep(mark: Any = None) -> LimitError:
    return LimitError(f"is nested more deeply than {MOST_DEPTH} levels, the limit", mark)
