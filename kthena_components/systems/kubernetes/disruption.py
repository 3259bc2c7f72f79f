"""Writes the PodDisruptionBudget of a serving."""

from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.model import ServingPlan


def emit_budget(plan: ServingPlan, pods: Mapping[str, str], *, is_counted: bool) -> Manifest | None:
    """Write a budget that allows the eviction of one pod at a time, if the serving has one.

    An engine stops with any of its pods, so two drained nodes could stop two engines.

    Args:
        plan: The serving.
        pods: Labels of all its pods; empty if the plan has another number of pods.
        is_counted: Whether Kubernetes learns the number of pods from their controllers. Otherwise
            the budget states a minimum, and there is none for a number that an autoscaler changes.
    """
    moves = plan.autoscaled and not is_counted
    if not plan.has_disruption_budget or not plan.pods or not pods or moves:
        return None
    limit = {"maxUnavailable": 1} if is_counted else {"minAvailable": plan.pods - 1}
    body: dict[str, Any] = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {
            "name": plan.name,
            "namespace": plan.namespace,
            "labels": {naming.NAME: plan.name},
        },
        "spec": {**limit, "selector": {"matchLabels": dict(pods)}},
    }
    # A serving of one engine has none.
    return Manifest(body=body, renewed=True)
