"""From paths to results, one file at a time, and then all objects together."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.backends.readers import judge_and_count
from kthena_components.cli.documents import read_documents
from kthena_components.cli.files import STDIN, Unreadable, find_files, read_text, shown_name
from kthena_components.cli.levels import Levels
from kthena_components.cli.objects import KubeObject, is_judged, is_wanted, objects_of
from kthena_components.cli.together import Asked, Together, Told
from kthena_components.core.checks.stack_pods import Held
from kthena_components.core.container_facts import as_map
from kthena_components.core.findings import Finding, Level, count_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One finding, and the object and the place that it is about."""

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


@dataclass(slots=True, kw_only=True)
class Summary:
    """What was looked at, counted."""

    files: int = 0
    objects: int = 0
    others: int = 0
    mandatory: int = 0
    advisory: int = 0
    unknown: int = 0
    unreadable: int = 0

    def count(self, finding: Finding) -> None:
        """Count one finding."""
        setattr(self, finding.level.value, getattr(self, finding.level.value) + 1)

    def __str__(self) -> str:
        """Write the closing line."""
        others = f" ({self.others} more without rules)" if self.others else ""
        unreadable = f", {self.unreadable} unreadable" if self.unreadable else ""
        return (
            f"{count_of(self.objects, 'object')} checked in {count_of(self.files, 'file')}{others}:"
            f" {self.mandatory} mandatory, {self.advisory} advisory, {self.unknown} not checked"
            f"{unreadable}"
        )


def check(
    paths: Iterable[str], levels: Levels, summary: Summary, asked: Asked | None = None
) -> Iterator[Result | Unreadable]:
    """Judge every object below some paths, and count in the summary what was looked at."""
    together = Together(asked or Asked())
    for path in find_files(paths):
        results = [path] if isinstance(path, Unreadable) else _file(path, levels, summary, together)
        for result in results:
            if isinstance(result, Unreadable):
                summary.unreadable += 1
            else:
                summary.count(result.finding)
            yield result
    for told in together.judge():
        for finding in levels.apply([told.finding]):
            summary.count(finding)
            yield _told(told, finding)


def _file(
    path: str, levels: Levels, summary: Summary, together: Together
) -> Iterator[Result | Unreadable]:
    text, name = read_text(path), shown_name(path)
    if isinstance(text, Unreadable):
        yield text
        return
    if path == STDIN:
        together.stdin = text
    summary.files += 1
    for document in read_documents(text, name, is_wanted):
        if isinstance(document, Unreadable):
            yield document
            continue
        for item in objects_of(document):
            if not is_judged(item.body.get("apiVersion"), item.body.get("kind")):
                summary.others += 1
                together.pass_over(path, document.shift, item)
                continue
            summary.objects += 1
            findings, held = _judge(item)
            together.keep(path, document.shift, item, held, findings)
            for finding in levels.apply(findings):
                yield _result(name, item.line_of(finding.path), item.body, finding)


def _judge(item: KubeObject) -> tuple[list[Finding], Held | None]:
    """Judge, and turn a fault of the rules themselves into one more thing that was not checked."""
    try:
        return judge_and_count(item.body)
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not hide other findings
        seen = f"was not checked, because a rule failed with {type(error).__name__}: {error}"
        return [Finding(path="", seen=seen, rule="rule-fault", level=Level.UNKNOWN)], None


def _told(told: Told, finding: Finding) -> Result:
    body = {} if told.of_all else told.kept.body
    return _result(shown_name(told.kept.file), told.line, body, finding)


def _result(file: str, line: int, body: Mapping[str, Any], finding: Finding) -> Result:
    metadata = as_map(body.get("metadata"))
    namespace, name, stem = (metadata.get(key) for key in ("namespace", "name", "generateName"))
    return Result(
        file=file,
        line=line,
        kind=str(body.get("kind", "")),
        namespace=namespace if isinstance(namespace, str) else "",
        name=next((text for text in (name, stem) if isinstance(text, str)), ""),
        finding=finding,
    )
