"""Rules that hold between fields of a spec, whatever backend it goes to.

Each function is one rule and gives its findings; RULES is the list. What one backend cannot
express is in that backend's file.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from kthena_components.core.findings import Finding, count_of, suggest
from kthena_components.core.role_rules import ROLE_RULES, template_scheduler
from kthena_components.core.spec import (
    ModelServingSpec,
    NetworkTopologySpec,
    RecoveryPolicy,
    RoleSpec,
    RolloutType,
    TopologyMode,
    TopologySpec,
)
from kthena_components.core.spec_parse import show_value

PERCENT = re.compile(r"^(?:100|[0-9]{1,2})%$")


def check_spec(
    spec: ModelServingSpec, *, alone: bool = False, role_path: str | None = None
) -> list[Finding]:
    """Judge a spec by every rule.

    Args:
        spec: the serving, or what a group or a role used by itself would be one of.
        alone: whether it is such a group or role. It has no rollout that a rule could go by.
        role_path: where a role used by itself stands, instead of `roles[i]`.
    """
    findings = [finding for rule in RULES for finding in rule(spec)]
    for index, role in enumerate(spec.roles):
        prefix = f"roles[{index}]" if role_path is None else role_path
        found = [finding for rule in ROLE_RULES for finding in rule(role)]
        found += template_scheduler(role, spec.scheduler_name)
        found += [] if alone else role_budget(spec, role)
        findings.extend(finding.under(prefix) for finding in found)
    return findings


def scale_budget(budget: int | str, of: int, *, up: bool) -> int | None:
    """Turn a count or a percentage into a count; None when it is neither.

    Percentages round down for max_unavailable and up for partition, as Kthena does.
    Source: Kthena v1.0.0 pkg/model-serving-controller/utils/utils.go GetMaxUnavailable.
    """
    if isinstance(budget, int):
        return budget if budget >= 0 else None
    if not PERCENT.match(budget):
        return None
    share = int(budget[:-1]) * of
    return -(-share // 100) if up else share // 100


def role_names_unique(spec: ModelServingSpec) -> Iterator[Finding]:
    """Each role name occurs once: names of pods and Services are made from it."""
    for name, count in Counter(role.name for role in spec.roles).items():
        if count > 1:
            at = [i for i, role in enumerate(spec.roles) if role.name == name]
            yield Finding(
                path=f"roles[{at[1]}].name",
                rule="role-names-unique",
                seen=f"{count} roles have the name '{name}' "
                f"({', '.join(f'roles[{i}]' for i in at)}), and role names must be unique",
                remedy="rename all but one",
            )


def gang_minimum(spec: ModelServingSpec) -> Iterator[Finding]:
    """A gang minimum names a role and is at most that role's replicas.

    Source: Kthena v1.0.0 pkg/model-serving-controller/webhook/validator.go validateGangPolicy.
    """
    replicas = {role.name: role.replicas for role in spec.roles}
    for name, minimum in (spec.gang_policy.min_role_replicas if spec.gang_policy else {}).items():
        path = f"gang_policy.min_role_replicas.{name}"
        if name not in replicas:
            yield Finding(
                path=path,
                seen=f"there is no role '{name}'",
                remedy=suggest(name, replicas),
                rule="gang-minimum",
            )
        elif minimum > replicas[name]:
            yield Finding(
                path=path,
                rule="gang-minimum",
                seen=f"is {minimum}, but role '{name}' has {count_of(replicas[name], 'replica')}, "
                "so the group could never start",
                remedy=f"write at most {replicas[name]}",
            )


def topology_cap(spec: ModelServingSpec) -> Iterator[Finding]:
    """A topology has exactly one cap, and a hard one can be satisfied.

    Volcano drops a hard constraint without a cap, and never places one with cap 0.
    Source: Volcano v1.14 webhooks/admission/podgroups and scheduler/api/job_info.go.
    """
    topology = spec.network_topology or NetworkTopologySpec()
    for field in ("group_policy", "role_policy"):
        policy: TopologySpec | None = getattr(topology, field)
        if policy is None:
            continue
        tier, name = policy.highest_tier_allowed, policy.highest_tier_name
        path, hard = f"network_topology.{field}", policy.mode is TopologyMode.HARD
        if tier is not None and name is not None:
            seen = f"both highest_tier_allowed ({tier}) and highest_tier_name ('{name}') are given"
            seen, remedy = f"{seen}, and Volcano takes one or the other", "remove one of them"
        elif hard and tier is None and name is None:
            seen = "mode is hard but no tier is given, so Volcano would drop the whole constraint"
            remedy = "give highest_tier_allowed, for example 1 for the closest tier"
        elif hard and tier == 0:
            path = f"{path}.highest_tier_allowed"
            seen = "is 0, below the closest tier, so Volcano would never place the group"
            remedy = "write 1 for the closest tier"
        else:
            continue
        yield Finding(path=path, seen=seen, remedy=remedy, rule="topology-cap-stated")


def volcano_fields(spec: ModelServingSpec) -> Iterator[Finding]:
    """Gang, topology and queue are Volcano's: another scheduler would ignore them."""
    if spec.scheduler_name == "volcano":
        return
    for field in ("gang_policy", "network_topology", "queue"):
        if getattr(spec, field) is not None:
            yield Finding(
                path=field,
                rule="volcano-scheduler",
                seen=f"is given, but scheduler_name is '{spec.scheduler_name}', and only Volcano "
                "reads it",
                remedy="write scheduler_name: volcano, or remove the field",
            )


