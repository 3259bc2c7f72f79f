"""The few numbers that checks need, read from pod templates and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kthena_components.core.facts.container import ContainerFacts
from kthena_components.core.facts.pod import DeviceFacts, PodFacts, read_pod, read_pods
from kthena_components.core.values.unknown import MaybeBool, MaybeInt

__all__ = [
    "ContainerFacts",
    "DeviceFacts",
    "EngineFacts",
    "GangFacts",
    "NameFacts",
    "PodFacts",
    "ServingFacts",
    "read_pod",
    "read_pods",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFacts:
    """One engine: an entry pod and its workers, which run one model together."""

    path: str = field(compare=False)
    name: str
    """Role name, or the workload's own name."""
    pods: MaybeInt
    """Pods of the engine, the entry included."""
    replicas: MaybeInt
    """Engines like this one in a group."""
    entry: PodFacts
    worker: PodFacts | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GangFacts:
    """What must be placeable together."""

    path: str = field(compare=False)
    min_member: MaybeInt
    minima: Mapping[str, MaybeInt]
    """Engines of each role that the gang waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFacts:
    """A name that will be generated, and how long it may be."""

    path: str = field(compare=False)
    name: str
    limit: int
    what: str
    """What carries the name, in words: `StatefulSet`."""
    made: bool = True
    """Whether it is made of the serving's and the role's name, and not written by the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingFacts:
    """What the checks judge."""

    path: str = field(compare=False)
    name: str
    engines: tuple[EngineFacts, ...]
    gang: GangFacts | None = None
    gang_expected: MaybeBool = False
    """The pods ask Volcano to place them."""
    names: tuple[NameFacts, ...] = ()
    copies: MaybeInt = field(default=1, compare=False)
    """How many times all of this is there; only the sum over a whole stack asks."""
