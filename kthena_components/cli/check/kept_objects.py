"""Checks all objects together after all files have been read.

Until then it keeps a few hundred bytes per object, without command lines, values of Secrets or line
numbers. It reads a file again to find the lines of its findings.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from typing import Any

from kthena_components.checker.check_cluster_objects import (
    ReadObjects,
    StackOptions,
    check_engines,
    compare,
)
from kthena_components.checker.cluster_rules import without_contrary
from kthena_components.checker.manifest import CheckedObject, is_compared, reduce_object
from kthena_components.checker.members import read_engine_part_of
from kthena_components.checker.waivers import WaiverEntry, annotated, waive
from kthena_components.cli.sources import KubeObject, Source, is_wanted, objects_of
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.serving import GpuDemand
from kthena_components.core.facts.split_engines import EnginePart
from kthena_components.core.findings import READING, RULE_FAULT, Finding, Level, fault
from kthena_components.core.objects.cluster_objects import Ports
from kthena_components.core.objects.object import read_object
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, mapping
from kthena_components.core.values.regex import regex
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.systems.native.facts import GroupMember, read_part

_OPEN, _CLOSE = "\ue002", "\ue003"
OBJECT_IN_TEXT = regex(f"{_OPEN}([0-9]{{1,9}})(?:-([0-9]{{1,9}}))?{_CLOSE}")
"""An object in a path or a string of a rule, as `path_of_object` writes it."""


def path_of_object(number: int, source: int | None = None) -> str:
    """Return the path of an object for the rules. No file name can contain it.

    Rules also write it into their strings. The file and the line take its place in the output.

    Args:
        number: The number of the object, among all or in its source.
        source: The number of its source. None: the object is numbered among all.
    """
    return f"{_OPEN}{number}{_CLOSE}" if source is None else f"{_OPEN}{source}-{number}{_CLOSE}"


def _numbered_among_all(part: EnginePart, number: int) -> EnginePart:
    """Return a part of an engine with the number of its object among those of all sources."""
    return replace(part, path=f"{path_of_object(number)}{OBJECT_IN_TEXT.sub('', part.path)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedObject:
    """The part of an object that is kept."""

    source: int
    """The number of its source."""
    line: int
    shift: int
    number: int
    """Its index among the objects with the same file and shift."""
    place: str
    """Its file and line."""
    body: Mapping[str, Any]
    part: GroupMember | None
    held: GpuDemand | None
    ports: Ports
    has_lines: bool
    engine_part: EnginePart | None = None
    """Its part of an engine of several objects."""
    is_foreign: bool = False
    """Whether it has no rules, and only its kind is kept."""
    is_open: bool = False
    """Whether it states no namespace, and a kustomization, or who deploys it, may set one."""

    @property
    def shared_place(self) -> str:
        """Its place; empty if it may be in any namespace."""
        return "" if self.is_open else self.place

    def identity(self) -> tuple[object, ...] | None:
        """Return the key that is unique in a cluster, or None for an object without a name."""
        metadata = mapping(self.body.get("metadata"))
        name, space = metadata.get("name"), metadata.get("namespace")
        if not (isinstance(name, str) and (space is None or isinstance(space, str))):
            return None
        return group_kind(self.body), space or "default", name


@dataclass(slots=True)
class KeptObjects:
    """The reduced objects of one source."""

    source: int
    """Its number."""
    whole: bool = False
    context: Context = NO_CONTEXT
    """The GPUs that the user names, and the objects that others name."""
    kept: list[ReducedObject] = field(default_factory=list)
    said: set[int] = field(default_factory=set)
    """Hashes of the findings in single objects."""
    _last: tuple[int, int] = (-1, 0)

    def keep(
        self,
        place: str,
        shift: int,
        item: KubeObject,
        checked: CheckedObject,
        *,
        may_be_placed: bool = False,
    ) -> list[Finding]:
        """Keep the fields that the rules over all objects need. Return a finding if that fails.

        `may_be_placed` says that a kustomization, or who deploys it, may set the namespace.
        """
        number = self._number(shift)
        if not is_compared(item.body):
            return []
        try:
            path = path_of_object(len(self.kept), self.source)
            found = checked.found or read_object(item.body, context=self.context)
            part = read_part(found, path)
            engine_part = read_engine_part_of(item.body, path, self.context)
            body = reduce_object(item.body, found)
        except Exception as error:  # noqa: BLE001 - the other objects must still be checked
            return [fault(READING, error)]
        self.said.update(hash((finding.rule, finding.seen)) for finding in checked.findings)
        self.kept.append(
            ReducedObject(
                source=self.source,
                line=item.line,
                shift=shift,
                number=number,
                place=place,
                body=body,
                part=part,
                held=checked.demand,
                ports=checked.ports,
                has_lines=item.node is not None,
                engine_part=engine_part,
                is_open=may_be_placed and mapping(body.get("metadata")).get("namespace") is None,
            )
        )
        return []

    def pass_over(self, place: str, shift: int, item: KubeObject) -> None:
        """Keep only the kind of an object without rules, because it may create pods."""
        number = self._number(shift)
        if self.whole:
            body = {key: item.body.get(key) for key in ("apiVersion", "kind")}
            kept = ReducedObject(
                source=self.source, line=item.line, shift=shift, number=number,
                place=place, body=body, part=None, held=None, ports={}, has_lines=False,
                is_foreign=True,
            )  # fmt: skip
            self.kept.append(kept)

    def _number(self, shift: int) -> int:
        """Count the objects of one document."""
        last, number = self._last
        self._last = (shift, number + 1 if last == shift else 0)
        return self._last[1]


_ASKED = frozenset({"gpu-budget", "surge-needs-spare-gpus", "gpu-type-allowed", RULE_FAULT})


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedFinding:
    """A finding about one object, or about all objects of some files."""

    kept: ReducedObject
    file: str
    line: int
    finding: Finding
    of_all: bool = False


@dataclass(slots=True)
class AllObjects:
    """The objects of all files."""

    sources: Sequence[Source]
    asked: StackOptions
    today: date | None = None
    """The date for expiring waivers. Without it, no waiver applies."""
    read: Callable[[str], str | Unreadable] = read_text
    """Reads a file again."""
    _kept: list[ReducedObject] = field(default_factory=list)
    _said: set[int] = field(default_factory=set)
    _at: dict[tuple[int, int], int] = field(default_factory=dict)
    """The numbers of objects by the numbers of their sources and in them."""
    _foreign: set[tuple[object, object]] = field(default_factory=set)
    _stated: dict[int, dict[str, list[WaiverEntry]]] = field(default_factory=dict)

    def add(self, found: KeptObjects) -> None:
        """Add the objects of the next source. Of each kind without rules, one is enough."""
        self._said |= found.said
        for number, one in enumerate(found.kept):
            kind = one.body.get("apiVersion"), one.body.get("kind")
            if one.is_foreign and kind in self._foreign:
                continue
            if one.is_foreign:
                self._foreign.add(kind)
            self._at[found.source, number] = len(self._kept)
            self._kept.append(one)

    def source(self, one: ReducedObject) -> Source:
        """Return the source of an object."""
        return self.sources[one.source]

    def check(self) -> Iterator[LocatedFinding]:
        """Check the objects of each cluster together, and yield the findings by file."""
        findings = [one for cluster in self._clusters() for one in self._check(*cluster)]
        by_file: dict[str, list[LocatedFinding]] = {}
        for one in sorted(findings, key=lambda one: not one.of_all):
            by_file.setdefault(self.source(one.kept).path, []).append(one)
        for found in by_file.values():
            yield from self._with_lines(self.source(found[0].kept), found)

    def _clusters(self) -> Iterator[tuple[list[int], StackOptions]]:
        """Yield the numbers of the objects that may be in the same cluster, and the options.

        If two files contain the same object, such as in folders per environment, each folder is
        one cluster. If two files of one folder contain it, each file of that folder is one. With
        `whole`, all objects are in one cluster, but for further renderings of the same ones.
        """
        numbers = list(range(len(self._kept)))
        if self.asked.whole:
            beside = self._rendered_again(numbers)
            yield [each for each in numbers if each not in beside], self.asked
            again = {self._kept[each].source for each in beside}
            numbers = [each for each in numbers if self._kept[each].source in again]
            for rendering in self._by(numbers, str):
                yield rendering, replace(self.asked, whole=False)
        elif not self._clash(numbers):
            yield numbers, self.asked
        else:
            for folder in self._by(numbers, os.path.dirname):
                parts = self._by(folder, str) if self._clash(folder) else [folder]
                yield from ((part, self.asked) for part in parts)

    def _rendered_again(self, numbers: Iterable[int]) -> set[int]:
        """Return the objects that another rendering also contains.

        The last rendering of a file's object is kept; it belongs to a release if there is one. Two
        whose namespaces are not known may be in two. A chart that no release installs is another
        cluster if an object of it is also elsewhere.
        """
        named = {each: key for each in numbers if (key := self._kept[each].identity()) is not None}
        last = {(key, self._kept[each].shared_place): each for each, key in named.items()}
        alone = self._charts_beside(named)
        again = {each for each in numbers if self._kept[each].source in alone}
        for each, key in named.items():
            one = self._kept[each]
            if self._kept[last[key, one.shared_place]].source != one.source:
                again.add(each)
        return again

    def _charts_beside(self, named: Mapping[int, object]) -> set[int]:
        """Return the sources that are charts without a release, of which an object is elsewhere."""
        owners: dict[object, int] = {}
        charts = {each for each in named if self.source(self._kept[each]).is_chart_alone}
        for each, key in named.items():
            if each not in charts:
                owners[key] = self._kept[each].source
        beside: set[int] = set()
        for each in sorted(charts):
            source = self._kept[each].source
            if owners.setdefault(named[each], source) != source:
                beside.add(source)
        return beside

    def _by(self, numbers: list[int], key: Any) -> Iterator[list[int]]:
        parts: dict[object, list[int]] = {}
        for number in numbers:
            parts.setdefault(key(self.source(self._kept[number]).path), []).append(number)
        yield from parts.values()

    def _clash(self, numbers: list[int]) -> bool:
        """Return whether two files of these have an object of the same identity."""
        files: dict[object, str] = {}
        for number in numbers:
            kept = self._kept[number]
            identity = kept.identity()
            path = self.source(kept).path
            if identity and files.setdefault(identity, path) != path:
                return True
        return False

    def _check(self, numbers: list[int], asked: StackOptions) -> Iterator[LocatedFinding]:
        if not numbers:
            return
        kept = [self._kept[number] for number in numbers]
        for finding in self._findings(kept, numbers, asked):
            if hash((finding.rule, finding.seen)) not in self._said:
                yield self._located(finding, kept[0])

    def _located(self, finding: Finding, first: ReducedObject) -> LocatedFinding:
        """Find the object of a finding by its path. One about all objects gets the first object."""
        named = replace(
            finding, seen=self._with_places(finding.seen), remedy=self._with_places(finding.remedy)
        )
        match, owner = OBJECT_IN_TEXT.match(finding.path), first
        if match is not None:
            owner = self._owner(match) or first
            below = finding.path[match.end() :].removeprefix(".")
            named = self._waived(replace(named, path=below), owner)
        file, line = self.source(owner).start(owner.line)
        return LocatedFinding(kept=owner, file=file, line=line, finding=named, of_all=match is None)

    def _waived(self, finding: Finding, owner: ReducedObject) -> Finding:
        """Apply the waivers of the object. Invalid waivers are reported with the single object."""
        if self.today is None:
            return finding
        if id(owner) not in self._stated:
            by_rule = self._stated[id(owner)] = {}
            for entry in annotated(owner.body):
                by_rule.setdefault(entry.rule, []).append(entry)
        stated = self._stated[id(owner)].get(finding.rule, [])
        return waive([finding], stated, self.today)[0]

    def _findings(
        self, kept: Sequence[ReducedObject], numbers: Sequence[int], asked: StackOptions
    ) -> list[Finding]:
        """Check the kept objects together; findings name an object by its number."""
        objects = ReadObjects(
            bodies=[one.body for one in kept],
            paths=[path_of_object(number) for number in numbers],
            members=[one.part for one in kept if one.part is not None],
            engine_parts=[
                _numbered_among_all(one.engine_part, number)
                for one, number in zip(kept, numbers, strict=True)
                if one.engine_part is not None
            ],
            held=[(i, one.held) for i, one in enumerate(kept) if one.held is not None],
            sources=[self.source(one).path for one in kept],
            ports={i: one.ports for i, one in enumerate(kept)},
        )
        found = check_engines(objects, complete=asked.whole)
        found += self._sure(compare(objects, asked), asked)
        return without_contrary(found, dict(zip(objects.paths, objects.bodies, strict=True)))

    def _sure(self, findings: Iterable[Finding], asked: StackOptions) -> list[Finding]:
        """Drop findings that were not checked, because the missing object may be in the cluster."""
        return [
            finding
            for finding in findings
            if asked.whole or finding.level is not Level.UNKNOWN or finding.rule in _ASKED
        ]

    def _with_places(self, text: str) -> str:
        """Replace the numbers of objects by their files and lines. Others stay a `Remedy`."""

        def place(match: re.Match[str]) -> str:
            owner = self._owner(match)
            return match[0] if owner is None else owner.place

        return OBJECT_IN_TEXT.sub(place, text) if OBJECT_IN_TEXT.search(text) else text

    def _owner(self, match: re.Match[str]) -> ReducedObject | None:
        """Find the object of a match of OBJECT_IN_TEXT: its number, or its source and number.

        None: there is no such object, because the text of a user looks like a reference.
        """
        number = int(match[1])
        if match[2]:
            number = self._at.get((number, int(match[2])), len(self._kept))
        return self._kept[number] if number < len(self._kept) else None

    def _with_lines(self, source: Source, found: list[LocatedFinding]) -> Iterator[LocatedFinding]:
        """Read a file again to find the lines of its findings."""
        wanted = {
            one.kept.shift
            for one in found
            if one.kept.has_lines and (one.finding.path or source.rendered_by)
        }
        text = self.read(source.path) if wanted else ""
        items: dict[int, list[KubeObject]] = {}
        if wanted and not isinstance(text, Unreadable):
            for document in read_documents(text, source.name, is_wanted, wanted):
                if isinstance(document, Document):
                    items.setdefault(document.shift, []).extend(objects_of(document))
        for one in found:
            same = [] if one.of_all else items.get(one.kept.shift, [])
            item = same[one.kept.number] if one.kept.number < len(same) else None
            if item is None:
                yield one
                continue
            file, line = source.place(item, one.finding.path)
            yield replace(one, file=file, line=line)
