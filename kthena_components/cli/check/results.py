"""The findings of `check`, and the counts of what it read."""

import re
from collections.abc import Iterable
from dataclasses import replace

from kthena_components.core.findings import RULE_FAULT, Finding, count_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.reading.folders import FoundFiles

_SHOWN = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One finding with its object, file and line."""

    file: str
    line: int
    kind: str
    namespace: str
    name: str
    finding: Finding
    rendered_by: tuple[str, ...] = ()
    """The charts and kustomizations that render the object. Empty for an object in a file."""

    @property
    def subject(self) -> str:
        """Name the object: `ModelServing serving/llama`."""
        if not self.kind:
            return f"all objects{self._rendered}"
        name = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {name}".rstrip() + self._rendered

    @property
    def _rendered(self) -> str:
        if not self.rendered_by:
            return ""
        shown = ", ".join(self.rendered_by[:_SHOWN])
        more = len(self.rendered_by) - _SHOWN
        return f" as rendered by {shown}{f' and {more} more' if more > 0 else ''}"


@dataclass(slots=True, kw_only=True)
class Summary:
    """Counts of files, objects and findings."""

    files: int = 0
    renderings: int = 0
    objects: int = 0
    others: int = 0
    mandatory: int = 0
    advisory: int = 0
    unknown: int = 0
    waived: int = 0
    unreadable: int = 0
    faults: int = 0
    """Rules that failed. Each one is also counted as not checked."""
    not_read: int = 0
    """Files that the user did not name, and that could not be read."""
    not_rendered: int = 0
    hidden: int = 0
    linked: int = 0
    packed: int = 0
    again: int = 0
    """Folders, files and links that were skipped, as in `Found`."""

    definitions: frozenset[tuple[str, str]] = frozenset()
    """Kinds that were checked with a CRD of the files, and the file."""

    def count(self, finding: Finding) -> None:
        """Count one finding."""
        self.faults += finding.rule == RULE_FAULT
        setattr(self, finding.level.value, getattr(self, finding.level.value) + 1)

    def pass_over(self, found: FoundFiles) -> None:
        """Copy the counts of what was skipped."""
        self.hidden, self.linked, self.again = found.hidden, found.linked, found.again
        self.packed = found.packed

    @property
    def checked_with(self) -> str:
        """Say with which CRDs of the files kinds were checked. Empty if with none."""
        if not self.definitions:
            return ""
        kinds = ", ".join(sorted({kind for kind, _ in self.definitions}))
        files = sorted({file for _, file in self.definitions})
        more = len(files) - _SHOWN
        shown = ", ".join(files[:_SHOWN]) + (
            f" and {count_of(more, 'more file')}" if more > 0 else ""
        )
        instead = "--release takes the CRDs of a release instead"
        return f"{kinds}: checked with the CRDs in {shown}; {instead}"

    @property
    def passed_over(self) -> str:
        """List what was skipped without a finding. The text is empty if nothing was skipped."""
        kinds = ((self.hidden, "hidden"), (self.linked, "linked"))
        parts: list[str] = []
        if self.hidden or self.linked:
            each = ", ".join(f"{count} {kind}" for count, kind in kinds if count)
            parts.append(f"{count_of(self.hidden + self.linked, 'folder')} not read ({each})")
        if self.packed:
            parts.append(f"{count_of(self.packed, '.tgz file')} not read")
        if self.again:
            parts.append(f"{count_of(self.again, 'link')} not read twice")
        if self.not_read:
            parts.append(f"{count_of(self.not_read, 'file')} not read")
        if self.not_rendered:
            parts.append(f"{self.not_rendered} not rendered")
        return ", ".join(parts)

    def __str__(self) -> str:
        """Return the summary line."""
        others = f" ({self.others} more without rules)" if self.others else ""
        rendered = f" and {count_of(self.renderings, 'rendering')}" if self.renderings else ""
        waived = f", {self.waived} waived" if self.waived else ""
        unreadable = f", {self.unreadable} unreadable" if self.unreadable else ""
        faults = f", {count_of(self.faults, 'rule fault')}" if self.faults else ""
        passed = f", {self.passed_over}" if self.passed_over else ""
        return (
            f"{count_of(self.objects, 'object')} checked in {count_of(self.files, 'file')}"
            f"{rendered}{others}:"
            f" {self.mandatory} mandatory, {self.advisory} advisory, {self.unknown} not checked"
            f"{waived}{unreadable}{faults}{passed}"
        )


def merge(results: Iterable[Result]) -> list[Result]:
    """Merge equal findings of several renderings of one file, and list the renderings.

    Overlays may rename an object, so the object's name is not compared.
    """
    found: dict[tuple[object, ...], Result] = {}
    for result in results:
        finding = result.finding
        seen = _without(result.name, finding.seen)
        place = result.file, result.line, result.kind, finding.path
        key = *place, finding.rule, finding.level, finding.waiver, seen
        same = found.get(key)
        if same is None:
            found[key] = result
        elif not set(result.rendered_by) <= set(same.rendered_by):
            found[key] = replace(same, rendered_by=(*same.rendered_by, *result.rendered_by))
    return list(found.values())


def _without(name: str, text: str) -> str:
    return re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "", text) if name else text
