"""Reports what Kthena, or the plan's version of it, does not support: an error, never dropped.

Source: Kthena tags v0.1.0 to v1.0.0, pkg/apis/workload/v1alpha1 and webhook/validator.go.
"""

from collections.abc import Callable, Iterator

from kthena_components.core import naming
from kthena_components.core.facts.context import MODEL_CONFIG
from kthena_components.core.facts.serving import NameFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.plan.lws_variables import unset_lws_names
from kthena_components.core.plan.model import RolePlan, ServingPlan
from kthena_components.core.remedies import either, elsewhere, remove
from kthena_components.core.spec.enums import KthenaVersion, RolloutType
from kthena_components.systems.kthena.options import options_of, refuse_plugins

_UPDATE = "rollout_strategy.rolling_update_configuration"
_SINCE = tuple(KthenaVersion)
_MOST_ROLES, _LONGEST_ROLE_NAME = 4, 12
"""The CRD's maxItems and maxLength."""


def since(plan: ServingPlan, version: KthenaVersion) -> bool:
    """Return whether the plan's Kthena is at least of this version."""
    return _SINCE.index(plan.kthena_version) >= _SINCE.index(version)


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report what Kthena, or the plan's version of it, does not support."""
    stated = plan.rollout.stated
    if stated is not None and stated.max_surge is not None:
        yield _refusal(
            f"{_UPDATE}.max_surge",
            f"is {stated.max_surge}, but Kthena has no surge: versions that accept the field "
            "ignore it",
            remove("remove it; max_unavailable is the only budget"),
        )
    yield from refuse_roles(plan, "ModelServing")
    for role in plan.roles:
        yield from _refuse_first_letter(plan, role)
    yield from refuse_lws_names(plan, "Kthena")
    yield from refuse_plugins(plan)
    yield from _refuse_by_version(plan)


def refuse_lws_names(plan: ServingPlan, title: str) -> Iterator[Finding]:
    """Report templates that need LeaderWorkerSet's variables: the controller appends its own.

    A variable of the template comes before them, so it cannot refer to them.
    """
    found = dict.fromkeys(
        (f"{role.path}.{'overlay' if role.engine else f'{field}.{path}'}", name, ".env[" in path)
        for role in plan.roles
        for field, template in (("entry_template", role.entry), ("worker_template", role.worker))
        for path, name in unset_lws_names(template or {})
    )
    for path, name, in_env in found:
        same = naming.LWS_ENV[name]
        late = ", but after the variables of the template" if in_env else ""
        instead = f"use {same} in the command" if in_env else f"write {same}"
        yield _refusal(
            path,
            f"refers to {name}, which only LeaderWorkerSet sets; {title} sets {same}{late}",
            elsewhere(instead),
        )


def refuse_roles(plan: ServingPlan, kind: str) -> Iterator[Finding]:
    """Report more roles, and longer names of roles, than the CRD of a kind allows.

    ModelInfer, from which ModelServing was made, has the same limits.
    """
    if len(plan.roles) > _MOST_ROLES:
        yield _refusal(
            "roles",
            f"has {len(plan.roles)} roles ({', '.join(r.name for r in plan.roles)}), "
            f"and a {kind} has at most {_MOST_ROLES}",
            elsewhere("split the serving"),
        )
    for role in plan.roles:
        over = len(role.name) - _LONGEST_ROLE_NAME
        if over > 0:
            yield _refusal(
                f"{role.path}.name",
                f"is '{role.name}', {len(role.name)} characters, and a {kind} allows "
                f"{_LONGEST_ROLE_NAME}",
                f"shorten it by {over}",
            )


def _refuse_first_letter(plan: ServingPlan, role: RolePlan) -> Iterator[Finding]:
    if since(plan, KthenaVersion.V0_3) and not naming.DNS_1035.fullmatch(role.name):
        yield _refusal(
            f"{role.path}.name",
            f"is '{role.name}', and Kthena requires a role name that starts with a letter",
            f"write for example '{f'r{role.name}'[:12].rstrip('-')}'",
        )


def _refuse_by_version(plan: ServingPlan) -> Iterator[Finding]:
    for needed, what, where in _ADDED:
        for path in () if since(plan, needed) else where(plan):
            yield _refusal(
                path,
                f"{what} needs Kthena {needed} or later, and kthena_version is "
                f"{plan.kthena_version}",
                either(remove(), f"write kthena_version: '{needed}'"),
            )
    if not since(plan, KthenaVersion.V0_4):
        yield from _refuse_partition(plan)
    crashes = plan.group_topology is not None and plan.min_role_replicas is None
    if crashes and not since(plan, KthenaVersion.V0_2):
        yield _refusal(
            "gang_policy",
            "is missing while network_topology is given, and Kthena 0.1 crashes on that",
            f"give gang_policy.min_role_replicas, or write kthena_version: '{KthenaVersion.V0_2}'",
        )


