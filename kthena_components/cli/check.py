"""From paths to results, one file at a time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kthena_components.backends.readers import judge_manifest
from kthena_components.cli.documents import read_documents
from kthena_components.cli.files import Unreadable, find_files, shown_name
from kthena_components.cli.levels import Levels
from kthena_components.cli.objects import KubeObject, is_judged, is_wanted, objects_of
from kthena_components.cli.surroundings import Texts, find_config_maps
from kthena_components.core.container_facts import as_map
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.models import ModelShape
from kthena_components.core.surroundings import Surroundings


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
    paths: Iterable[str],
    levels: Levels,
    summary: Summary,
    shapes: Mapping[str, ModelShape] | None = None,
) -> Iterator[Result | Unreadable]:
    """Judge every object below some paths, and count in the summary what was looked at.

    Args:
        paths: Files, folders, or standard input. All ConfigMaps in them are known to all objects.
        levels: How much each rule weighs.
        summary: Where it is counted.
        shapes: Shapes of models by name, in lower case.
    """
    files, texts = list(find_files(paths)), Texts()
    found = find_config_maps((path for path in files if isinstance(path, str)), texts.read)
    beside = _Beside(levels, summary, texts, Surroundings(config_maps=found, shapes=shapes or {}))
    for path in files:
        for result in [path] if isinstance(path, Unreadable) else _file(path, beside):
            if isinstance(result, Unreadable):
                summary.unreadable += 1
            else:
                summary.count(result.finding)
            yield result


@dataclass(frozen=True, slots=True)
class _Beside:
    """What all files share."""

    levels: Levels
    summary: Summary
    texts: Texts
    around: Surroundings


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
                continue
            summary.objects += 1
            for finding in beside.levels.apply(_judge(item, beside.around)):
                yield _result(name, item, finding)


def _judge(item: KubeObject, around: Surroundings) -> list[Finding]:
    """Judge, and turn a fault of the rules themselves into one more thing that was not checked."""
    try:
        return judge_manifest(item.body, around=around)
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
