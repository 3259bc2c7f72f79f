"""Rollout budgets of systems that count engines, not ServingGroups."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.spec.rules.rollout import scale_budget

_UPDATE = "rollout_strategy.rolling_update_configuration"


def refuse_budgets(plan: ServingPlan, system: str) -> Iterator[Finding]:
    """Reject a surge that is none, and budgets per role over several groups.

    Args:
        plan: The plan.
        system: What runs the pods, in a user's words.
    """
    surge = plan.rollout.stated.max_surge if plan.rollout.stated else None
    if surge is not None and scale_budget(surge, plan.groups, up=True) is None:
        yield Finding(
            path=f"{_UPDATE}.max_surge",
            seen=f"is {surge}, but must be a count of at least 0 or a percentage from 0% to 100%",
            remedy="write for example 1 or 25%",
            rule="backend-loss",
        )
    for role in plan.roles:
        if role.max_unavailable is not None and plan.groups > 1:
            yield Finding(
                path=join_path(role.path, "max_unavailable"),
                seen=f"is {role.max_unavailable} of each group, but {system} has one budget for "
                f"the engines of all {plan.groups} groups",
                remedy=f"remove it, and write {_UPDATE}.max_unavailable with "
                "ServingGroupRollingUpdate",
                rule="backend-loss",
            )
