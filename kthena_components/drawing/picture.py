"""The model of a picture: what is drawn, whatever the form. Pure.

Forms: rows in the terminal, Mermaid, and an HTML page. All three draw the same `Picture`.
"""

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime

from kthena_components.core.values.dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PodBox:
    """One pod."""

    name: str
    group: str
    """Title of its PodGroup: `serving/chat-0`. Empty: somebody else's pod."""
    engine: str
    """The engine of its group that it belongs to: `prefill-0`."""
    gpus: int
    state: str = "placed"
    """`placed` (planned), `running`, `waiting` or `lost`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBox:
    """One node with its pods."""

    name: str
    gpus: int
    used: int
    """GPUs that any pods hold, including those that the plan places here."""
    pods: Sequence[PodBox] = ()
    product: str = ""
    closed: str = ""
    """Why it takes no pods: `cordoned`, `lost`. Empty: it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackBox:
    """A HyperNode of the lowest tier with its nodes; without a name, nodes outside of any."""

    name: str
    tier: int
    nodes: Sequence[NodeBox] = ()
    within: Sequence[str] = ()
    """The HyperNodes that contain it, lowest first."""

    @property
    def gpus(self) -> int:
        """GPUs of all its nodes."""
        return sum(node.gpus for node in self.nodes)

    @property
    def used(self) -> int:
        """GPUs that are held."""
        return sum(node.used for node in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One PodGroup: its answer, and the pods that have no node."""

    title: str
    serving: str
    """The object that made it: `ModelServing serving/chat`."""
    verdict: str
    where: str = ""
    """The HyperNode that holds it."""
    reason: str = ""
    gpus: int = 0
    unplaced: Sequence[PodBox] = ()
    changed: bool = False
    """Whether the pull request changes its serving."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A cluster with its racks, nodes and pods, and the groups that are asked about."""

    title: str
    racks: Sequence[RackBox]
    groups: Sequence[GroupRow]
    before: "Picture | None" = None
    """The state before the change, if there are two."""
    taken: datetime | None = None
    """When the cluster was read."""
    source: str = ""
    notes: Sequence[str] = field(default_factory=tuple)
