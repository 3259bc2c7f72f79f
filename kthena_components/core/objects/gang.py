"""Pods that are placed together, or not at all."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import MaybeInt, MaybeText, total


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """The pods that a controller puts into one PodGroup, as many as must start together."""

    owner: Object
    title: str
    """What it is, for messages: `each group`."""
    pods: tuple[tuple[PodSet, MaybeInt], ...]
    """Its pods, each with the number that must start together."""
    queue: MaybeText | None = None
    """None: it has the default one, or another gang of the same pods states it."""
    queue_path: str = ""
    """Path of its name, in the object."""
    topology: Mapping[str, Any] = field(default_factory=dict)
    """Its networkTopology."""
    topology_path: str = ""

    @property
    def size(self) -> MaybeInt:
        """The number of pods that must start together."""
        return total([number for _, number in self.pods])
