"""The resolved plan, with the placement of its pods and the ports that have metrics.

build.py creates it; backends only write it. It contains no Kubernetes object and no Pulumi value.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.plan.templates import requests_of, unknown_requests
from kthena_components.core.spec.enums import KthenaVersion, RecoveryPolicy, RolloutType
from kthena_components.core.spec.fields import Spec
from kthena_components.core.spec.serving_spec import (
    EngineSpec,
    RoleSpec,
    RollingUpdateSpec,
    TopologySpec,
)
from kthena_components.core.templates import Template
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import add_resources


@dataclass(frozen=True, kw_only=True)  # without slots: cached properties need a __dict__
class RolePlan:
    """One role, resolved: `replicas` engines of `pods` pods each, in every group."""

    name: str
    replicas: int
    worker_replicas: int
    gang_replicas: int
    """Engines of this role that must be placed together before the group starts."""
    entry: Template
    worker: Template | None
    engine: EngineSpec | None
    max_unavailable: int | str | None
    path: str
    """Path of this role in the user's input: `roles[0]`."""
    stated: RoleSpec
    """As the user states it, for a backend that writes other objects than these pods."""
    claim_templates: tuple[Mapping[str, Any], ...] = ()
    """The ResourceClaimTemplates of its device requests."""

    @property
    def pods(self) -> int:
        """Pods of one engine, the entry included."""
        return 1 + self.worker_replicas

    @cached_property
    def template_hash(self) -> str:
        """Hash of what defines an engine's pods: changes exactly if they must be replaced.

        Ten hexadecimal digits. Kthena's own hash dumps Go structs and cannot be reproduced.
        """
        return _digest(self.name, self.worker_replicas, self.entry, self.worker)

    @cached_property
    def requests(self) -> dict[str, Decimal]:
        """Requests of one engine, entry and workers together, in base units."""
        return add_resources(
            requests_of(self.entry), requests_of(self.worker), self.worker_replicas
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """How a changed template is rolled out, in whole groups."""

    type: RolloutType
    max_unavailable: int
    """Groups that may be unavailable at a time."""
    partition: int
    """The first groups that keep their old template."""
    stated: RollingUpdateSpec | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposePlan:
    """The front Service."""

    port: int
    target_port: int
    role: str | None
    """Role whose entry pods it selects; None for the only role."""


@dataclass(frozen=True, kw_only=True)  # without slots: cached properties need a __dict__
class ServingPlan:
    """One serving, resolved."""

    name: str
    namespace: str
    backend: str
    kthena_version: KthenaVersion
    first_group: int
    groups: int
    roles: tuple[RolePlan, ...]
    scheduler: str
    queue: str | None
    min_role_replicas: Mapping[str, int] | None
    """As stated by the user; None when there is no gang policy."""
    pod_group: str | None
    """PodGroup that the pods of a standalone Role join, empty for none. None otherwise: each group
    has its own.
    """
    group_topology: TopologySpec | None
    role_topology: TopologySpec | None
    rollout: RolloutPlan
    recovery: RecoveryPolicy | None
    restart_grace_seconds: int | None
    expose: ExposePlan | None
    ready_timeout_seconds: int
    notes: tuple[Finding, ...]
    """Messages about values that were filled in."""
    autoscaled: bool = False
    """Whether something outside of the program changes the number of groups."""
    priority_class: str | None = None
    """PriorityClass of all pods, and of their PodGroups."""
    spread_over: str | None = None
    """Label of nodes over whose values the groups are spread, as stated."""
    has_disruption_budget: bool = False
    """Whether a PodDisruptionBudget protects the pods."""
    monitoring: bool = False
    """Whether Prometheus scrapes the entries and alerts."""
    options: Spec | None = None
    """`backend_options`, in the model of the backend; None if it has none."""

    @property
    def gang(self) -> bool:
        """Whether Volcano schedules the groups."""
        return self.scheduler == VOLCANO

    @property
    def pods_per_group(self) -> int:
        """Pods of one group."""
        return sum(role.replicas * role.pods for role in self.roles)

    @property
    def pods(self) -> int:
        """Pods of the whole serving."""
        return self.groups * self.pods_per_group

    @property
    def min_member(self) -> int:
        """Pods of one group that must be placed together.

        Source: Kthena v1.0.0 pkg/model-serving-controller/podgroupmanager/manager.go.
        """
        return sum(role.gang_replicas * role.pods for role in self.roles)

    @property
    def min_resources(self) -> dict[str, Decimal]:
        """Requests of those pods, in base units; without resources whose sum is not known."""
        total: dict[str, Decimal] = {}
        unknown: set[str] = set()
        for role in self.roles:
            total = add_resources(total, role.requests, role.gang_replicas)
            unknown |= unknown_requests(role.entry) | unknown_requests(role.worker)
        return {key: amount for key, amount in total.items() if key not in unknown}

    @cached_property
    def revision(self) -> str:
        """Hash over all roles: changes if any engine of a group changes."""
        return _digest(*(role.template_hash for role in self.roles))

    def group_numbers(self) -> range:
        """Ordinals of the groups."""
        return range(self.first_group, self.first_group + self.groups)

    def batch_before(self, group: int) -> Iterator[int]:
        """Groups that must be ready before this one is updated: the previous batch."""
        size = self.rollout.max_unavailable
        start = (group - self.first_group) // size * size + self.first_group
        return iter(range(max(self.first_group, start - size), start))


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Equal sets of pods. Each set serves as a whole: it is a ServingGroup or a single engine."""

    roles: tuple[str, ...]
    """Roles whose pods they have."""
    pods: str
    """Names of their pods, as a pattern of RE2. Its first parentheses are the name of the set."""
    size: int | None
    """Pods of one set. None: an autoscaler changes it."""
    number: int | None
    """Sets of the whole serving. None: an autoscaler changes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeTargets:
    """The pods of a serving, as Prometheus and kube-state-metrics know them."""

    entries: Mapping[str, Mapping[str, str]]
    """Labels of the entry pods of each role."""
    units: tuple[Unit, ...]


def targets_of_groups(plan: ServingPlan) -> ScrapeTargets:
    """Return the pods of a backend that names them as Kthena does: a unit is a ServingGroup.

    Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go GeneratePodName. Workers of
    the native backend have a `w-` before their number.
    """
    roles = tuple(role.name for role in plan.roles if role.replicas)
    pods = f"({plan.name}-[0-9]+)-(?:{'|'.join(roles)})-[0-9]+-(?:w-)?[0-9]+"
    unit = Unit(roles=roles, pods=pods, size=plan.pods_per_group, number=plan.groups)
    return ScrapeTargets(entries=entry_labels(plan), units=only_with_pods([unit]))


def entry_labels(plan: ServingPlan) -> dict[str, dict[str, str]]:
    """Return the labels of entry pods that have Kthena's."""
    return {
        role.name: {naming.NAME: plan.name, naming.ROLE: role.name, naming.ENTRY: "true"}
        for role in plan.roles
    }


def only_with_pods(units: Iterable[Unit]) -> tuple[Unit, ...]:
    """Leave out units without pods: a role may have no engines."""
    return tuple(unit for unit in units if unit.size != 0 and unit.number != 0)


ZONE = "topology.kubernetes.io/zone"
"""Default of spread_over."""
_WEIGHT = 100


def prioritized(plan: ServingPlan, template: Template) -> Template:
    """Add the priority of a serving, unless the template has one."""
    if plan.priority_class is None:
        return template
    spec = template.get("spec") or {}
    return {**template, "spec": {"priorityClassName": plan.priority_class, **spec}}


def placed(
    plan: ServingPlan, role: RolePlan, template: Template, labels: Mapping[str, str], group: str
) -> Template:
    """Add the priority of a serving, and a preference for zones without its other groups.

    Templates of the user get only what the user states for the serving, and never a second
    priority or podAntiAffinity. The preference is soft: with fewer zones than groups, they share.

    Args:
        labels: Labels that all pods of the serving have.
        group: Label whose value differs between its groups. Kubernetes compares it for each pod
            (mismatchLabelKeys, since 1.31).
    """
    template = prioritized(plan, template)
    spec = template.get("spec") or {}
    affinity = spec.get("affinity") or {}
    key = plan.spread_over or (ZONE if role.engine else None)
    if key is None or "podAntiAffinity" in affinity:
        return template
    wider = {**affinity, "podAntiAffinity": _apart(key, labels, group)}
    return {**template, "spec": {**spec, "affinity": wider}}


def placed_plan(plan: ServingPlan, labels: Mapping[str, str], group: str) -> ServingPlan:
    """Return a plan with `placed` templates, so that their hashes include it."""
    roles = (
        replace(
            role,
            entry=placed(plan, role, role.entry, labels, group),
            worker=None if role.worker is None else placed(plan, role, role.worker, labels, group),
        )
        for role in plan.roles
    )
    return replace(plan, roles=tuple(roles))


def _apart(key: str, labels: Mapping[str, str], group: str) -> dict[str, Any]:
    term = {
        "topologyKey": key,
        "labelSelector": {"matchLabels": dict(labels)},
        "mismatchLabelKeys": [group],
    }
    preferred = {"weight": _WEIGHT, "podAffinityTerm": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
