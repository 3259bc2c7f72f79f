"""What the rendering of charts and kustomizations gives: files, and notes about what is missing."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.reading.files import Unreadable
from kthena_components.reading.folders import CHART

Origin = Callable[[Mapping[str, Any], str], str | None]
"""Returns the real path of an object's file, from the object and the comment above it; None if
unknown."""
_SHOWN = 300
"""Maximum characters of an error message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """The output of a program."""

    name: str
    """Its name in messages: `overlays/prod`, `charts/chat with values-prod.yaml`."""
    output: Path
    """A file with the objects. It exists as long as the cage."""
    origin: Origin
    boundary: str
    """The real path of the folder that must contain each origin."""
    fallback: str
    """The file to point to if the origin is unknown, below the folder that the user named."""
    released: str = ""
    """The real path of the chart, if a release of other files states the values."""
    asked: frozenset[str] = frozenset()
    """The API versions that the templates use if the cluster has them."""
    may_lack_values: bool = False
    """Whether it is a chart with nothing but its own values, which may leave fields empty."""

    @property
    def is_chart_alone(self) -> bool:
        """Whether it is a chart that no release states: its name is invented here."""
        return not self.released and Path(self.fallback).name == CHART


@dataclass(slots=True)
class Rendered:
    """The renderings of some folders."""

    renderings: list[Rendering] = field(default_factory=list)
    notes: list[Unreadable] = field(default_factory=list)
    """What is not rendered, or not completely."""
    covered: set[str] = field(default_factory=set)
    """Keys of the kustomizations that were built, and of their bases."""
    idle: set[str] = field(default_factory=set)
    """Keys of the kustomizations that are not built because they serve no model."""
    charts_failed: set[str] = field(default_factory=set)
    """Real paths of the charts that cannot be rendered with their own values."""
    values: set[str] = field(default_factory=set)
    """The contents of values files that releases state."""
    failed: int = 0
    """The number of charts and kustomizations that are not rendered."""

    def fail(self, where: str, why: str, boundary: str = "") -> None:
        """Add a note about something that is not rendered."""
        self.failed += 1
        reason = why.replace(f"{boundary}/", "") if boundary else why
        shown = reason if len(reason) <= _SHOWN else f"{reason[:_SHOWN]}…"
        self._note(where, f"not rendered: {shown}")

    def leave_out(self, where: str, names: Iterable[str]) -> None:
        """Add a note about a chart that is rendered without some dependencies."""
        self._note(where, f"rendered without {', '.join(sorted(names))}: not in its charts/")

    def of_released_charts(self) -> list[Rendering]:
        """Return the renderings of charts by themselves that releases install with other values."""
        released = {each.released for each in self.renderings if each.released}
        charts = [each for each in self.renderings if each.is_chart_alone]
        return [each for each in charts if os.path.realpath(Path(each.fallback).parent) in released]

    def _note(self, where: str, because: str) -> None:
        self.notes.append(Unreadable(file=where, because=because, is_note=True))
