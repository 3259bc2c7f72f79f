"""What each system declares: its kinds, and the rules of each. The index is __init__.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from kthena_components.core.facts.serving import GpuDemand, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.objects.cluster_objects import ClusterObjects, Gang, Ports
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.objects.retained_fields import kept_spec
from kthena_components.core.rules.support.admission import Change
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import count, mapping

if TYPE_CHECKING:  # who checks files has no plan and no input
    from kthena_components.core.objects.engine_containers import Sketch
    from kthena_components.core.plan.controller_variables import PodVariables
    from kthena_components.core.plan.manifest import Resource
    from kthena_components.core.values.unknown import MaybeInt, MaybeText

V = TypeVar("V")
PRODUCTION = "production"
Body = Mapping[str, Any]
Rule = Callable[[V], Iterator[Finding]]
ChangeRule = Callable[[Change], Iterator[Finding]]
ClusterRule = Callable[[ClusterObjects], Iterator[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollout:
    """How a set of equal replicas of an object is updated."""

    at: str
    """Path of its strategy, in the object."""
    pods: str = ""
    """Prefix of the paths of its pods, in the object; empty for all pods."""
    replicas: MaybeInt | None
    """Replicas that the strategy refers to; None if invalid."""
    max_unavailable: object = None
    max_surge: object = None
    """Both as stated; None if not stated."""
    usual: tuple[object, object] = (None, None)
    """Defaults of maxUnavailable and maxSurge."""
    all_at_once: str = ""
    """What replaces all pods at once and how, new ones first; empty if nothing does."""

    @classmethod
    def of(cls, strategy: object, replicas: object, usual: tuple[object, object]) -> Self:
        """Read the `rollingUpdate` of a strategy at `spec.strategy`."""
        rolling = mapping(mapping(strategy).get("rollingUpdate"))
        return cls(
            at="spec.strategy.rollingUpdate",
            replicas=count(replicas, 1),
            max_unavailable=rolling.get("maxUnavailable"),
            max_surge=rolling.get("maxSurge"),
            usual=usual,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """What restarts pods when it changes, and how."""

    paths: str
    """Pattern of the fields, as paths in the object."""
    how: str
    """A clause for messages: `group after group restarts`."""
    otherwise: Callable[[Body], str] | None = None
    """Returns another clause for some objects, and an empty one for the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A workload that a controller creates, and whose number of pods it keeps."""

    group_kind: GroupKind
    name: str
    why: str
    """Why it must not be scaled, as a clause after `which`."""
    number_in: str = "replicas"
    """What states the number of its pods instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTarget:
    """What an autoscaler scales."""

    at: str
    """Path at which it is named, in the autoscaler."""
    group_kind: GroupKind
    name: MaybeText | None
    namespace: MaybeText | None
    """Empty: the autoscaler's namespace."""
    part: MaybeText | None = ""
    """The part of it whose number is scaled; empty for the whole."""


@dataclass(frozen=True, kw_only=True)
class PodTemplates:
    """Where a kind has pod templates, and what its controller changes about them."""

    templates: tuple[str, ...] = ()  # paths of whole pod templates; `[]`: each member of a list
    own_templates: tuple[str, ...] = ()  # the same, where its CRD has their fields and types
    adds_volumes: tuple[str, ...] = ()  # patterns of the volumes that its controller adds to them
    brings_model: bool = False  # whether its controller loads a model into one of these volumes
    restart_policies: tuple[str, ...] = ()  # which its pods may have, the usual one first; or any


@dataclass(frozen=True, kw_only=True)
class Updates(Generic[V]):
    """What an update of a kind does."""

    change_rules: tuple[ChangeRule, ...] = ()
    """Rules over the object before and after an update."""
    rollouts: Callable[[V], Iterator[Rollout]] | None = None
    restarts: Restart | None = None