def rollout_budget(spec: ModelServingSpec) -> Iterator[Finding]:
    """Budgets are counts or percentages, never zero, and the partition lies inside the groups.

    Source: Kthena v1.0.0 webhook/validator.go validateRollingUpdateConfiguration.
    """
    stated, path = (
        spec.rollout_strategy.rolling_update_configuration,
        ("rollout_strategy.rolling_update_configuration"),
    )
    if stated is None:
        return
    if spec.rollout_strategy.type is RolloutType.ROLE:
        yield Finding(
            path=path,
            rule="rollout-budget",
            seen="is given, but with RoleRollingUpdate the budget belongs to each role",
            remedy="remove it; with backend: kthena, a role takes max_unavailable itself",
        )
        return
    yield from _budget(f"{path}.max_unavailable", stated.max_unavailable, spec.replicas, "group")
    if stated.partition is None:
        return
    partition = scale_budget(stated.partition, spec.replicas, up=True)
    if partition is None:
        yield _no_budget(f"{path}.partition", stated.partition)
    elif partition > spec.replicas:
        yield Finding(
            path=f"{path}.partition",
            rule="rollout-partition",
            seen=f"is {stated.partition}, but the serving has {count_of(spec.replicas, 'group')}; "
            "the partition counts the first groups that keep their template",
            remedy=f"write at most {spec.replicas}, or a percentage such as 50%",
        )


def _budget(path: str, budget: int | str, of: int, what: str) -> Iterator[Finding]:
    """Refuse a budget that is none, or that lets nothing be updated.

    Kthena refuses a percentage of nothing as well, so that it is refused for every backend.
    """
    scaled = scale_budget(budget, of, up=False)
    if scaled is None:
        yield _no_budget(path, budget)
    elif scaled == 0:
        share = "" if isinstance(budget, int) else f", and of {count_of(of, what)} that is 0"
        yield Finding(
            path=path,
            rule="rollout-budget",
            seen=f"is {budget}{share}, so nothing could ever be updated",
            remedy="write a count of at least 1",
        )


def _no_budget(path: str, budget: int | str) -> Finding:
    return Finding(
        path=path,
        rule="rollout-budget",
        seen=f"is {show_value(budget)}, but must be a count of at least 0 "
        "or a percentage from 0% to 100%",
        remedy="write for example 1 or 25%",
    )


def recovery_and_rollout(spec: ModelServingSpec) -> Iterator[Finding]:
    """A whole group is not recreated while single roles roll.

    Source: Kthena v1.0.0 webhook/validator.go validateRecoveryPolicyAndRolloutStrategy.
    """
    if (
        spec.recovery_policy is RecoveryPolicy.SERVING_GROUP_RECREATE
        and spec.rollout_strategy.type is RolloutType.ROLE
    ):
        yield Finding(
            path="rollout_strategy.type",
            rule="recovery-and-rollout",
            seen="is RoleRollingUpdate while recovery_policy is ServingGroupRecreate; "
            "each role that rolls would recreate its whole group",
            remedy="write ServingGroupRollingUpdate, or recovery_policy: RoleRecreate",
        )


def expose_role(spec: ModelServingSpec) -> Iterator[Finding]:
    """The front Service points at one role: chance must not choose between prefill and decode."""
    if spec.expose is None:
        return
    names = [role.name for role in spec.roles]
    if spec.expose.role is None and len(names) > 1:
        yield Finding(
            path="expose.role",
            rule="expose-role",
            seen=f"is missing, and there are {len(names)} roles ({', '.join(names)}) "
            "to send requests to",
            remedy="name the role whose entry pods answer",
        )
    elif spec.expose.role is not None and spec.expose.role not in names:
        yield Finding(
            path="expose.role",
            seen=f"there is no role '{spec.expose.role}'",
            remedy=suggest(spec.expose.role, names),
            rule="expose-role",
        )


def expose_port(spec: ModelServingSpec) -> Iterator[Finding]:
    """The front Service sends to the port that the engine listens on."""
    stated = spec.expose.target_port if spec.expose else None
    role = exposed_role(spec)
    if stated is not None and role and role.engine and role.engine.port != stated:
        yield Finding(
            path="expose.target_port",
            rule="expose-port",
            seen=f"is {stated}, but the engine of role '{role.name}' listens on {role.engine.port}",
            remedy=f"remove it, or write {role.engine.port}",
        )


def exposed_role(spec: ModelServingSpec) -> RoleSpec | None:
    """Find the role that the front Service points at."""
    name = spec.expose.role if spec.expose else None
    named = [role for role in spec.roles if name in {None, role.name}]
    return named[0] if len(named) == 1 else None


def role_budget(spec: ModelServingSpec, role: RoleSpec) -> Iterator[Finding]:
    """A role's own budget needs RoleRollingUpdate and fits the role's replicas."""
    if role.max_unavailable is None:
        return
    if spec.rollout_strategy.type is not RolloutType.ROLE:
        yield Finding(
            path="max_unavailable",
            rule="rollout-budget",
            seen=f"is given, but rollout_strategy.type is {spec.rollout_strategy.type}",
            remedy="write rollout_strategy.type: RoleRollingUpdate, or remove it",
        )
        return
    yield from _budget("max_unavailable", role.max_unavailable, role.replicas, "replica")
    scaled = scale_budget(role.max_unavailable, role.replicas, up=False)
    if scaled is not None and scaled > role.replicas:
        yield Finding(
            path="max_unavailable",
            rule="rollout-budget",
            seen=f"is {role.max_unavailable}, "
            f"but the role has {count_of(role.replicas, 'replica')}",
            remedy=f"write at most {role.replicas}" if role.replicas else "remove it",
        )


RULES: tuple[Callable[[ModelServingSpec], Iterator[Finding]], ...] = (
    role_names_unique,
    gang_minimum,
    topology_cap,
    volcano_fields,
    rollout_budget,
    recovery_and_rollout,
    expose_role,
    expose_port,
)
