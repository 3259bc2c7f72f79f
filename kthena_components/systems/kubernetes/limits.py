"""Limits of several backends: schedulers, metrics, host names, spread groups, rollout budgets."""

import json
import re
from collections.abc import Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.plan.limits import UPDATE, Limit
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.remedies import elsewhere
from kthena_components.core.spec.rules.rollout import scale_budget

WITHOUT_VOLCANO = Limit(
    "scheduler_name", takes="another than Volcano has no gang, topology or queue"
)
ENGINES_WITH_METRICS = Limit("monitoring", takes="engines with metrics")
"""Reported by systems/prometheus/scrapes_and_panels.py."""
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


def no_spread(system: str) -> Limit:
    """Return the limit of a system whose labels of pods do not name the engine."""
    return Limit("spread_over", f"is {{}}, but {system}'s labels do not tell its engines apart")


def one_budget(system: str, takes: str) -> Limit:
    """Return the limit of a system with one budget for the engines of all groups.

    Args:
        system: What runs the pods, in a user's words.
        takes: What the backend takes of the budgets of roles.
    """
    return Limit(
        "roles[].max_unavailable",
        f"is {{}} of each group, but {system} has one budget for the engines of all "
        "{plan.groups} groups",
        takes=takes,
        when=lambda one: one.plan.groups > 1,
        remedy=f"remove it, and write {UPDATE}.max_unavailable with ServingGroupRollingUpdate",
    )


def refuse_surge(plan: ServingPlan) -> Iterator[Finding]:
    """Reject a surge that is none."""
    surge = plan.rollout.stated.max_surge if plan.rollout.stated else None
    if surge is not None and scale_budget(surge, plan.groups, up=True) is None:
        yield Finding(
            path=f"{UPDATE}.max_surge",
            seen=f"is {surge}, but must be a count of at least 0 or a percentage from 0% to 100%",
            remedy="write for example 1 or 25%",
            rule="backend-loss",
        )
