"""Everything that is asked for, resolved: each count, name, default and template.

A plan decides; backends only write it down. It holds no Kubernetes object and no Pulumi value.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from kthena_components.core.findings import Finding, Level
from kthena_components.core.pod_template import Template
from kthena_components.core.pods import engine_templates, mirror_requests, requests_of
from kthena_components.core.quantity import add_resources
from kthena_components.core.spec import (
    EngineSpec,
    ExposeSpec,
    GroupSpec,
    KthenaVersion,
    ModelServingSpec,
    NetworkTopologySpec,
    RecoveryPolicy,
    RoleSpec,
    RollingUpdateSpec,
    RolloutType,
    StandaloneGroupSpec,
    StandaloneRoleSpec,
    TopologySpec,
)
from kthena_components.core.spec_rules import scale_budget

NATIVE = "native"
VOLCANO = "volcano"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolePlan:
    """One role, resolved. `replicas` engines of `pods` pods each, in every group."""

    name: str
    replicas: int
    worker_replicas: int
    gang_replicas: int
    """Engines of this role that must be placeable before the group starts."""
    entry: Template
    worker: Template | None
    engine: EngineSpec | None
    max_unavailable: int | str | None
    path: str
    """Where the user wrote this role: `roles[0]`."""

    @property
    def pods(self) -> int:
        """Pods of one engine, the entry included."""
        return 1 + self.worker_replicas

    @property
    def template_hash(self) -> str:
        """Hash of what makes an engine's pods: changes exactly when they must be made anew.

        Ten hexadecimal digits. Kthena's own hash dumps Go structs and cannot be reproduced.
        """
        return _digest(self.name, self.worker_replicas, self.entry, self.worker)

    @property
    def requests(self) -> dict[str, Decimal]:
        """Requests of one engine, entry and workers together, in base units."""
        return add_resources(
            requests_of(self.entry), requests_of(self.worker), self.worker_replicas
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """How a changed template reaches the groups, in whole groups."""

    type: RolloutType
    max_unavailable: int
    """Groups that may be down at a time."""
    partition: int
    """Groups, from the first, that keep their template."""
    stated: RollingUpdateSpec | None


@dataclass(frozen=True, slots=True, kw_only=True)
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
    """PodGroup that the pods of a Role alone join, empty for none.

    None elsewhere: each group makes its own.
    """
    group_topology: TopologySpec | None
    role_topology: TopologySpec | None
    rollout: RolloutPlan
    recovery: RecoveryPolicy | None
    restart_grace_seconds: int | None
    expose: ExposeSpec | None
    ready_timeout_seconds: int
    notes: tuple[Finding, ...]
    """What was filled in on the user's behalf."""

    @property
    def gang(self) -> bool:
        """Tell whether Volcano schedules the groups."""
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
        """Pods of one group that must be placeable together.

        Source: Kthena v1.0.0 pkg/model-serving-controller/podgroupmanager/manager.go.
        """
        return sum(role.gang_replicas * role.pods for role in self.roles)

    @property
    def min_resources(self) -> dict[str, Decimal]:
        """Requests of those pods, in base units."""
        total: dict[str, Decimal] = {}
        for role in self.roles:
            total = add_resources(total, role.requests, role.gang_replicas)
        return total

    @property
    def revision(self) -> str:
        """Hash over all roles: changes when any engine of a group changes."""
        return _digest(*(role.template_hash for role in self.roles))

    def group_numbers(self) -> range:
        """Ordinals of the groups."""
        return range(self.first_group, self.first_group + self.groups)

    def batch_before(self, group: int) -> Iterator[int]:
        """Groups that must be ready before this one is touched: the batch before its own."""
        size = self.rollout.max_unavailable
        start = (group - self.first_group) // size * size + self.first_group
        return iter(range(max(self.first_group, start - size), start))


def build_plan(spec: ModelServingSpec) -> ServingPlan:
    """Resolve a serving whose spec has no blocking finding (spec_rules.BLOCKING)."""
    return _plan(spec, spec, groups=spec.replicas)


def build_group_plan(spec: StandaloneGroupSpec) -> ServingPlan:
    """Resolve a ServingGroup used by itself: one gang, always native."""
    return _plan(spec, serving_of(spec), groups=1, first_group=spec.group)


