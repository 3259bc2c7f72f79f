"""What each backend declares: how it writes a plan, what it refuses, how it is read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from kthena_components.core import naming
from kthena_components.core.facts.serving import NameFacts, ServingFacts, StartOrder
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import GroupKind
from kthena_components.core.values.dataclass import dataclass
from kthena_components.systems.system import Body

if TYPE_CHECKING:  # who checks files has no plan and no input
    from kthena_components.core.plan.limits import Limit
    from kthena_components.core.plan.manifest import Manifest, Resource
    from kthena_components.core.plan.serving_plan import ScrapeTargets, ServingPlan
    from kthena_components.core.spec.fields import Spec

Pair = tuple[str, str]
"""Key and value of a label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """How the objects of a serving are found, where it has several of one kind."""

    find: Callable[[Sequence[Body]], Iterator[tuple[int, ...]]]
    """Indices of the objects of each serving among some objects."""
    joined: Callable[[Sequence[Body]], Body]
    """These objects as one: the serving's name below `metadata`, and each object as KIND/NAME."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Converter:
    """How the objects of a system are read back to arguments: the inverse of `emit`.

    It may leave out whatever it does not know: what it describes is emitted again and compared with
    the object, so nothing is lost unseen.
    """

    kinds: tuple[GroupKind, ...]
    filled: Callable[[Body], dict[str, Any]]
    """An object with the defaults that the API server or a webhook would set. Two objects that mean
    the same are equal then."""
    arguments: Callable[[Body], dict[str, Any]]
    """The arguments of a ModelServing, of a filled object. Defaults that differ between backends
    are stated.
    """
    merged: Callable[[Body, Sequence[Body]], tuple[Body, tuple[int, ...]]] | None = None
    """Puts others among some objects, which are written with this one, into it, and returns their
    indices: a ConfigMap in the place of its name. None: an object has all of its serving.
    """
    beside: tuple[GroupKind, ...] = ()
    """The kinds of these others."""
    gathered: Gathering | None = None
    """None: each object of its kinds is a serving."""
    only_here: tuple[str, ...] = ()
    """Options that no other backend has. List them only if the backend cannot be emitted without
    them: else the comparison without options finds what is lost.
    """
    elsewhere: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    """Changes the arguments for another backend. None: they are the same."""
    same_name: Callable[[Body, dict[str, Any], bool], dict[str, Any]] | None = None
    """Renames the arguments so that an object of the same kind keeps its name, where that needs
    other names than those for another kind. True: another object's name begins like it, up to the
    last dash. None: the name stays anyway."""
    labels: tuple[str, ...]
    """Prefixes of the labels that the system's controller gives to pods."""
    label: Callable[[Pair], Pair | None]
    """Kthena's label with the meaning of such a label; None if there is none."""


EMPTY_ROLES, IDLE_WORKERS = "roles", "workers"
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
    targets: Callable[[ServingPlan], ScrapeTargets]
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
    converter: Converter | None = None
    """None: its objects cannot be converted for other backends."""


@dataclass(frozen=True, kw_only=True)
class PodDetails:
    """What templates, variables and addresses of the pods depend on the backend."""

    sizes: tuple[str, ...] = (naming.GROUP_SIZE,)
    """Variables in every container with the number of pods of its engine."""
    controller_env: tuple[str, ...] | None = (*naming.INJECTED_ENV, *naming.LWS_ENV)
    """Variables that the pods get beside those of their templates, and prefixes of them. None: not
    known. A backend that does not set LeaderWorkerSet's refuses them by itself."""
    drops: tuple[str, ...] = ()
    """Templates that it does not write as long as no pod has them: EMPTY_ROLES, IDLE_WORKERS."""
    order: Callable[[ServingPlan], StartOrder | None] = lambda _plan: None
    """Why the workers of an engine wait for its first pod. None: they do not."""
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
