"""What LeaderWorkerSets and DisaggregatedSets do not support: an error, never dropped.

Source: kubernetes-sigs/lws v0.9.0 pkg/webhooks, pkg/schedulerprovider/volcano_provider.go and
config/crd/bases.
"""

from collections.abc import Iterator

from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.plan.limits import (
    UPDATE,
    Limit,
    Stated,
    above_zero,
    gang_copies,
    only_if,
)
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere
from kthena_components.core.spec.enums import RecoveryPolicy, RolloutType
from kthena_components.systems.kubernetes.backends import (
    ENGINES_WITH_METRICS,
    one_budget,
    refuse_hosts,
    refuse_surge,
)
from kthena_components.systems.kubernetes.facts import leader_names
from kthena_components.systems.lws.options import options_of, refuse_options
from kthena_components.systems.lws.view import in_slice

_MOST_ROLES = 10
"""The CRD's maxItems."""


def set_name(plan: ServingPlan, role: RolePlan) -> str:
    """Name a LeaderWorkerSet. Its headless Service has this name, so `<serving>` is not free."""
    return options_of(plan).set_name or f"{plan.name}-{role.name}"


def _engines(one: Stated) -> int:
    return sum(role.replicas for role in one.plan.roles)


def _filled(one: Stated) -> str | None:
    """Return another role that has engines."""
    return next((role.name for role in one.plan.roles if role.replicas), None)


_ONE_PER_ENGINE = (
    Limit("scheduler_name", takes="another than Volcano has no gang and no queue"),
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
