"""The texts that objects are read from: files, and what a program rendered from files.

A user cannot open a rendering. So its findings point to the file that the object comes from: to the
line of the field in the same object there, or, in a template, to the only field of that name.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from kthena_components.checker.unread_kinds_and_parts import partial_object, scaffold
from kthena_components.cli.objects import KubeObject, is_wanted, objects_of
from kthena_components.core.findings import Finding
from kthena_components.core.schema.language import MISSING
from kthena_components.core.values.blanks import mark_empty
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Blank
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import Unreadable, read_text, shown_name
from kthena_components.rendering.result import Rendering

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

    @property
    def name(self) -> str:
        """Its name in messages."""
        return shown_name(self.path)

    def opened(self, item: KubeObject) -> KubeObject:
        """Return an object with placeholders for words that a chart's own values leave empty."""
        return item

    def part_of_object(self, item: KubeObject) -> Finding | None:
        """Return a finding for a part of an object that nobody named as a file."""
        return partial_object(item.body) if self.is_walked else None

    def left_open(self, item: KubeObject, finding: Finding) -> str:
        """Say why somebody else fills in what a finding is about; empty if nobody does."""
        is_template = self.is_walked and _TEMPLATE.search(Path(self.path).stem) is not None
        return "in a template" if is_template and item.is_empty(finding.path) else ""

    def place(self, item: KubeObject, path: str) -> Place:
        """Find a field of an object, or the nearest field around it."""
        return self.name, item.line_of(path)

    def about(self, item: KubeObject) -> str:
        """Return the place of an object, for a finding about another object."""
        return f"{self.name}:{item.line}"

    def start(self, line: int) -> Place:
        """Return the place of an object by its line."""
        return self.name, line


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
        return replace(item, body=_open_secret(mark_empty(item.body))) if may else item

    def part_of_object(self, item: KubeObject) -> Finding | None:
        """Return a finding for an object whose spec is still to be filled in."""
        return scaffold(item.body)

    def left_open(self, item: KubeObject, finding: Finding) -> str:
        """Say that a chart was rendered without a value; empty if it needs none."""
        if not self.rendering.may_lack_values:
            return ""
        lacks = item.is_empty(finding.path) or item.is_cut(finding.path)
        lacks = lacks or (finding.seen == MISSING and self._leaves_out(item, finding.path))
        return "with the chart's own values" if lacks else ""

    def _leaves_out(self, item: KubeObject, path: str) -> bool:
        """Return whether a template has a missing field, which other values bring back."""
        key = path.rpartition(".")[2]
        real = None if _has_field(item.body, key) else self._origin(item)
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


def _open_secret(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a Secret that a chart leaves without keys as one whose keys are unknown."""
    has_keys = body.get("data") or body.get("stringData")
    is_open = group_kind(body) == ("", "Secret") and not has_keys
    return {**body, "data": Blank("{}")} if is_open else body


def _has_field(value: object, key: str) -> bool:
    """Return whether an object has a field of a name, at any depth."""
    if isinstance(value, Mapping):
        return key in value or any(_has_field(item, key) for item in value.values())
    return isinstance(value, list) and any(_has_field(item, key) for item in value)


def _name(item: KubeObject) -> str:
    return str(mapping(item.body.get("metadata")).get("name") or "")


def _items(text: str) -> Iterator[KubeObject]:
    for document in read_documents(text, "", is_wanted):
        if isinstance(document, Document):
            yield from objects_of(document)
