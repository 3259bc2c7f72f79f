"""Keeps a few hundred bytes of each object until all files are read.

No command lines, values of Secrets or line numbers. They are sent between processes.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from kthena_components.checker.engine_parts import read_engine_part_of
from kthena_components.checker.manifest import CheckedObject, is_compared, reduce_object
from kthena_components.cli.objects import KubeObject
from kthena_components.core.facts.context import NO_CONTEXT, Context
from kthena_components.core.facts.serving import GpuDemand
from kthena_components.core.facts.split_engines import EnginePart
from kthena_components.core.findings import READING, Finding, fault
from kthena_components.core.objects.cluster_objects import Ports
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, mapping
from kthena_components.core.values.regex import regex
from kthena_components.systems.native.facts import GroupMember, read_part

_OPEN, _CLOSE = "\ue002", "\ue003"
OBJECT_IN_TEXT = regex(f"{_OPEN}([0-9]{{1,9}})(?:-([0-9]{{1,9}}))?{_CLOSE}")
"""An object in a path or a text of a rule, as `path_of_object` writes it."""


def path_of_object(number: int, source: int | None = None) -> str:
    """Return the path of an object for the rules. No file name can contain it.

    Rules also write it into their texts. The file and the line take its place in the output.

    Args:
        number: The number of the object, among all or in its source.
        source: The number of its source. None: the object is numbered among all.
    """
    return f"{_OPEN}{number}{_CLOSE}" if source is None else f"{_OPEN}{source}-{number}{_CLOSE}"


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
    ) -> list[Finding]:
        """Keep the fields that the rules over all objects need. Return a finding if that fails."""
        number = self._number(shift)
        if not is_compared(item.body):
            return []
        try:
            path = path_of_object(len(self.kept), self.source)
            part = read_part(item.body, path, self.context)
            engine_part = read_engine_part_of(item.body, path, self.context)
            body = reduce_object(item.body)
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
