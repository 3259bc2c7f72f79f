"""The strings that objects are read from, and the objects in them, with the line of each path.

A string is a file, or what a program rendered from files.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import yaml

from kthena_components.checker.manifest import has_rules, is_compared
from kthena_components.checker.object_name_version_config_map import may_be_wrong
from kthena_components.checker.unread_kinds_and_parts import (
    is_foreign,
    meant_kind,
    partial_object,
    scaffold,
)
from kthena_components.core.engines.dialects import takes_number
from kthena_components.core.engines.placeholders import LATE_VARIABLES
from kthena_components.core.findings import Finding
from kthena_components.core.naming import HELM_RELEASE
from kthena_components.core.objects.engine_detection import may_hold_signs
from kthena_components.core.schema.language import MISSING
from kthena_components.core.values.blanks import mark_blanks, mark_empty, mark_encrypted
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.images import mark_triggered
from kthena_components.core.values.read import group_kind, has_key, has_text, is_map, mapping
from kthena_components.core.values.regex import regex
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import Unreadable, read_text, shown_name
from kthena_components.reading.kustomization import Patch
from kthena_components.rendering.result import Rendering

_LIST = "List"
_DIGITS = 9
_NULL = "tag:yaml.org,2002:null"
_ENDS = frozenset({"", ".", "["})
"""Strings that can follow a key in a path."""


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
        """Return whether a text begins or ends with a separator: one of its parts is empty."""
        node, _ = _follow(self.node, path, 0, self._keys)
        text = node.value if isinstance(node, yaml.ScalarNode) else ""
        return text != text.strip("-_.")

    def named_as_release(self, path: str) -> str:
        """Return a name that the object also has with Helm's own release in front; else nothing.

        Charts name an object by the release alone where that contains the name of the chart.
        """
        node, _ = _follow(self.node, path, 0, self._keys)
        name = node.value if isinstance(node, yaml.ScalarNode) else ""
        return name if name and has_text(self.body, f"{HELM_RELEASE}-{name}") else ""


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
    body = mark_encrypted(document.body)
    body = mark_blanks(body, LATE_VARIABLES, takes_number) if document.may_have_blanks else body
    yield from _objects(body, document.node, document.line, document.shift)


def _objects(body: Any, node: yaml.Node | None, line: int, shift: int) -> Iterator[KubeObject]:
    if not is_map(body):
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


# A user cannot open a rendering. So its findings point to the file that the object comes from: to
# the line of the field in the same object there, or, in a template, to the only field of that name.


Place = tuple[str, int]
"""A file as messages name it, and a line in it."""
_COMMENT = "# Source: "
_TEMPLATE = regex(r"(?<![a-z])(?:template|tmpl|tpl)(?![a-z])")
"""The name of a file that a program completes before it is applied."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file, read as it is."""

    path: str
    rendered_by: tuple[str, ...] = ()
    is_walked: bool = False
    """Whether it was found below a folder, where there may be patches, too."""
    is_base: bool = False
    """Whether it was found there, and a kustomization that was not built may complete it."""
    patched: Mapping[str, Collection[Patch]] = field(default_factory=dict)
    """What such kustomizations change, by the real path of the file with the object."""
    is_of_chart: bool = False
    """Whether it is in the folder of a chart, which is rendered with its values."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        return shown_name(self.path)

    def opened(self, item: KubeObject) -> KubeObject:
        """Return an object with placeholders for words that a chart's own values leave empty."""
        return item

    def part_of_object(self, item: KubeObject) -> Finding | None:
        """Return a finding for a part of an object; the part is not a file that the user named."""
        return partial_object(item.body) if self.is_walked else None

    def left_open(self, item: KubeObject, finding: Finding) -> str:
        """Say why somebody else fills in what a finding is about; empty if nobody does."""
        is_template = self.is_walked and _TEMPLATE.search(Path(self.path).stem) is not None
        return "is empty in a template" if is_template and item.is_empty(finding.path) else ""

    def place(self, item: KubeObject, path: str) -> Place:
        """Find a field of an object, or the nearest field around it."""
        return self.name, item.line_of(path)

    def about(self, item: KubeObject) -> str:
        """Return the place of an object, for a finding about another object."""
        return f"{self.name}:{item.line}"

    def start(self, line: int) -> Place:
        """Return the place of an object by its line."""
        return self.name, line

    is_chart_alone = False
    """Whether it is a chart that no release of the files installs."""

    @property
    def may_be_placed(self) -> bool:
        """Whether a kustomization, or who deploys it, may set the namespace of its objects."""
        return self.is_base


