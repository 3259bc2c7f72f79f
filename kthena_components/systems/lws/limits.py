"""What LeaderWorkerSets and DisaggregatedSets do not support: an error, never dropped.

Source: kubernetes-sigs/lws v0.9.0 pkg/webhooks, pkg/schedulerprovider/volcano_provider.go and
config/crd/bases.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, Level, count_of, join_path, nearest
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.plan.limits import (
    UPDATE,
    Limit,
    SetField,
    above_zero,
    gang_copies,
    only_if,
    wrong_option,
)
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import either, elsewhere, remove, write
from kthena_components.core.spec.enums import RecoveryPolicy, RolloutType
from kthena_components.core.spec.fields import LabelKey, Positive, ServiceName, Spec
from kthena_components.systems.kubernetes.backends import (
    ENGINES_WITH_METRICS,
    leader_names,
    one_budget,
    refuse_hosts,
    refuse_surge,
)
from kthena_components.systems.lws.view import in_slice

# `backend_options` of the lws backend: what only LeaderWorkerSets have.
#
# Source: kubernetes-sigs/lws v0.9.0 api/leaderworkerset/v1, pkg/webhooks and pkg/controllers.


STARTUP_POLICY = "backend_options.startup_policy"
_WORD = Field(strict=False)


class StartupPolicy(StrEnum):
    """When the workers of an engine are created."""

    LEADER_CREATED = "LeaderCreated"
    LEADER_READY = "LeaderReady"


class SubgroupType(StrEnum):
    """Whether the leader belongs to the first subgroup."""

    LEADER_WORKER = "LeaderWorker"
    LEADER_EXCLUDED = "LeaderExcluded"


class SubdomainPolicy(StrEnum):
    """One headless Service for all engines, or one each."""

    SHARED = "Shared"
    UNIQUE = "UniquePerReplica"


class SubgroupSpec(Spec):
    """Parts of an engine: `size` pods each."""

    size: Positive
    type: Annotated[SubgroupType, _WORD] = SubgroupType.LEADER_WORKER
    exclusive_topology: LabelKey | None = None
    """Node label: each subgroup gets a value of it for itself. Default: none."""


class LwsOptions(Spec):
    """Fields of LeaderWorkerSets that no other backend has."""

    exclusive_topology: LabelKey | None = None
    """Node label: each engine gets a value of it for itself. Default: none."""
    subgroups: dict[str, SubgroupSpec] = Field(default_factory=dict)
    """By role. Default: none. They cannot be added, resized or removed later."""
    startup_policy: Annotated[StartupPolicy, _WORD] = StartupPolicy.LEADER_CREATED
    recreate_after_start: bool = False
    """Whether an engine is recreated only after all its pods have started once."""
    subdomain_policy: Annotated[SubdomainPolicy, _WORD] = SubdomainPolicy.SHARED
    set_name: ServiceName | None = None
    """Name of a LeaderWorkerSet that exists already. Default: those of serving and role."""


def options_of(plan: ServingPlan) -> LwsOptions:
    """Return the options of a plan."""
    return plan.options if isinstance(plan.options, LwsOptions) else LwsOptions()


def refuse_options(plan: ServingPlan) -> Iterator[Finding]:
    """Report options that LWS rejects, and those with which no engine starts."""
    options = options_of(plan)
    yield from _refuse_unknown_roles(plan, options)
    for role in plan.roles:
        if role.name in options.subgroups:
            yield from _refuse_subgroup(role, options.subgroups[role.name])
    yield from _refuse_exclusive(plan, options)
    yield from _advise_created(plan, options)
    yield from _refuse_set_name(plan, options)
    if options.recreate_after_start and plan.recovery is RecoveryPolicy.NONE:
        yield wrong_option(
            "recreate_after_start",
            "is true, but with recovery_policy: None nothing is recreated",
            "remove one of them",
        )


def _refuse_set_name(plan: ServingPlan, options: LwsOptions) -> Iterator[Finding]:
    """Reject a name for several sets, and one whose headless Service would be the front Service."""
    if options.set_name is None:
        return
    if len(plan.roles) > 1:
        yield wrong_option(
            "set_name", "is given, but several roles are a DisaggregatedSet", remove()
        )
    elif plan.expose is not None and options.set_name == plan.name:
        yield wrong_option(
            "set_name",
            f"is '{plan.name}', like the serving, and LWS creates a Service of this name, as "
            "expose does",
            "give the serving another name, or remove expose",
        )


def _refuse_unknown_roles(plan: ServingPlan, options: LwsOptions) -> Iterator[Finding]:
    """Check that subgroups are stated for roles of the serving."""
    known = [role.name for role in plan.roles]
    for name in options.subgroups:
        if name not in known:
            close = nearest(name, known)
            yield wrong_option(
                f"subgroups.{name}",
                f"is not a role; the roles are {', '.join(known)}",
                write(close) if close else "write the name of a role",
            )


def _refuse_subgroup(role: RolePlan, subgroup: SubgroupSpec) -> Iterator[Finding]:
    """Check a size as the webhook does: validateUpdateSubGroupPolicy."""
    at, size, pods = f"subgroups.{role.name}.size", subgroup.size, role.pods
    fitting = _sizes(pods, subgroup.type)
    if size in fitting:
        return
    without = subgroup.type is SubgroupType.LEADER_EXCLUDED
    workers = count_of(pods - 1, "worker")
    counted = f"the {workers}" if without else f"the {count_of(pods, 'pod')}, or the {workers}"
    yield wrong_option(
        at,
        f"is {size}, but must divide {counted}, of an engine of role '{role.name}'",
        f"write {' or '.join(map(str, fitting))}" if fitting else "remove the subgroup",
    )


def _sizes(pods: int, kind: SubgroupType) -> list[int]:
    """Return the sizes of subgroups that LWS accepts for an engine."""
    counts = [pods - 1] if kind is SubgroupType.LEADER_EXCLUDED else [pods, pods - 1]
    return [size for size in range(1, pods + 1) if any(count % size == 0 for count in counts)]


def _refuse_exclusive(plan: ServingPlan, options: LwsOptions) -> Iterator[Finding]:
    """Reject a gang whose workers are created after its leader is scheduled: it never is.

    Source: pkg/controllers/pod_controller.go Reconcile; a gang's minMember is the whole engine.
    """
    ready = options.startup_policy is StartupPolicy.LEADER_READY
    together = [role for role in plan.roles if role.worker_replicas]
    if options.exclusive_topology and plan.scheduler == VOLCANO and together and not ready:
        yield wrong_option(
            "exclusive_topology",
            "is given, so LWS creates the workers of an engine after its leader is scheduled; "
            f"Volcano schedules the {count_of(together[0].pods, 'pod')} of role "
            f"'{together[0].name}' together, "
            "so none is ever scheduled",
            either("write scheduler_name: default-scheduler", remove()),
        )


def _advise_created(plan: ServingPlan, options: LwsOptions) -> Iterator[Finding]:
    """Report a gang that contains only the leader, as the rule lws-gang-startup does of objects.

    Source: pkg/schedulerprovider/volcano_provider.go; with LeaderReady, minMember is 1.
    """
    ready = options.startup_policy is StartupPolicy.LEADER_READY
    together = [role for role in plan.roles if role.worker_replicas]
    if ready and plan.scheduler == VOLCANO and together:
        found = wrong_option(
            "startup_policy",
            "is LeaderReady, so Volcano schedules the leader of an engine alone, and not the "
            f"{count_of(together[0].pods, 'pod')} of role '{together[0].name}' together",
            either(remove(), "write scheduler_name: default-scheduler"),
        )
        yield replace(found, rule="lws-gang-startup", level=Level.ADVISORY)


_MOST_ROLES = 10
"""The CRD's maxItems."""


