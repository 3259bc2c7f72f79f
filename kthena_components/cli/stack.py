"""Checks all objects together after all files have been read.

Until then it keeps a few hundred bytes per object, without command lines, values of Secrets or line
numbers. It reads a file again to find the lines of its findings.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from kthena_components.cli.objects import KubeObject, is_wanted, objects_of
from kthena_components.cli.sources import Source
from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.findings import (
    READING,
    READING_ALL,
    RULE_FAULT,
    Finding,
    Level,
    fault,
    judged,
)
from kthena_components.core.rules.serving import run_checks
from kthena_components.core.values.read import group_kind, mapping
from kthena_components.judge.manifest import is_compared, reduce_object
from kthena_components.judge.stack_rules import compare_objects
from kthena_components.judge.waivers import Stated, annotated, waive
from kthena_components.reading.documents import Document, read_documents
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.systems.native.facts import GroupMember, join_parts, read_part

_OPEN, _CLOSE = "\ue002", "\ue003"
_ASKED = frozenset({"gpu-budget", "surge-needs-spare-gpus", "gpu-type-allowed", RULE_FAULT})
_OWNER = re.compile(f"{_OPEN}([0-9]{{1,9}}){_CLOSE}")
"""The number of an object in the paths for the rules. It cannot be part of a file name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """The options for all objects together."""

    whole: bool = False
    """Whether these are all objects of one cluster, so that missing objects are reported."""
    budget: int | None = None
    gpu_types: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    """Releases that the cluster runs, by system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReducedObject:
    """The part of an object that is kept."""

    source: Source
    line: int
    shift: int
    number: int
    """Its index among the objects with the same file and shift."""
    place: str
    """Its file and line."""
    body: Mapping[str, Any]
    part: GroupMember | None
    held: GpuDemand | None
    has_lines: bool

    def identity(self) -> tuple[object, ...] | None:
        """Return the key that is unique in a cluster, or None for an object without a name."""
        metadata = mapping(self.body.get("metadata"))
        name, space = metadata.get("name"), metadata.get("namespace")
        if not (isinstance(name, str) and (space is None or isinstance(space, str))):
            return None
        return group_kind(self.body), space or "default", name


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedFinding:
    """A finding about one object, or about all objects of some files."""

    kept: ReducedObject
    file: str
    line: int
    finding: Finding
    of_all: bool = False


@dataclass(slots=True)
class Together:
    """The objects of all files."""

    asked: StackOptions
    today: date | None = None
    """The date for expiring waivers. Without it, no waiver applies."""
    kept: list[ReducedObject] = field(default_factory=list)
    said: set[int] = field(default_factory=set)
    """Hashes of the findings in single objects."""
    read: Callable[[str], str | Unreadable] = read_text
    """Reads a file again."""
    _foreign: set[tuple[object, object]] = field(default_factory=set)
    _numbers: tuple[str, int, int] = ("", -1, 0)
    _stated: dict[int, dict[str, list[Stated]]] = field(default_factory=dict)

    def keep(
        self,
        source: Source,
        shift: int,
        item: KubeObject,
        held: GpuDemand | None,
        found: Iterable[Finding],
    ) -> list[Finding]:
        """Keep the fields that the rules over all objects need. Return a finding if that fails."""
        number = self._number(source.path, shift)
        if not is_compared(item.body):
            return []
        try:
            part = read_part(item.body, f"{_OPEN}{len(self.kept)}{_CLOSE}")
            body = reduce_object(item.body)
        except Exception as error:  # noqa: BLE001 - the other objects must still be checked
            return [fault(READING, error)]
        self.said.update(hash((finding.rule, finding.seen)) for finding in found)
        self.kept.append(
            ReducedObject(
                source=source,
                line=item.line,
                shift=shift,
                number=number,
                place=source.about(item),
                body=body,
                part=part,
                held=held,
                has_lines=item.node is not None,
            )
        )
        return []

    def pass_over(self, source: Source, shift: int, item: KubeObject) -> None:
        """Keep only the kind of an object without rules, because it may create pods."""
        number = self._number(source.path, shift)
        kind = item.body.get("apiVersion"), item.body.get("kind")
        if self.asked.whole and kind not in self._foreign:
            self._foreign.add(kind)
            body = {"apiVersion": kind[0], "kind": kind[1]}
            kept = ReducedObject(
                source=source, line=item.line, shift=shift, number=number,
                place=source.about(item), body=body, part=None, held=None, has_lines=False,
            )  # fmt: skip
            self.kept.append(kept)

    def _number(self, path: str, shift: int) -> int:
        """Count the objects of one document."""
        same = self._numbers[:2] == (path, shift)
        number = self._numbers[2] + 1 if same else 0
        self._numbers = (path, shift, number)
        return number

    def judge(self) -> Iterator[LocatedFinding]:
        """Check the objects of each cluster together, and yield the findings by file."""
        told = [one for cluster in self._clusters() for one in self._judge(cluster)]
        by_file: dict[str, list[LocatedFinding]] = {}
        for one in sorted(told, key=lambda one: not one.of_all):
            by_file.setdefault(one.kept.source.path, []).append(one)
        for found in by_file.values():
            yield from self._with_lines(found[0].kept.source, found)

    def _clusters(self) -> Iterator[list[int]]:
        """Yield the numbers of the objects that may be in the same cluster.

        If two files contain the same object, such as in folders per environment, each folder is
        one cluster. If two files of one folder contain it, each file of that folder is one. With
        `whole`, all objects are in one cluster.
        """
        numbers = list(range(len(self.kept)))
        if self.asked.whole or not self._clash(numbers):
            yield numbers
            return
        for folder in self._by(numbers, os.path.dirname):
            yield from self._by(folder, str) if self._clash(folder) else [folder]

    def _by(self, numbers: list[int], key: Any) -> Iterator[list[int]]:
        parts: dict[object, list[int]] = {}
        for number in numbers:
            parts.setdefault(key(self.kept[number].source.path), []).append(number)
        yield from parts.values()

    def _clash(self, numbers: list[int]) -> bool:
        files: dict[object, str] = {}
        for number in numbers:
            kept = self.kept[number]
            identity = kept.identity()
            if identity and files.setdefault(identity, kept.source.path) != kept.source.path:
                return True
        return False

    def _judge(self, numbers: list[int]) -> Iterator[LocatedFinding]:
        if not numbers:
            return
        found = self._findings([self.kept[number] for number in numbers], numbers)
        for finding in found:
            if hash((finding.rule, finding.seen)) in self.said:
                continue
            match = _OWNER.match(finding.path)
            owner = self.kept[int(match[1]) if match else numbers[0]]
            path = finding.path[match.end() :].removeprefix(".") if match else finding.path
            named = replace(
                finding,
                path=path,
                seen=self._named(finding.seen),
                remedy=self._named(finding.remedy),
            )
            waived = named if match is None else self._waived(named, owner)
            file, line = owner.source.start(owner.line)
            yield LocatedFinding(
                kept=owner, file=file, line=line, finding=waived, of_all=match is None
            )

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

    def _findings(self, kept: Sequence[ReducedObject], numbers: Sequence[int]) -> list[Finding]:
        found = list(judged(_grouped, kept, name=READING_ALL))
        return found + self._sure(judged(self._compared, kept, numbers, name=READING_ALL))

    def _compared(self, kept: Sequence[ReducedObject], numbers: Sequence[int]) -> list[Finding]:
        return compare_objects(
            [one.body for one in kept],
            [f"{_OPEN}{number}{_CLOSE}" for number in numbers],
            held={i: one.held for i, one in enumerate(kept) if one.held is not None},
            budget=self.asked.budget,
            gpu_types=self.asked.gpu_types,
            complete=self.asked.whole,
            sources=[one.source.path for one in kept],
            versions=self.asked.versions,
        )

    def _sure(self, findings: Iterable[Finding]) -> list[Finding]:
        """Drop findings that were not checked, because the missing object may be in the cluster."""
        return [
            finding
            for finding in findings
            if self.asked.whole or finding.level is not Level.UNKNOWN or finding.rule in _ASKED
        ]

    def _named(self, text: str) -> str:
        """Replace the numbers of objects by their files and lines."""

        def place(match: re.Match[str]) -> str:
            number = int(match[1])
            return self.kept[number].place if number < len(self.kept) else match[0]

        return _OWNER.sub(place, text) if _OPEN in text else text

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


def _grouped(kept: Iterable[ReducedObject]) -> Iterator[Finding]:
    """Check engines that consist of several objects."""
    for facts in join_parts(one.part for one in kept if one.part is not None):
        yield from run_checks(facts)
