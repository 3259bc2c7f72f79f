"""From paths to results, one file at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from kthena_components.backends.readers import judge_manifest
from kthena_components.cli.documents import read_documents
from kthena_components.cli.files import Unreadable, find_files, read_text, shown_name
from kthena_components.cli.objects import KubeObject, is_judged, is_wanted, objects_of
from kthena_components.core.container_facts import as_map
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.weights import Settings


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
    waived: int = 0
    unreadable: int = 0

    def count(self, finding: Finding) -> None:
        """Count one finding."""
        setattr(self, finding.level.value, getattr(self, finding.level.value) + 1)

    def __str__(self) -> str:
        """Write the closing line."""
        others = f" ({self.others} more without rules)" if self.others else ""
        waived = f", {self.waived} waived" if self.waived else ""
        unreadable = f", {self.unreadable} unreadable" if self.unreadable else ""
        return (
            f"{count_of(self.objects, 'object')} checked in {count_of(self.files, 'file')}{others}:"
            f" {self.mandatory} mandatory, {self.advisory} advisory, {self.unknown} not checked"
            f"{waived}{unreadable}"
        )


def check(
    paths: Iterable[str], settings: Settings, summary: Summary, today: date | None = None
) -> Iterator[Result | Unreadable]:
    """Judge every object below some paths, and count in the summary what was looked at.

    Args:
        paths: Files, folders, or - for standard input.
        settings: How much each rule weighs, and for which Kthena.
        summary: What is counted in.
        today: The day by which waivers are judged; none is heeded if left out.
    """
    judge = partial(judge_safely, today=today, kthena_version=settings.kthena_version)
    for path in find_files(paths):
        read = [path] if isinstance(path, Unreadable) else _file(path, settings, judge, summary)
        for result in read:
            if isinstance(result, Unreadable):
                summary.unreadable += 1
            else:
                summary.count(result.finding)
            yield result


def _file(
    path: str,
    settings: Settings,
    judge: Callable[[Mapping[str, Any]], list[Finding]],
    summary: Summary,
) -> Iterator[Result | Unreadable]:
    text, name = read_text(path), shown_name(path)
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
                continue
            summary.objects += 1
            for finding in settings.levels.apply(judge(item.body)):
                yield _result(name, item, finding)


def judge_safely(
    body: Mapping[str, Any], *, today: date | None, kthena_version: str
) -> list[Finding]:
    """Judge, and turn a fault of the rules themselves into one more thing that was not checked."""
    try:
        return judge_manifest(body, today=today, kthena_version=kthena_version)
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not hide other findings
        seen = f"was not checked, because a rule failed with {type(error).__name__}: {error}"
        return [Finding(path="", seen=seen, rule="rule-fault", level=Level.UNKNOWN)]


def _result(file: str, item: KubeObject, finding: Finding) -> Result:
    metadata = as_map(item.body.get("metadata"))
    namespace, name, stem = (metadata.get(key) for key in ("namespace", "name", "generateName"))
    return Result(
        file=file,
        line=item.line_of(finding.path),
        kind=str(item.body["kind"]),
        namespace=namespace if isinstance(namespace, str) else "",
        name=next((text for text in (name, stem) if isinstance(text, str)), ""),
        finding=finding,
    )
