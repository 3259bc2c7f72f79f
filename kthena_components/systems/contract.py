"""What each system declares. Lists by kind are derived from it; the index is __init__.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kthena_components.core import naming
from kthena_components.core.facts.serving import GpuDemand, NameFacts, ServingFacts
from kthena_components.core.findings import Finding
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.gang import Gang
from kthena_components.core.objects.object import GroupKind, Object, PodSet
from kthena_components.core.objects.retained_fields import kept_spec
from kthena_components.core.rules.support.old_and_new import Change
from kthena_components.systems.describer import Describer

if TYPE_CHECKING:  # who checks files has no plan and no input
    from kthena_components.core.objects.engine_containers import Sketch
    from kthena_components.core.plan.controller_variables import Told
    from kthena_components.core.plan.limits import Limit
    from kthena_components.core.plan.manifest import Manifest
    from kthena_components.core.plan.model import ServingPlan
    from kthena_components.core.plan.rights import Resource
    from kthena_components.core.plan.watch import Watch
    from kthena_components.core.spec.fields import Spec
    from kthena_components.core.values.unknown import MaybeInt, MaybeText

V = TypeVar("V")
PRODUCTION, EMPTY_ROLES, IDLE_WORKERS = "production", "roles", "workers"
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

    tells: Callable[[V], Told] | None = None
    """What its controller tells pods, for `convert` and the ranks of pods. None: nothing."""
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
    pods: Callable[[V], Iterator[PodSet]] | None = None
    """The pods of templates in the object. None: they are counted from the facts."""
    gangs: Callable[[V], Iterator[Gang]] | None = None
    """The pods that its controller puts into PodGroups. None: it creates none."""
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


ARGUMENTS = (
    "replicas",
    "roles[].replicas",
    "roles[].worker_replicas",
    "gang_policy",
    "network_topology.group_policy",
    "network_topology.role_policy",
    "queue",
    "priority_class",
    "spread_over",
    "scheduler_name",
    "rollout_strategy.type",
    "rollout_strategy…max_unavailable",
    "rollout_strategy…partition",
    "rollout_strategy…max_surge",
    "roles[].max_unavailable",
    "recovery_policy",
    "autoscaled",
    "restart_grace_period_seconds",
    "expose",
    "monitoring",
    "ready_timeout_seconds",
    "labels",
    "pod_disruption_budget",
    "fill_requests",
    "waivers",
)
"""The arguments of a serving in docs/backends.md, besides those that only the pods show."""
FOR_ALL = {
    "expose": "a Service before the entry pods",
    "monitoring": "a PodMonitor per role, a PrometheusRule and a dashboard",
    "labels": "labels of all objects, but not of the pods",
    "pod_disruption_budget": "a PodDisruptionBudget: one evicted pod at a time",
    "fill_requests": "requests equal to the limits, where a template has limits only",
    "waivers": "annotations on the objects with findings of the rule",
}
"""What the compiler does, whatever the backend is."""


def _of_the_serving(plan: ServingPlan) -> Mapping[str, str]:
    return {naming.NAME: plan.name}


def _one_serving(plan: ServingPlan) -> list[ServingFacts]:
    from kthena_components.core.plan.facts import facts_from_plan  # noqa: PLC0415

    return [facts_from_plan(plan)]


@dataclass(frozen=True, kw_only=True)
class InTheCluster:
    """What a backend needs from a cluster, and how its pods are found there."""

    resources: tuple[Resource, ...]
    """Resources that are written, and those that are read meanwhile."""
    watch: Callable[[ServingPlan], Watch]
    """How Prometheus finds the pods."""
    install: str = ""
    """What to install if the cluster does not serve its kinds, as an imperative."""
    rivals: Mapping[GroupKind, str] = field(default_factory=dict)
    """Kinds of other systems whose controllers take over what is written, each with how."""
    pods: Callable[[ServingPlan], Mapping[str, str]] = _of_the_serving
    """Labels of all pods of a serving. Empty: the plan has another number of pods."""
    is_counted: bool = True
    """Whether Kubernetes learns the number of pods from their controllers, as of a StatefulSet."""
    proven: str = ""
    """What conformance proves of it with the real controller, as a sentence."""


@dataclass(frozen=True, kw_only=True)
class BackendOptions:
    """What a user may choose, and what follows from the choice."""

    options: type[Spec] | None = None
    """Fields of `backend_options`, all with defaults. None: the backend has no options."""
    stays_from: int | None = 1
    """From this number of roles on, adding a role renames no object. None: a serving cannot get
    another role.
    """
    kthena_versions: tuple[str, ...] = ()
    """Values of `kthena_version` that it writes for. Empty: it does not write for Kthena."""
    written: Mapping[str, str] = field(default_factory=dict)
    """What each argument becomes, unless `limits` reject it. tests/systems/test_written.py has a
    probe of each one.
    """


@dataclass(frozen=True, kw_only=True)
class ReadBack:
    """How emitted objects are read again, by the tests and by `convert`."""

    read_back: Callable[[Sequence[Body]], list[ServingFacts]]
    """The inverse of `emit`, limited to facts."""
    planned: Callable[[ServingPlan], list[ServingFacts]] = _one_serving
    """What `read_back` returns of what `emit` writes. Default: one object holds the serving."""
    describer: Describer | None = None
    """None: its objects cannot be converted for other backends."""


@dataclass(frozen=True, kw_only=True)
class PodDetails:
    """What templates, variables and addresses of the pods depend on the backend."""

    sizes: tuple[str, ...] = (naming.GROUP_SIZE,)
    """Variables in every container with the number of pods of its engine."""
    drops: tuple[str, ...] = ()
    """Templates that it does not write as long as no pod has them: EMPTY_ROLES, IDLE_WORKERS."""
    addresses: Callable[[ServingPlan], list[str]] = lambda _plan: []
    """Host names of the entry pods, by group, role and engine. Empty if the controller chooses."""


@dataclass(frozen=True, kw_only=True)
class Emitter(InTheCluster, BackendOptions, ReadBack, PodDetails):
    """How a plan is written for a system: what is written, and what is refused."""

    emit: Callable[[ServingPlan], tuple[Manifest, ...]]
    limits: tuple[Limit, ...]
    """Fields that the system does not take, or not with every value: an error, never dropped."""
    refuse: Callable[[ServingPlan], Iterator[Finding]]
    """Findings about options, and about engines and pods that it starts in another way."""
    names: Callable[[ServingPlan], Iterator[NameFacts]]
    """Names that the system will generate."""


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
