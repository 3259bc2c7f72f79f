"""Reports what several backends do not support: host names, spread groups, rollout budgets."""

import json
import re
from collections.abc import Iterator

from kthena_components.core.findings import Finding, join_path
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.remedies import elsewhere, remove
from kthena_components.core.spec.rules.rollout import scale_budget

_SERVICE = "use a Service that selects the entries by their labels"


def refuse_hosts(plan: ServingPlan, system: str, remedy: str = _SERVICE) -> Iterator[Finding]:
    """Reject templates with the host name of an entry: only Kthena and native have such a name.

    Args:
        plan: The plan.
        system: What runs the pods, in a user's words.
        remedy: What to write instead.
    """
    roles = "|".join(re.escape(role.name) for role in plan.roles)
    host = re.compile(rf"(?<![-.a-z0-9]){re.escape(plan.name)}-\d+-(?:{roles})-\d+-0(?![-a-z0-9])")
    for role in plan.roles:
        found = host.search(json.dumps([role.entry, role.worker], default=str))
        if found is not None:
            yield Finding(
                path=role.path,
                seen=f"contains the host name '{found[0]}', but {system} gives entry pods other "
                "names",
                remedy=elsewhere(remedy),
                rule="backend-loss",
            )


def refuse_spread(plan: ServingPlan, why: str) -> Iterator[Finding]:
    """Report a stated spread_over."""
    if plan.spread_over is not None:
        yield Finding(
            path="spread_over",
            seen=f"is {plan.spread_over}, but {why}",
            remedy=elsewhere(remove()),
            rule="backend-loss",
        )


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
