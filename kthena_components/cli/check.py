"""Checks the objects in some paths: first file by file, then all objects together."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from kthena_components.cli.context import Texts, find_config_maps, find_limit_ranges
from kthena_components.cli.objects import is_judged, is_wanted, objects_of
from kthena_components.cli.stack import LocatedFinding, StackOptions, Together
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.findings import READING, RULE_FAULT, Finding, count_of, fault
from kthena_components.core.models import ModelShape
from kthena_components.core.values.read import mapping
from kthena_components.judge.levels import Settings
from kthena_components.judge.manifest import judge_and_count
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable, shown_name
from kthena_components.reading.folders import Found, find_files


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One finding with its object, file and line."""

    file: str
    line: int
    kind: str
    namespace: str
    name: str
    finding: Finding

    @property
    def subject(self) -> str:
        """Name the object: `ModelServing serving/llama`."""
        if not self.kind:
            return "all objects"
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """The options of `check`."""

    settings: Settings = field(default_factory=Settings)
    """The levels of the rules and the version of Kthena."""
    today: date | None = None
    """The date for expiring waivers. Without it, no waiver applies."""
    asked: StackOptions = field(default_factory=StackOptions)
    """The options for checking all objects together."""
    shapes: Mapping[str, ModelShape] = field(default_factory=dict)
    """Shapes of models by lower-case name."""


@dataclass(slots=True, kw_only=True)
class Summary:
    """Counts of files, objects and findings."""

    files: int = 0
    objects: int = 0
    others: int = 0
    mandatory: int = 0
    advisory: int = 0
    unknown: int = 0
    waived: int = 0
    unreadable: int = 0
    faults: int = 0
    """Rules that failed. Each one is also counted as not checked."""
    hidden: int = 0
    linked: int = 0
    again: int = 0
    """Folders and links that were skipped, as in `Found`."""

    def count(self, finding: Finding) -> None:
        """Count one finding."""
        self.faults += finding.rule == RULE_FAULT
        setattr(self, finding.level.value, getattr(self, finding.level.value) + 1)

    def pass_over(self, found: Found) -> None:
        """Copy the counts of skipped folders and links."""
        self.hidden, self.linked, self.again = found.hidden, found.linked, found.again

    @property
    def passed_over(self) -> str:
        """List what was skipped without a finding. The text is empty if nothing was skipped."""
        kinds = ((self.hidden, "hidden"), (self.linked, "linked"))
        told: list[str] = []
        if self.hidden or self.linked:
            each = ", ".join(f"{count} {kind}" for count, kind in kinds if count)
            told.append(f"{count_of(self.hidden + self.linked, 'folder')} not read ({each})")
        if self.again:
            told.append(f"{count_of(self.again, 'link')} not read twice")
        return ", ".join(told)

    def __str__(self) -> str:
        """Return the summary line."""
        others = f" ({self.others} more without rules)" if self.others else ""
        waived = f", {self.waived} waived" if self.waived else ""
        unreadable = f", {self.unreadable} unreadable" if self.unreadable else ""
        faults = f", {count_of(self.faults, 'rule fault')}" if self.faults else ""
        passed = f", {self.passed_over}" if self.passed_over else ""
        return (
            f"{count_of(self.objects, 'object')} checked in {count_of(self.files, 'file')}{others}:"
            f" {self.mandatory} mandatory, {self.advisory} advisory, {self.unknown} not checked"
            f"{waived}{unreadable}{faults}{passed}"
        )


def check(
    paths: Iterable[str], given: CheckOptions, summary: Summary
) -> Iterator[Result | Unreadable]:
    """Check every object in some paths, and update the summary.

    Args:
        paths: Files, folders, or `-` for standard input. Every object can use every ConfigMap.
        given: The options.
        summary: The counts to update.
    """
    found = find_files(paths)
    summary.pass_over(found)
    texts = Texts(found.named)
    together = Together(given.asked, given.today, read=texts.read)
    named = [path for path in found.files if isinstance(path, str)]
    maps = find_config_maps(named, texts.read)
    limits = find_limit_ranges(named, texts.read)
    context = Context(config_maps=maps, limits=limits, shapes=given.shapes)
    beside = _Beside(given, summary, texts, context, together)
    for path in found.files:
        for result in [path] if isinstance(path, Unreadable) else _file(path, beside):
            if isinstance(result, Unreadable):
                summary.unreadable += 1
            else:
                summary.count(result.finding)
            yield result
    for told in together.judge():
        for finding in given.settings.levels.apply([told.finding]):
            summary.count(finding)
            yield _told(told, finding)


@dataclass(frozen=True, slots=True)
class _Beside:
    """State that all files share."""

    given: CheckOptions
    summary: Summary
    texts: Texts
    context: Context
    together: Together


def _file(path: str, beside: _Beside) -> Iterator[Result | Unreadable]:
    text, name, summary = beside.texts.read(path), shown_name(path), beside.summary
    if isinstance(text, Unreadable):
        yield text
        return
    summary.files += 1
    for document in read_documents(text, name, is_wanted):
        if isinstance(document, Unreadable):
            yield document
            continue
        for item in objects_of(document):
            if not is_judged(item.body.get("apiVersion"), item.body.get("kind")):
                summary.others += 1
                beside.together.pass_over(path, document.shift, item)
                findings, _ = judge_safely(item.body, beside.given)
            else:
                summary.objects += 1
                findings, held = judge_safely(item.body, beside.given, beside.context)
                kept = beside.together.keep(path, document.shift, item, held, findings)
                findings += [finding for finding in kept if finding not in findings]
            for finding in beside.given.settings.levels.apply(findings):
                yield _result(name, item.line_of(finding.path), item.body, finding)


def judge_safely(
    body: Mapping[str, Any], given: CheckOptions, context: Context = NO_CONTEXT
) -> tuple[list[Finding], GpuDemand | None]:
    """Check an object. An exception outside of the rules becomes a finding, too."""
    try:
        return judge_and_count(
            body, context=context, today=given.today, kthena_version=given.settings.kthena_version
        )
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not hide other findings
        return [fault(READING, error)], None


def _told(told: LocatedFinding, finding: Finding) -> Result:
    body = {} if told.of_all else told.kept.body
    return _result(shown_name(told.kept.file), told.line, body, finding)


def _result(file: str, line: int, body: Mapping[str, Any], finding: Finding) -> Result:
    metadata = mapping(body.get("metadata"))
    namespace, name, stem = (metadata.get(key) for key in ("namespace", "name", "generateName"))
    return Result(
        file=file,
        line=line,
        kind=str(body.get("kind", "")),
        namespace=namespace if isinstance(namespace, str) else "",
        name=next((text for text in (name, stem) if isinstance(text, str)), ""),
        finding=finding,
    )
