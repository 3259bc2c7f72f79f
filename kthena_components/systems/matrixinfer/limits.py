"""What a ModelInfer does not support: an error, never dropped.

Source: volcano-sh/kthena 98380a67 and e4fb6663, the CRD modelinfers, and pkg/infer-controller:
webhook/validator.go, controller/modelinfer_controller.go and gangscheduling/manager.go. Budgets:
manageInferGroupRollingUpdate, which reads only the partition and updates one group at a time.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, count_of, refuse
from kthena_components.core.objects.object import VOLCANO
from kthena_components.core.plan.limits import UPDATE, Limit, Stated
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.enums import RolloutType
from kthena_components.core.spec.rules.rollout import scale_budget
from kthena_components.systems.kthena.limits import annotated, limits_of_roles, refuse_lws_names
from kthena_components.systems.kubernetes.backends import ENGINES_WITH_METRICS


def _surges(one: Stated) -> bool:
    return scale_budget(one.value, one.plan.groups, up=True) != 0


def _earlier_partition(one: Stated) -> str:
    return elsewhere(f"write at most {one.plan.groups - 1}" if one.plan.groups > 1 else remove())


LIMITS = (
    ENGINES_WITH_METRICS,
    *limits_of_roles("ModelInfer"),
    Limit(
        "scheduler_name",
        "is '{}', but MatrixInfer accepts only volcano",
        takes="only `volcano`",
        when=lambda one: one.value != VOLCANO,
        remedy=elsewhere("write volcano"),
    ),
    Limit("queue", "is given, but the PodGroups that MatrixInfer creates are in the default queue"),
    Limit(
        "network_topology.role_policy",
        "is given, but a ModelInfer has one topology, that of the group",
        remedy=elsewhere("write group_policy"),
    ),
    Limit(
        "network_topology.group_policy.highest_tier_name",
        "is '{}', but a ModelInfer knows tiers only by their numbers",
        takes="no tier by name",
        remedy=elsewhere("write highest_tier_allowed"),
    ),
    Limit(
        "rollout_strategy.type",
        "is {}, but MatrixInfer updates whole groups",
        takes="no `RoleRollingUpdate`",
        when=lambda one: one.value is RolloutType.ROLE,
        remedy=elsewhere("write ServingGroupRollingUpdate"),
    ),
    Limit("roles[].max_unavailable", "is {}, but MatrixInfer updates whole groups"),
    Limit(
        f"{UPDATE}.max_unavailable",
        "is {}, but MatrixInfer's controller ignores it and updates one group at a time",
        takes="at most 1",
        when=lambda one: one.value != 1,
        remedy=elsewhere("write 1"),
    ),
    Limit(
        f"{UPDATE}.max_surge",
        "is {}, but MatrixInfer's controller ignores it and stops a group before it starts the "
        "new one",
        when=_surges,
    ),
    Limit(
        f"{UPDATE}.partition",
        lambda one: (
            f"is {one.value} of {count_of(one.plan.groups, 'group')}, but MatrixInfer requires "
            "that at least one group is updated"
        ),
        takes="not all groups",
        when=lambda one: one.plan.rollout.partition >= one.plan.groups,
        remedy=_earlier_partition,
    ),
    Limit("autoscaled", "is true, but a ModelInfer is not known to have a scale subresource"),
)


def refuse_templates(plan: ServingPlan) -> Iterator[Finding]:
    """Report variables and annotations that a ModelInfer's pods cannot have."""
    yield from refuse_lws_names(plan, "MatrixInfer")
    for path in annotated(plan):
        seen = "puts annotations into a pod template, and MatrixInfer's controller crashes on them"
        yield refuse(path, seen, elsewhere(remove()), "backend-loss")
