"""Reports what a ModelInfer does not support: an error, never dropped.

Source: volcano-sh/kthena 98380a67 and e4fb6663, the CRD modelinfers, and pkg/infer-controller:
webhook/validator.go, controller/modelinfer_controller.go and gangscheduling/manager.go.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, count_of, join_path
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.enums import RolloutType
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.systems.kthena.limits import annotated, refuse_lws_names, refuse_roles

_UPDATE = "rollout_strategy.rolling_update_configuration"


def refuse(plan: ServingPlan) -> Iterator[Finding]:
    """Report what a ModelInfer does not support."""
    yield from refuse_roles(plan, "ModelInfer")
    yield from refuse_lws_names(plan, "MatrixInfer")
    yield from _refuse_placement(plan)
    yield from _refuse_rollout(plan)
    if plan.autoscaled:
        yield _refusal(
            "autoscaled",
            "is true, but a ModelInfer is not known to have a scale subresource",
            elsewhere(remove()),
        )
    for path in annotated(plan):
        yield _refusal(
            path,
            "puts annotations into a pod template, and MatrixInfer's controller crashes on them",
            elsewhere(remove()),
        )


def _refuse_placement(plan: ServingPlan) -> Iterator[Finding]:
    """Reject what the webhook, or the PodGroup that the controller creates, does not have."""
    if plan.scheduler != VOLCANO:
        yield _refusal(
            "scheduler_name",
            f"is '{plan.scheduler}', but MatrixInfer accepts only volcano",
            elsewhere("write volcano"),
        )
    if plan.queue is not None:
        yield _refusal(
            "queue",
            "is given, but the PodGroups that MatrixInfer creates are in the default queue",
            elsewhere(remove()),
        )
    if plan.role_topology is not None:
        yield _refusal(
            "network_topology.role_policy",
            "is given, but a ModelInfer has one topology, that of the group",
            elsewhere("write group_policy"),
        )
    if plan.group_topology and plan.group_topology.highest_tier_name is not None:
        yield _refusal(
            "network_topology.group_policy.highest_tier_name",
            f"is '{plan.group_topology.highest_tier_name}', but a ModelInfer knows tiers only by "
            "their numbers",
            elsewhere("write highest_tier_allowed"),
        )


def _refuse_rollout(plan: ServingPlan) -> Iterator[Finding]:
    """Reject budgets that the API accepts and the controller ignores, and rollouts by role.

    Source: manageInferGroupRollingUpdate, which reads only the partition and updates one group at
    a time.
    """
    if plan.rollout.type is RolloutType.ROLE:
        yield _refusal(
            "rollout_strategy.type",
            "is RoleRollingUpdate, but MatrixInfer updates whole groups",
            elsewhere("write ServingGroupRollingUpdate"),
        )
    for role in plan.roles:
        if role.max_unavailable is not None:
            yield _refusal(
                join_path(role.path, "max_unavailable"),
                f"is {role.max_unavailable}, but MatrixInfer updates whole groups",
                elsewhere(remove()),
            )
    stated = plan.rollout.stated
    if stated is None:
        return
    if stated.max_unavailable != 1:
        yield _refusal(
            f"{_UPDATE}.max_unavailable",
            f"is {stated.max_unavailable}, but MatrixInfer's controller ignores it and updates one "
            "group at a time",
            elsewhere("write 1"),
        )
    if stated.max_surge is not None and scale_budget(stated.max_surge, plan.groups, up=True) != 0:
        yield _refusal(
            f"{_UPDATE}.max_surge",
            f"is {stated.max_surge}, but MatrixInfer's controller ignores it and stops a group "
            "before it starts the new one",
            elsewhere(remove()),
        )
    if stated.partition is not None and plan.rollout.partition >= plan.groups:
        instead = f"write at most {plan.groups - 1}" if plan.groups > 1 else remove()
        yield _refusal(
            f"{_UPDATE}.partition",
            f"is {stated.partition} of {count_of(plan.groups, 'group')}, but MatrixInfer requires "
            "that at least one group is updated",
            elsewhere(instead),
        )


def _refusal(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule="backend-loss")
