"""Rejects the spread of groups for systems whose pods have no label of their group."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.plan.model import ServingPlan
from kthena_components.core.remedies import elsewhere, remove


def refuse_spread(plan: ServingPlan, why: str) -> Iterator[Finding]:
    """Report a stated spread_over."""
    if plan.spread_over is not None:
        yield Finding(
            path="spread_over",
            seen=f"is {plan.spread_over}, but {why}",
            remedy=elsewhere(remove()),
            rule="backend-loss",
        )
