"""What a system says of itself: its kinds of objects, what is known of each, and what it emits.

Every list by kind that the judge, the compiler, the command line and the cluster commands use is
derived from this. `systems/__init__.py` is the index; tests/systems/test_laws.py holds each system
to it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from kthena_components.core.facts.serving import NameFacts, ServingFacts
from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.objects.reduction import kept_spec
from kthena_components.core.objects.stack import Stack
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.plan.rights import Resource
from kthena_components.core.rules.change import Change
from kthena_components.core.values.unknown import MaybeInt

V = TypeVar("V")
Body = Mapping[str, Any]
Rule = Callable[[V], Iterator[Finding]]
ChangeRule = Callable[[Change], Iterator[Finding]]
StackRule = Callable[[Stack], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """How one set of equal replicas of an object is updated."""

    at: str
    """Where its strategy stands, in the object."""
    pods: str = ""
    """What the paths of its pods begin with, in the object; all of the object's if empty."""
    replicas: MaybeInt | None
    """Replicas that the strategy speaks of; None where that is no count."""
    max_unavailable: object = None
    """As it is stated; None where it is not."""
    max_surge: object = None
    usual: tuple[object, object] = (None, None)
    """maxUnavailable and maxSurge where they are not stated."""
    all_at_once: str = ""
    """Who replaces all pods at once and how, new ones first; empty where nobody does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What restarts pods when it changes, and how."""

    paths: str
    """Pattern of the fields, as paths in the object."""
    how: str
    """A clause for a person: `group after group restarts`."""
    otherwise: Callable[[Body], str] | None = None
    """Gives another clause for some objects, and an empty one for the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A workload that a controller makes, and whose number of pods it keeps."""

    group_kind: GroupKind
    name: str
    why: str
    """Why it must not be scaled, as a clause after `which`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[V]):
    """What is known of one kind of object. What is left out needs a reason in `without`."""

    group: str
    """API group, empty for Kubernetes' core. Every served version of it counts."""
    name: str
    view: Callable[[Object], V]
    """Reads an object once, for everything below. It never raises."""
    facts: Callable[[V], ServingFacts | None] | None = None
    """Facts for the rules of core/rules; None for an object that serves nothing."""
    pods: Callable[[V], Iterator[PodSet]] | None = None
    """The pods whose templates stand in the object. None: they are counted from the facts."""
    demand: Callable[[V], GpuDemand | None] | None = None
    """GPUs of pods whose templates do not stand in it, beside those of `pods`. None: without
    `pods` they are counted from the facts."""
    rules: tuple[Rule[V], ...] = ()
    """Rules of the system's own, with findings in the coordinates of the object."""
    change_rules: tuple[ChangeRule, ...] = ()
    """Rules over the object before and after an update."""
    rollouts: Callable[[V], Iterator[Rollout]] | None = None
    templates: tuple[str, ...] = ()
    """Where whole pod templates stand; `[]` after a key is each member of a list."""
    kept: Callable[[Body], Body] | None = kept_spec
    """What the rules over a stack read of it. None: nothing, so it is not held."""
    restarts: Restart | None = None
    copies: str = ""
    """Field of the spec that says how often all its engines exist."""
    unscalable: str = ""
    """Why no autoscaler may target it, as a clause after `which`; empty where one may."""
    keeps_number: Callable[[V], str] | None = None
    """Why none may target this one object; an empty text where one may."""
    makes: Callable[[V], Made | None] | None = None
    """A workload that its controller makes of it, and whose number of pods it keeps."""
    cluster_wide: bool = False
    title: str = ""
    """What its rules are about, where that is not the system's title."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Why a field is left out that others of its sort have: `{"pods": "a preset makes them"}`."""

    @property
    def group_kind(self) -> GroupKind:
        """Its API group and name."""
        return self.group, self.name

    @property
    def is_judged(self) -> bool:
        """Whether one object of it by itself is judged."""
        return bool(self.facts or self.rules or self.templates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitter:
    """How a plan is written for a system."""

    emit: Callable[[ServingPlan], tuple[Manifest, ...]]
    refuse: Callable[[ServingPlan], Iterator[Finding]]
    """Findings for what the system cannot express: refused, never dropped."""
    names: Callable[[ServingPlan], Iterator[NameFacts]]
    """Names that the system will generate."""
    resources: tuple[Resource, ...]
    """What is written, and what is read meanwhile."""
    read_back: Callable[[Sequence[Body]], list[ServingFacts]]
    """The inverse of `emit`, as far as facts go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One system that a cluster may run."""

    name: str
    """The name of its package."""
    title: str
    """What its rules are about, in the words of a user."""
    kinds: tuple[Kind[Any], ...]
    stack_rules: tuple[StackRule, ...] = ()
    """Rules over all objects of a cluster."""
    emitter: Emitter | None = None
    extras: Mapping[str, Resource] = field(default_factory=dict)
    """What a stack may describe beside its servings: `{"queues": …}`."""