def _refuse_partition(plan: ServingPlan) -> Iterator[Finding]:
    """Reject a partition of all groups, as the earlier webhooks do (validatePartition)."""
    partition = plan.rollout.stated.partition if plan.rollout.stated else None
    if isinstance(partition, int) and partition >= plan.groups:
        instead = f"write at most {plan.groups - 1}" if plan.groups else remove()
        yield _refusal(
            f"{_UPDATE}.partition",
            f"is {partition} of {count_of(plan.groups, 'group')}, and Kthena "
            f"{plan.kthena_version} requires that at least one group is updated",
            f"{instead}, or write kthena_version: '{KthenaVersion.V0_4}'",
        )


def _budgets(plan: ServingPlan) -> Iterator[str]:
    yield from (f"{r.path}.max_unavailable" for r in plan.roles if r.max_unavailable is not None)


def _plugins(plan: ServingPlan) -> Iterator[str]:
    if options_of(plan).plugins:
        yield "backend_options.plugins"


def _autoscaling(plan: ServingPlan) -> Iterator[str]:
    if options_of(plan).autoscaling is not None:
        yield "backend_options.autoscaling"


def _gateways(plan: ServingPlan) -> Iterator[str]:
    route = options_of(plan).model_route
    if route is not None and route.parent_refs:
        yield "backend_options.model_route.parent_refs"


def _percent_partition(plan: ServingPlan) -> Iterator[str]:
    if plan.rollout.stated and isinstance(plan.rollout.stated.partition, str):
        yield f"{_UPDATE}.partition"


def annotated(plan: ServingPlan) -> Iterator[str]:
    """Return the fields that put annotations into pod templates: controllers before 0.4 crash."""
    for role in plan.roles:
        shaped = role.engine is not None and role.engine.hf_config is not None
        if shaped:
            yield f"{role.path}.engine.hf_config"
        for field, template in (("entry_template", role.entry), ("worker_template", role.worker)):
            stated = ((template or {}).get("metadata") or {}).get("annotations") or {}
            if stated.keys() - ({MODEL_CONFIG} if shaped else set()):
                yield f"{role.path}.{'overlay' if role.engine else field}.metadata.annotations"
                break


def _tier_name(plan: ServingPlan) -> Iterator[str]:
    if plan.group_topology and plan.group_topology.highest_tier_name is not None:
        yield "network_topology.group_policy.highest_tier_name"


def _if(path: str, used: Callable[[ServingPlan], bool]) -> Callable[[ServingPlan], Iterator[str]]:
    return lambda plan: iter([path] if used(plan) else [])


_ADDED: tuple[tuple[KthenaVersion, str, Callable[[ServingPlan], Iterator[str]]], ...] = (
    (KthenaVersion.V1_0, "a queue", _if("queue", lambda p: p.queue is not None)),
    (KthenaVersion.V1_0, "a budget per role", _budgets),
    (
        KthenaVersion.V0_4,
        "RoleRollingUpdate",
        _if("rollout_strategy.type", lambda p: p.rollout.type is RolloutType.ROLE),
    ),
    (KthenaVersion.V0_4, "a partition in percent", _percent_partition),
    (KthenaVersion.V0_4, "a template with annotations (earlier controllers crash)", annotated),
    (KthenaVersion.V0_3, "a plugin", _plugins),
    (
        KthenaVersion.V0_2,
        "another scheduler than Volcano",
        _if("scheduler_name", lambda p: p.scheduler != "volcano"),
    ),
    (
        KthenaVersion.V0_2,
        "a topology per role",
        _if("network_topology.role_policy", lambda p: p.role_topology is not None),
    ),
    (KthenaVersion.V0_2, "a tier by name", _tier_name),
    (KthenaVersion.V0_2, "autoscaling", _autoscaling),
    (KthenaVersion.V0_2, "a gateway of a route", _gateways),
    (
        KthenaVersion.V0_2,
        "a max_unavailable other than 1",
        _if(
            f"{_UPDATE}.max_unavailable",
            lambda p: p.rollout.stated is not None and p.rollout.stated.max_unavailable != 1,
        ),
    ),
)
"""Features by first version: a description, and the paths at which a plan uses it."""


def _refusal(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule="backend-loss")


def names(plan: ServingPlan) -> Iterator[NameFacts]:
    """Return the names that Kthena will generate: its webhook checks the counts, not the indices.

    Source: Kthena v1.0.0 webhook/validator.go validGeneratedNameLength.
    """
    for role in plan.roles:
        name = f"{plan.name}-{plan.groups}-{role.name}-{role.replicas}-{role.worker_replicas}"
        yield NameFacts(path=f"{role.path}.name", name=name, limit=naming.DNS_LABEL, what="pod")