@dataclass(frozen=True, kw_only=True)
class Scaling(Generic[V]):
    """What changes the number of copies of a kind, and what must not."""

    copies: str = ""  # field of the spec with the number of copies of all its engines
    number_in: str = "replicas"
    """What states the number of its pods, for users without an autoscaler."""
    unscalable: str = ""
    """Why no autoscaler may target it, as a clause after `which`; empty if one may."""
    keeps_number: Callable[[V], str] | None = None
    """Why no autoscaler may target this object; empty if one may."""
    scales: Callable[[V], Iterator[ScaleTarget]] | None = None
    """What it scales, if it is an autoscaler other than Kubernetes' own and KEDA's."""
    makes: Callable[[V], Made | None] | None = None
    """A workload that its controller creates for it, and whose number of pods it keeps."""


@dataclass(frozen=True, kw_only=True)
class ConvertInput(Generic[V]):
    """What `convert` needs to read a kind beside its facts and pods."""

    pod_variables: Callable[[V], PodVariables] | None = None
    """Variables that its controller sets in pods, for `convert` and ranks. None: it sets none."""
    not_whole: str = ""
    """Why its pods are more than `pods` shows, so `convert` cannot read it. Empty: not."""
    states: Callable[[V], Mapping[str, Any]] | None = None
    """Arguments that it states beside its pods, for `convert`. None: only its name and labels."""
    sketch: Callable[[V], Sketch] | None = None
    """Its engines for `convert`, if its controller completes their pods. None: `pods` are whole."""


@dataclass(frozen=True, kw_only=True)
class ObjectTraits:
    """What a kind is to the checks: which parts are kept, and how messages name it."""

    kept: Callable[[Body], Body] | None = kept_spec
    """The part that the rules over a cluster read. None: nothing, so it is not kept."""
    kept_beside: Callable[[Object], Body] | None = None
    """What they read of the command lines of its pods, as keys that are added to its spec."""
    completes: bool = False
    """Whether other objects name it for what they leave out: it is in `Context.referenced`."""
    only_fields: bool = False
    """Whether its CRD checks it, and nothing else."""
    cluster_wide: bool = False
    title: str = ""
    """What its rules are about, if not the system's title."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Why a field is omitted, such as `pods`, or a rule about production (PRODUCTION: each)."""


@dataclass(frozen=True, kw_only=True)
class Kind(Updates[V], Scaling[V], ConvertInput[V], PodTemplates, ObjectTraits, Generic[V]):
    """The declaration of one kind of object. An omitted field needs a reason in `without`."""

    group: str
    """API group, empty for Kubernetes' core. Every served version of it counts."""
    name: str
    view: Callable[[Object], V]
    """Reads an object once, for everything below. It never raises."""
    facts: Callable[[V], ServingFacts | None] | None = None
    """Facts for the rules of core/rules; None for an object that serves nothing."""
    pods: Callable[[V], Iterable[PodSet]] | None = None
    """The pods of templates in the object. None: they are counted from the facts."""
    listens: Callable[[V], Ports] | None = None
    """Where pods listen that start no engine. None: not known."""
    gangs: Callable[[V], Iterator[Gang]] | None = None
    """The pods that its controller puts into PodGroups. None: it creates none."""
    added_fields: Callable[[V], Iterable[str] | None] | None = None
    """Labels and annotations that its controller adds to pods, as `metadata.labels['app']`, besides
    `PodSet.added`. None: only `PodSet.added`, and if that is not known, nothing is. It returns None
    if they are not known."""
    demand: Callable[[V], GpuDemand | None] | None = None
    """GPUs of pods without templates in it. None: without `pods`, counted from the facts."""
    rules: tuple[Rule[V], ...] = ()
    """Rules of the system, with paths in the object."""

    @property
    def group_kind(self) -> GroupKind:
        """Its API group and name."""
        return self.group, self.name

    @property
    def is_checked(self) -> bool:
        """Whether a single object of it is checked."""
        return bool(self.facts or self.rules or self.templates or self.only_fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """One system that a cluster may run."""

    name: str
    """The name of its package."""
    title: str
    """What its rules are about, in a user's words."""
    kinds: tuple[Kind[Any], ...]
    cluster_rules: tuple[ClusterRule, ...] = ()
    """Rules over all objects of a cluster."""
    extras: Mapping[str, tuple[Resource, ...]] = field(default_factory=dict)
    """What a stack may define besides its servings: `{"queues": …}`."""


def as_it_is(found: Object) -> Object:
    """Return an object: the view of a kind that needs no other."""
    return found
