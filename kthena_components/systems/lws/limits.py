"""Reports what LeaderWorkerSets and DisaggregatedSets do not support: an error, never dropped.

Source: kubernetes-sigs/lws v0.9.0 pkg/webhooks, pkg/schedulerprovider/volcano_provider.go and
config/crd/bases.
"""

from collections.abc import Iterator

from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.enums import RecoveryPolicy, RolloutType
from kthena_components.systems.kubernetes.leader_names import leader_names
from kthena_components.systems.kubernetes.limits import refuse_budgets, refuse_hosts
from kthena_components.systems.lws.options import options_of, refuse_options
from kthena_components.systems.lws.view import in_slice

_UPDATE = "rollout_strategy.rolling_update_configuration"
_MOST_ROLES = 10
"""The CRD's maxItems."""


def set_name(plan: ServingPlan, role: RolePlan) -> str:
    """Name a LeaderWorkerSet. Its headless Service has this name, so `<serving>` is not free."""
    return options_of(plan).set_name or f"{plan.name}-{role.name}"


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report what LWS does not support."""
    yield from _refuse_recovery(plan)
    yield from _refuse_gang(plan)
    yield from refuse_budgets(plan, "LWS")
    yield from refuse_hosts(plan, "LWS")
    yield from refuse_options(plan)
    if len(plan.roles) > 1:
        yield from _refuse_roles(plan)


def _refuse_recovery(plan: ServingPlan) -> Iterator[Finding]:
    engines = sum(role.replicas for role in plan.roles)
    if plan.recovery is RecoveryPolicy.SERVING_GROUP_RECREATE and engines > 1:
        yield _refusal(
            "recovery_policy",
            f"is {plan.recovery}, but LWS recreates the engine whose pod failed, and a "
            f"ServingGroup has {engines} engines",
            elsewhere("write RoleRecreate"),
        )
    if plan.autoscaled and len(plan.roles) > 1:
        yield _refusal(
            "autoscaled",
            "is true, but several roles are a DisaggregatedSet, which has no scale subresource",
            elsewhere(remove()),
        )
    if plan.restart_grace_seconds:
        yield _refusal(
            "restart_grace_period_seconds",
            f"is {plan.restart_grace_seconds}, but LWS recreates an engine at once",
            elsewhere(remove()),
        )


def _refuse_gang(plan: ServingPlan) -> Iterator[Finding]:
    """Reject gangs of several engines and topologies: LWS creates one PodGroup per engine."""
    together = sum(role.gang_replicas for role in plan.roles)
    if plan.min_role_replicas is not None and together > 1:
        yield _refusal(
            "gang_policy.min_role_replicas",
            f"requests {together} engines together, but LWS schedules each engine as a gang of "
            "its own",
            elsewhere("remove gang_policy"),
        )
    policies = {"group_policy": plan.group_topology, "role_policy": plan.role_topology}
    for field, policy in policies.items():
        if policy is not None:
            yield _refusal(
                f"network_topology.{field}",
                "is given, but the PodGroups that LWS creates have no network topology",
                elsewhere(remove()),
            )


def _refuse_roles(plan: ServingPlan) -> Iterator[Finding]:
    """Reject what a DisaggregatedSet does not support."""
    if len(plan.roles) > _MOST_ROLES:
        yield _refusal(
            "roles",
            f"has {len(plan.roles)} roles, and a DisaggregatedSet has at most {_MOST_ROLES}",
            elsewhere("split the serving"),
        )
    if plan.groups > 1:
        yield _refusal(
            "replicas",
            f"is {plan.groups}, but a DisaggregatedSet of LWS 0.9 is one group of its "
            f"{count_of(len(plan.roles), 'role')}",
            elsewhere(f"write 1 and multiply roles[].replicas by {plan.groups}"),
        )
    if plan.rollout.partition:
        yield _refusal(
            f"{_UPDATE}.partition",
            f"is {plan.rollout.partition}, but a DisaggregatedSet updates its roles together",
            elsewhere(remove()),
        )
    if plan.rollout.type is RolloutType.ROLE:
        yield _refusal(
            "rollout_strategy.type",
            "is RoleRollingUpdate, but a DisaggregatedSet updates all roles when one changes",
            elsewhere("write ServingGroupRollingUpdate"),
        )
    yield from _refuse_empty(plan)


def _refuse_empty(plan: ServingPlan) -> Iterator[Finding]:
    """Reject an empty role beside others, as the CRD does."""
    filled = next((role.name for role in plan.roles if role.replicas), None)
    for role in plan.roles:
        if plan.groups and filled is not None and not role.replicas:
            yield _refusal(
                join_path(role.path, "replicas"),
                f"is 0, but role '{filled}' has engines, and a DisaggregatedSet serves with every "
                "role or with none",
                "write 1 or more, or remove the role",
            )


def _refusal(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule="backend-loss")


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the longest name of each kind that LWS generates."""
    several = len(plan.roles) > 1
    for role in plan.roles:
        of = in_slice(plan.name, role.name) if several else set_name(plan, role)
        groups = plan.groups * role.replicas
        yield from leader_names(join_path(role.path, "name"), of, groups, role.worker_replicas)
