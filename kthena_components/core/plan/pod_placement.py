"""What all pods of a serving have for their placement: a priority, and distance between groups."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.templates import Template

ZONE = "topology.kubernetes.io/zone"
"""Default of spread_over."""
_WEIGHT = 100


def prioritized(plan: ServingPlan, template: Template) -> Template:
    """Add the priority of a serving, unless the template has one."""
    if plan.priority_class is None:
        return template
    spec = template.get("spec") or {}
    return {**template, "spec": {"priorityClassName": plan.priority_class, **spec}}


def placed(
    plan: ServingPlan, role: RolePlan, template: Template, labels: Mapping[str, str], group: str
) -> Template:
    """Add the priority of a serving, and a preference for zones without its other groups.

    Templates of the user get only what the user states for the serving, and never a second
    priority or podAntiAffinity. The preference is soft: with fewer zones than groups, they share.

    Args:
        plan: The serving.
        role: The role of the template.
        template: The template.
        labels: Labels that all pods of the serving have.
        group: Label whose value differs between its groups. Kubernetes compares it for each pod
            (mismatchLabelKeys, since 1.31).
    """
    template = prioritized(plan, template)
    spec = template.get("spec") or {}
    affinity = spec.get("affinity") or {}
    key = plan.spread_over or (ZONE if role.engine else None)
    if key is None or "podAntiAffinity" in affinity:
        return template
    wider = {**affinity, "podAntiAffinity": _apart(key, labels, group)}
    return {**template, "spec": {**spec, "affinity": wider}}


def placed_plan(plan: ServingPlan, labels: Mapping[str, str], group: str) -> ServingPlan:
    """Return a plan with `placed` templates, so that their hashes include it."""
    roles = (
        replace(
            role,
            entry=placed(plan, role, role.entry, labels, group),
            worker=None if role.worker is None else placed(plan, role, role.worker, labels, group),
        )
        for role in plan.roles
    )
    return replace(plan, roles=tuple(roles))


def _apart(key: str, labels: Mapping[str, str], group: str) -> dict[str, Any]:
    term = {
        "topologyKey": key,
        "labelSelector": {"matchLabels": dict(labels)},
        "mismatchLabelKeys": [group],
    }
    preferred = {"weight": _WEIGHT, "podAffinityTerm": term}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}
