"""From documents to Kubernetes objects, and from a finding's path to its line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import yaml

from kthena_components.backends.readers import has_rules, is_compared
from kthena_components.cli.documents import Document

_LIST = "List"
_DIGITS = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeObject:
    """One object, and where it stands."""

    body: Mapping[str, Any]
    line: int
    node: yaml.Node | None = None
    shift: int = 0

    def line_of(self, path: str) -> int:
        """Find the line of a finding's path, or of the nearest part around it that is there."""
        return _line_of(self.node, path, self.line - self.shift - 1) + self.shift + 1


def is_wanted(version: object, kind: object) -> bool:
    """Tell whether an object may have to be judged: there are rules for it, or it is a list."""
    return is_judged(version, kind) or (isinstance(kind, str) and kind.endswith(_LIST))


def is_judged(version: object, kind: object) -> bool:
    """Tell whether there are rules for a kind, alone or among the others of a cluster."""
    return isinstance(version, str) and isinstance(kind, str) and _has_reader(version, kind)


@lru_cache(maxsize=1024)
def _has_reader(version: str, kind: str) -> bool:
    body = {"apiVersion": version, "kind": kind}
    return has_rules(body) or is_compared(body)


def objects_of(document: Document) -> Iterator[KubeObject]:
    """Give the objects of a document; those of a list one by one, and none if it holds none."""
    body, node = document.body, document.node
    yield from _objects(body, node, document.line, document.shift)


def _objects(body: Any, node: yaml.Node | None, line: int, shift: int) -> Iterator[KubeObject]:
    if not isinstance(body, Mapping):
        return
    version, kind, items = body.get("apiVersion"), body.get("kind"), body.get("items")
    if not (isinstance(version, str) and isinstance(kind, str)):
        return
    if not (kind.endswith(_LIST) and isinstance(items, list)):
        yield KubeObject(body=body, line=line, node=node, shift=shift)
        return
    typed = {} if kind == _LIST else {"apiVersion": version, "kind": kind.removesuffix(_LIST)}
    listed = _child(node, "items")
    nodes = listed.value if isinstance(listed, yaml.SequenceNode) else []
    for item, part in zip_longest(items, nodes[: len(items)]):
        at = line if part is None else part.start_mark.line + shift + 1
        yield from _objects({**typed, **item} if isinstance(item, Mapping) else {}, part, at, shift)


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Find what a map holds under a key; of doubles the last, as it is read."""
    found = None
    for name, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if name.value == key:
            found = value
    return found


def _line_of(node: yaml.Node | None, path: str, line: int) -> int:
    """Walk down as far as the path leads. A key may have dots in it, so the longest is tried."""
    while node is not None and path:
        found: yaml.Node | None = None
        if isinstance(node, yaml.SequenceNode):
            index, _, path = path.removeprefix("[").partition("]")
            if index.isdecimal() and len(index) <= _DIGITS and int(index) < len(node.value):
                found = node.value[int(index)]
                line = found.start_mark.line
        elif isinstance(node, yaml.MappingNode):
            longest = 0
            for name, value in node.value:
                length = len(name.value)
                if longest < length and _begins(path, name.value):
                    longest, found, line = length, value, name.start_mark.line
            path = path[longest:]
        node, path = found, path.removeprefix(".")
    return line


def _begins(path: str, key: object) -> bool:
    if not (isinstance(key, str) and path.startswith(key)):
        return False
    return path[len(key) : len(key) + 1] in {"", ".", "["}