def set_name(plan: ServingPlan, role: RolePlan) -> str:
    """Name a LeaderWorkerSet. Its headless Service has this name, so `<serving>` is not free."""
    return options_of(plan).set_name or f"{plan.name}-{role.name}"


def _engines(one: SetField) -> int:
    return sum(role.replicas for role in one.plan.roles)


def _filled(one: SetField) -> str | None:
    """Return another role that has engines."""
    return next((role.name for role in one.plan.roles if role.replicas), None)


_ONE_PER_ENGINE = (
    Limit("scheduler_name", takes="schedulers other than Volcano have no gang and no queue"),
    Limit(
        "gang_policy.min_role_replicas",
        lambda one: (
            f"requests {count_of(gang_copies(one), 'engine')} together, but LWS schedules "
            "each engine as a "
            "gang of its own"
        ),
        takes="at most 1 engine",
        when=lambda one: gang_copies(one) > 1,
        remedy=elsewhere("remove gang_policy"),
    ),
    *(
        Limit(
            f"network_topology.{policy}",
            "is given, but the PodGroups that LWS creates have no network topology",
        )
        for policy in ("group_policy", "role_policy")
    ),
)
_SEVERAL_ROLES = only_if(
    lambda one: one.several,
    Limit(
        "roles",
        lambda one: (
            f"has {count_of(len(one.value), 'role')}, and a DisaggregatedSet has at most "
            f"{_MOST_ROLES}"
        ),
        when=lambda one: len(one.value) > _MOST_ROLES,
        remedy=elsewhere("split the serving"),
    ),
    Limit(
        "replicas",
        lambda one: (
            f"is {one.value}, but a DisaggregatedSet of LWS 0.9 is one group of its "
            f"{count_of(len(one.plan.roles), 'role')}"
        ),
        takes="at most 1 with several roles",
        when=lambda one: one.value > 1,
        remedy=lambda one: elsewhere(f"write 1 and multiply roles[].replicas by {one.value}"),
    ),
    Limit(
        "roles[].replicas",
        lambda one: (
            f"is 0, but role '{_filled(one)}' has engines, and a DisaggregatedSet serves with "
            "every role or with none"
        ),
        takes="with several roles, 0 of all or of none",
        when=lambda one: one.plan.groups and not one.value and _filled(one),
        remedy="write 1 or more, or remove the role",
    ),
    Limit(
        f"{UPDATE}.partition",
        "is {plan.rollout.partition}, but a DisaggregatedSet updates its roles together",
        takes="one role",
        when=lambda one: one.plan.rollout.partition,
    ),
    Limit(
        "rollout_strategy.type",
        "is {}, but a DisaggregatedSet updates all roles when one changes",
        takes="one role, or `ServingGroupRollingUpdate`",
        when=lambda one: one.value is RolloutType.ROLE,
        remedy=elsewhere("write ServingGroupRollingUpdate"),
    ),
    Limit(
        "autoscaled",
        "is true, but several roles are a DisaggregatedSet, which has no scale subresource",
        takes="one role",
    ),
)
LIMITS = (
    Limit(
        "recovery_policy",
        lambda one: (
            f"is {one.value}, but LWS recreates the engine whose pod failed, and a ServingGroup "
            f"has {count_of(_engines(one), 'engine')}"
        ),
        takes="`ServingGroupRecreate` only with one engine per group",
        when=lambda one: one.value is RecoveryPolicy.SERVING_GROUP_RECREATE and _engines(one) > 1,
        remedy=elsewhere("write RoleRecreate"),
    ),
    Limit(
        "restart_grace_period_seconds",
        "is {}, but LWS recreates an engine at once",
        when=above_zero,
    ),
    ENGINES_WITH_METRICS,
    *_ONE_PER_ENGINE,
    one_budget("LWS", "one role, and at most one group"),
    *_SEVERAL_ROLES,
)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report budgets, host names and options that LWS does not support."""
    yield from refuse_surge(plan)
    yield from refuse_hosts(plan, "LWS")
    yield from refuse_options(plan)


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the longest name of each kind that LWS generates."""
    several = len(plan.roles) > 1
    for role in plan.roles:
        of = in_slice(plan.name, role.name) if several else set_name(plan, role)
        groups = plan.groups * role.replicas
        yield from leader_names(join_path(role.path, "name"), of, groups, role.worker_replicas)