@dataclass(frozen=True, slots=True)
class RenderedSource(Source):
    """The output of a program."""

    rendering: Rendering = field(kw_only=True)
    folders: Sequence[str] = field(kw_only=True)
    """The folders that the user named."""
    _comments: list[tuple[int, str]] = field(default_factory=list)
    _read: dict[str, "_Origin"] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.rendering.name

    def opened(self, item: KubeObject) -> KubeObject:
        """Return an object with placeholders for words that a chart's own values leave empty."""
        may = self.rendering.may_lack_values
        return replace(item, body=mark_empty(item.body)) if may else item

    def part_of_object(self, item: KubeObject) -> Finding | None:
        """Return a finding for an object whose spec is still to be filled in."""
        return scaffold(item.body)

    def left_open(self, item: KubeObject, finding: Finding) -> str:
        """Say that a chart was rendered without a value; empty if it needs none."""
        if self.is_chart_alone and (name := item.named_as_release(finding.path)):
            return f"is {display(name)}, which fits a release with that name"
        if finding.rule == "object-version" and item.body["apiVersion"] in self.rendering.asked:
            return "is chosen by a template that asks the cluster for it"
        if not self.rendering.may_lack_values:
            return ""
        lacks = item.is_empty(finding.path) or item.is_cut(finding.path)
        lacks = lacks or (finding.seen.startswith(MISSING) and self._leaves_out(item, finding.path))
        return "is empty with the chart's own values" if lacks else ""

    def _leaves_out(self, item: KubeObject, path: str) -> bool:
        """Return whether a template has a missing field, which other values bring back."""
        key = path.rpartition(".")[2]
        real = None if has_key(item.body, key) else self._origin(item)
        return real is not None and self._origin_at(real).states(key)

    def place(self, item: KubeObject, path: str) -> Place:
        """Find a field in the file that the object was rendered from."""
        real = self._origin(item)
        if real is None:
            return self.rendering.fallback, 1
        return self._shown(real), self._origin_at(real).line_of(item, path)

    def about(self, item: KubeObject) -> str:
        """Return the file that an object was rendered from."""
        real = self._origin(item)
        return self.rendering.fallback if real is None else self._shown(real)

    def start(self, line: int) -> Place:  # noqa: ARG002 - a line of the rendering
        """Return the place of the chart or the kustomization."""
        return self.rendering.fallback, 1

    @property
    def is_chart_alone(self) -> bool:  # type: ignore[override]
        """Whether it is a chart that no release of the files installs."""
        return self.rendering.is_chart_alone

    @property
    def may_be_placed(self) -> bool:
        """Whether who deploys it may set the namespace of its objects: it is a kustomization."""
        return not (self.rendering.released or self.rendering.is_chart_alone)

    def _origin(self, item: KubeObject) -> str | None:
        """Return the real path of the object's file. A rendering may name files elsewhere: None."""
        real = self.rendering.origin(item.body, self._comment(item.line))
        if real is None or not Path(real).is_relative_to(self.rendering.boundary):
            return None
        try:
            return real if Path(real).is_file() else None
        except OSError:  # the name is too long
            return None

    def _origin_at(self, real: str) -> "_Origin":
        if real not in self._read:
            self._read[real] = _Origin(real)
        return self._read[real]

    def _comment(self, line: int) -> str:
        """Return the last comment above a line that names a template."""
        if not self._comments:
            self._comments.append((0, ""))
            text = read_text(self.path, named=False)
            lines = [] if isinstance(text, Unreadable) else text.split("\n")
            found = ((n, each) for n, each in enumerate(lines, 1) if each.startswith(_COMMENT))
            self._comments.extend(found)
        return self._comments[bisect_right(self._comments, (line + 1, "")) - 1][1]

    def _shown(self, real: str) -> str:
        """Write a real path below the folder that the user named, or below the current folder."""
        for folder in self.folders:
            root = os.path.realpath(folder)
            if Path(real).is_relative_to(root):
                return str(Path(folder, os.path.relpath(real, root)))
        return os.path.relpath(real)


class _Origin:
    """A file that objects were rendered from."""

    def __init__(self, real: str) -> None:
        text = read_text(real, named=False)
        self._text = "" if isinstance(text, Unreadable) else text
        self._items = list(_items(self._text))

    def line_of(self, item: KubeObject, path: str) -> int:
        """Return the line of a field of an object that was rendered from this file."""
        alike = [each for each in self._items if group_kind(each.body) == group_kind(item.body)]
        name = _name(item)
        # An overlay may add a prefix and a suffix to a name.
        named = [each for each in alike if _name(each) and _name(each) in name]
        same = [each for each in named if _name(each) == name] or named or alike
        if len(same) == 1 or (same and same is not alike):
            return same[0].line_of(path)
        return self._only_line(path)

    def states(self, key: str) -> bool:
        """Return whether the file has a field of a name."""
        return bool(self._fields(key))

    def _fields(self, key: str) -> list[re.Match[str]]:
        field = rf"^[ \t-]*[\"']?{re.escape(key)}[\"']?:"
        return list(re.finditer(field, self._text, re.MULTILINE))

    def _only_line(self, path: str) -> int:
        """Return the line of the innermost field of a path whose name a template has only once."""
        for part in reversed(path.split(".")):
            key = part.partition("[")[0]
            found = self._fields(key)
            if key and len(found) == 1:
                return self._text.count("\n", 0, found[0].start()) + 1
        return 1


def _name(item: KubeObject) -> str:
    return str(mapping(item.body.get("metadata")).get("name") or "")


def _items(text: str) -> Iterator[KubeObject]:
    for document in read_documents(text, "", is_wanted):
        if isinstance(document, Document):
            yield from objects_of(document)
