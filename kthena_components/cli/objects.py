"""Splits documents into Kubernetes objects, and finds the line of a finding's path."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import yaml

from kthena_components.checker.manifest import has_rules, is_compared
from kthena_components.checker.object_name import may_be_wrong
from kthena_components.checker.unread_kinds_and_parts import is_foreign, meant_kind
from kthena_components.core.engines.dialects import takes_number
from kthena_components.core.engines.placeholders import LATE_VARIABLES
from kthena_components.core.objects.engine_detection import may_hold_signs
from kthena_components.core.values.blanks import mark_blanks
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import mark_triggered
from kthena_components.core.values.read import group_kind
from kthena_components.reading.documents import Document

_LIST = "List"
_DIGITS = 9
_NULL = "tag:yaml.org,2002:null"
_ENDS = frozenset({"", ".", "["})
"""Texts that can follow a key in a path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeObject:
    """One object with its place in the file."""

    body: Mapping[str, Any]
    line: int
    node: yaml.Node | None = None
    shift: int = 0
    _keys: dict[int, "_Keys"] = field(default_factory=dict, compare=False)
    """Cached keys of the object's maps, by the id of the map."""

    def line_of(self, path: str) -> int:
        """Find the line of a finding's path, or of its nearest parent that exists."""
        start = self.line - self.shift - 1
        return _follow(self.node, path, start, self._keys)[1] + self.shift + 1

    def is_empty(self, path: str) -> bool:
        """Return whether the object has a field at a path, without a value or with an empty one."""
        node, _ = _follow(self.node, path, 0, self._keys)
        return node is not None and (node.tag == _NULL or not node.value)

    def is_cut(self, path: str) -> bool:
        """Return whether a text begins or ends with what joins two parts, of which one is empty."""
        node, _ = _follow(self.node, path, 0, self._keys)
        text = node.value if isinstance(node, yaml.ScalarNode) else ""
        return text != text.strip("-_.")


class _Keys:
    """The keys of a map. Of duplicate keys, the first one counts."""

    def __init__(self, node: yaml.MappingNode) -> None:
        """Collect the keys of a map that are strings."""
        self._found: dict[str, tuple[yaml.Node, int]] = {}
        for name, value in node.value:
            if isinstance(name.value, str) and name.value:
                self._found.setdefault(name.value, (value, name.start_mark.line))
        self._lengths = sorted({len(key) for key in self._found}, reverse=True)

    def longest(self, path: str) -> tuple[str, yaml.Node, int] | None:
        """Find the longest key at the start of a path. A key may contain dots."""
        for length in self._lengths:
            key = path[:length] if path[length : length + 1] in _ENDS else ""
            if len(key) == length and key in self._found:
                return key, *self._found[key]
        return None


def is_wanted(version: object, kind: object, text: str) -> bool:
    """Tell whether an object may have to be checked.

    There are rules for it, or it is a list, or nobody knows its kind and its text has words of an
    engine or of accelerators, or its name may be wrong.
    """
    if is_checked(version, kind) or (isinstance(kind, str) and kind.endswith(_LIST)):
        return True
    body = {"apiVersion": version, "kind": kind}
    if is_foreign(body) and (may_hold_signs(text) or meant_kind(body) is not None):
        return True
    return may_be_wrong(group_kind(body), text)


def is_checked(version: object, kind: object) -> bool:
    """Return whether a kind has rules, for one object or for all objects together."""
    return isinstance(version, str) and isinstance(kind, str) and _has_reader(version, kind)


@lru_cache(maxsize=1024)
def _has_reader(version: str, kind: str) -> bool:
    body = {"apiVersion": version, "kind": kind}
    return has_rules(body) or is_compared(body)


def objects_of(document: Document) -> Iterator[KubeObject]:
    """Yield the objects of a document, and the items of a list one by one."""
    body = document.body
    body = mark_blanks(body, LATE_VARIABLES, takes_number) if document.may_have_blanks else body
    yield from _objects(body, document.node, document.line, document.shift)


def _objects(body: Any, node: yaml.Node | None, line: int, shift: int) -> Iterator[KubeObject]:
    if not isinstance(body, Mapping):
        return
    version, kind, items = body.get("apiVersion"), body.get("kind"), body.get("items")
    if not (isinstance(version, str) and isinstance(kind, str)):
        return
    if not isinstance(items, list):  # kubectl takes any object with items for a list
        yield KubeObject(body=mark_triggered(body), line=line, node=node, shift=shift)
        return
    typed = {} if kind == _LIST else {"apiVersion": version, "kind": kind.removesuffix(_LIST)}
    listed = _child(node, "items")
    nodes = listed.value if isinstance(listed, yaml.SequenceNode) else []
    for item, part in zip_longest(items, nodes[: len(items)]):
        at = line if part is None else part.start_mark.line + shift + 1
        yield from _objects({**typed, **item} if isinstance(item, Mapping) else {}, part, at, shift)


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Find the value of a key. Of duplicate keys, the last one counts, as in the parsed body."""
    found = None
    for name, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if name.value == key:
            found = value
    return found


def _follow(
    node: yaml.Node | None, path: str, line: int, keys: dict[int, _Keys]
) -> tuple[yaml.Node | None, int]:
    """Follow a path as far as it exists. Returns its node, None if it does not, and the line."""
    while node is not None and path:
        found: yaml.Node | None = None
        if isinstance(node, yaml.SequenceNode):
            index, _, path = path.removeprefix("[").partition("]")
            if index.isdecimal() and len(index) <= _DIGITS and int(index) < len(node.value):
                found = node.value[int(index)]
                line = found.start_mark.line
        elif isinstance(node, yaml.MappingNode):
            if id(node) not in keys:
                keys[id(node)] = _Keys(node)
            longest = keys[id(node)].longest(path)
            if longest is not None:
                key, found, line = longest
                path = path[len(key) :]
        node, path = found, path.removeprefix(".")
    return node, line