def build_role_plan(spec: StandaloneRoleSpec) -> ServingPlan:
    """Resolve a Role used by itself: pods and Services, no gang of its own."""
    group = role_serving(spec)
    return _plan(
        group,
        serving_of(group),
        groups=1,
        first_group=spec.group,
        pod_group=spec.pod_group or "",
        role_path="",
    )


def role_serving(spec: StandaloneRoleSpec) -> StandaloneGroupSpec:
    """Put a Role used by itself into a group of one role."""
    role = RoleSpec.model_construct(**{key: getattr(spec, key) for key in RoleSpec.model_fields})
    return StandaloneGroupSpec(
        name=spec.serving,
        namespace=spec.namespace,
        roles=[role],
        group=spec.group,
        scheduler_name=spec.scheduler_name,
        ready_timeout_seconds=spec.ready_timeout_seconds,
    )


def serving_of(spec: GroupSpec) -> ModelServingSpec:
    """Give a group the fields that only a whole serving has, at their defaults."""
    shared = {key: getattr(spec, key) for key in GroupSpec.model_fields}
    return ModelServingSpec.model_construct(**shared, replicas=1, backend=NATIVE)


def _plan(
    spec: GroupSpec,
    serving: ModelServingSpec,
    *,
    groups: int,
    first_group: int = 0,
    pod_group: str | None = None,
    role_path: str | None = None,
) -> ServingPlan:
    notes: list[Finding] = []
    paths = [f"roles[{i}]" if role_path is None else role_path for i in range(len(spec.roles))]
    minima = spec.gang_policy.min_role_replicas if spec.gang_policy else None
    roles = tuple(
        _role(role, path, (minima or {}).get(role.name), notes)
        for role, path in zip(spec.roles, paths, strict=True)
    )
    topology = spec.network_topology or NetworkTopologySpec()
    return ServingPlan(
        name=spec.name,
        namespace=spec.namespace,
        backend=serving.backend,
        kthena_version=serving.kthena_version,
        first_group=first_group,
        groups=groups,
        roles=roles,
        scheduler=spec.scheduler_name,
        queue=spec.queue,
        min_role_replicas=minima,
        pod_group=pod_group,
        group_topology=topology.group_policy,
        role_topology=topology.role_policy,
        rollout=_rollout(serving, groups),
        recovery=serving.recovery_policy,
        restart_grace_seconds=serving.restart_grace_period_seconds,
        expose=serving.expose,
        ready_timeout_seconds=spec.ready_timeout_seconds,
        notes=tuple(notes),
    )


def _role(role: RoleSpec, path: str, minimum: int | None, notes: list[Finding]) -> RolePlan:
    if role.engine:
        entry, worker = engine_templates(role)
    else:
        entry, worker = role.entry_template or {}, role.worker_template
    entry, told_entry = mirror_requests(entry)
    worker, told_worker = mirror_requests(worker) if worker is not None else (None, [])
    for field, told in (("entry_template", told_entry), ("worker_template", told_worker)):
        notes.extend(_mirrored(f"{path}.{field}" if path else field, line) for line in told)
    return RolePlan(
        name=role.name,
        replicas=role.replicas,
        worker_replicas=role.worker_replicas,
        gang_replicas=min(role.replicas if minimum is None else minimum, role.replicas),
        entry=entry,
        worker=worker,
        engine=role.engine,
        max_unavailable=role.max_unavailable,
        path=path,
    )


def _mirrored(path: str, line: str) -> Finding:
    return Finding(
        path=path,
        level=Level.ADVISORY,
        rule="requests-mirrored",
        seen=f"{line} had limits without requests; requests now equal the limits, "
        "because Volcano and Kthena count requests only",
    )


def _rollout(spec: ModelServingSpec, groups: int) -> RolloutPlan:
    stated = spec.rollout_strategy.rolling_update_configuration
    budget = scale_budget(stated.max_unavailable, groups, up=False) if stated else 1
    partition = stated.partition if stated else None
    return RolloutPlan(
        type=spec.rollout_strategy.type,
        max_unavailable=max(1, budget or 1),
        partition=scale_budget(partition, groups, up=True) or 0 if partition is not None else 0,
        stated=stated,
    )


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
