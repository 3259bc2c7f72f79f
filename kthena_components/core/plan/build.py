"""Builds a plan from a spec: decides every default, count and template."""

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, join_path
from kthena_components.core.plan.pod_additions import claim_templates, pod_claims, startup_seconds
from kthena_components.core.plan.serving_plan import ExposePlan, RolePlan, RolloutPlan, ServingPlan
from kthena_components.core.plan.templates import engine_templates, mirror_requests
from kthena_components.core.spec.enums import EngineKind
from kthena_components.core.spec.rules.roles_pods_gang_expose import exposed_role
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.core.spec.serving_spec import (
    GroupSpec,
    ModelServingSpec,
    NetworkTopologySpec,
    RoleSpec,
    StandaloneGroupSpec,
    StandaloneRoleSpec,
)

NATIVE = "native"
SGLANG_METRICS = "--enable-metrics"
"""vLLM needs no option for its metrics."""
DEFAULT_PORT = 8080
"""Port on which a role of templates is assumed to listen."""


def build_plan(spec: ModelServingSpec) -> ServingPlan:
    """Build the plan of a serving whose spec has no blocking finding (spec_rules.BLOCKING)."""
    return _plan(spec, spec, groups=spec.replicas)


def build_group_plan(spec: StandaloneGroupSpec) -> ServingPlan:
    """Build the plan of a standalone ServingGroup: one gang, always native."""
    return _plan(spec, serving_of(spec), groups=1, first_group=spec.group)


def build_role_plan(spec: StandaloneRoleSpec) -> ServingPlan:
    """Build the plan of a standalone Role: pods and Services, without its own gang."""
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
    """Put a standalone Role into a group of one role."""
    role = RoleSpec.model_construct(**{key: getattr(spec, key) for key in RoleSpec.model_fields})
    return StandaloneGroupSpec(
        name=spec.serving,
        namespace=spec.namespace,
        roles=[role],
        group=spec.group,
        scheduler_name=spec.scheduler_name,
        priority_class=spec.priority_class,
        ready_timeout_seconds=spec.ready_timeout_seconds,
    )


def serving_of(spec: GroupSpec) -> ModelServingSpec:
    """Return a group as a serving, with the defaults of a serving's fields."""
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
    """Decide all that a spec leaves open."""
    notes: list[Finding] = []
    paths = [f"roles[{i}]" if role_path is None else role_path for i in range(len(spec.roles))]
    minima = spec.gang_policy.min_role_replicas if spec.gang_policy else None
    roles = tuple(
        _role(role, path, (minima or {}).get(role.name), notes, spec, fills=serving.fill_requests)
        for role, path in zip(_roles(serving), paths, strict=True)
    )
    topology = spec.network_topology or NetworkTopologySpec()
    return ServingPlan(
        name=spec.name,
        namespace=spec.namespace,
        backend=serving.backend,
        kthena_version=serving.kthena_version,
        first_group=first_group,
        groups=groups,
        autoscaled=serving.autoscaled,
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
        expose=_expose(serving),
        priority_class=spec.priority_class,
        spread_over=spec.spread_over,
        has_disruption_budget=_has_budget(serving),
        ready_timeout_seconds=_ready_timeout(spec),
        monitoring=serving.monitoring,
        notes=tuple(dict.fromkeys(notes)),
    )


def _roles(serving: ModelServingSpec) -> list[RoleSpec]:
    """Return the roles, with the option without which SGLang has no metrics, if they are needed."""
    return list(map(_with_metrics, serving.roles)) if serving.monitoring else serving.roles


def _with_metrics(role: RoleSpec) -> RoleSpec:
    engine, words = role.engine, [SGLANG_METRICS]
    if engine is None or engine.kind is not EngineKind.SGLANG or words[0] in engine.extra_args:
        return role
    engine = engine.model_copy(update={"extra_args": [*engine.extra_args, *words]})
    return role.model_copy(update={"engine": engine})


def _role(
    role: RoleSpec,
    path: str,
    minimum: int | None,
    notes: list[Finding],
    group: GroupSpec,
    *,
    fills: bool,
) -> RolePlan:
    """Decide all that a role leaves open, and write its pod templates."""
    # Standalone groups and roles of one serving have templates of their own.
    owner = group.name
    if isinstance(group, StandaloneGroupSpec):
        owner = naming.group_name(group.name, group.group)
    if role.engine:
        startup = startup_seconds(role, group.ready_timeout_seconds)
        entry, worker = engine_templates(role, group.name, startup, pod_claims(role, owner))
    else:
        entry, worker = role.entry_template or {}, role.worker_template
    filled_entry, entry_notes = mirror_requests(entry)
    filled_worker, worker_notes = mirror_requests(worker) if worker is not None else (None, [])
    for line in dict.fromkeys([*entry_notes, *worker_notes]):
        written = "entry_template" if line in entry_notes else "worker_template"
        also = ", also in worker_template," if line in entry_notes and line in worker_notes else ""
        written, also = ("overlay", "") if role.engine else (written, also)
        notes.append(_mirrored(join_path(path, written), f"{line}{also}", fills=fills))
    if fills:
        entry, worker = filled_entry, filled_worker
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
        stated=role,
        claim_templates=claim_templates(role, group.namespace, owner),
    )


def _ready_timeout(spec: GroupSpec) -> int:
    """Return how long `up` waits: at least as long as the engines may take to start."""
    windows = [startup_seconds(role, spec.ready_timeout_seconds) for role in spec.roles]
    return spec.ready_timeout_seconds or max(windows)


def _has_budget(spec: ModelServingSpec) -> bool:
    """Return whether evictions are limited.

    By default where another engine serves meanwhile: with a single engine, a budget would only
    block the drain of its node.
    """
    if spec.pod_disruption_budget is not None:
        return spec.pod_disruption_budget
    several = spec.replicas > 1 or any(role.replicas > 1 for role in spec.roles)
    return several and any(role.engine for role in spec.roles)


def _mirrored(path: str, line: str, *, fills: bool) -> Finding:
    """Write the note about limits without requests, and whether fill_requests filled them in."""
    if not fills:
        return Finding(
            path=path,
            level=Level.ADVISORY,
            rule="requests-mirrored",
            seen=f"{line} has limits without requests, and fill_requests is false. Volcano and "
            "Kthena count requests only",
            remedy="remove fill_requests when the engines may restart",
        )
    return Finding(
        path=path,
        level=Level.ADVISORY,
        rule="requests-mirrored",
        seen=f"{line} had limits without requests; requests now equal the limits, "
        "because Volcano and Kthena count requests only",
    )


def _rollout(spec: ModelServingSpec, groups: int) -> RolloutPlan:
    """Resolve percentages of a rollout to groups; at least one group may be unavailable."""
    stated = spec.rollout_strategy.rolling_update_configuration
    budget = scale_budget(stated.max_unavailable, groups, up=False) if stated else 1
    partition = stated.partition if stated else None
    return RolloutPlan(
        type=spec.rollout_strategy.type,
        max_unavailable=max(1, budget or 1),
        partition=scale_budget(partition, groups, up=True) or 0 if partition is not None else 0,
        stated=stated,
    )


def _expose(spec: ModelServingSpec) -> ExposePlan | None:
    """Decide the ports of the front Service; its target is the engine's port by default."""
    if spec.expose is None:
        return None
    role = exposed_role(spec)
    listens = role.engine.port if role and role.engine else DEFAULT_PORT
    return ExposePlan(
        port=spec.expose.port, target_port=spec.expose.target_port or listens, role=spec.expose.role
    )
