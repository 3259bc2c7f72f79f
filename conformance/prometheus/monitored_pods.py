"""Compares the pods of a real controller with those that alerts and PodMonitors look for."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.systems import find_emitter


def unwatched(plan: ServingPlan, pods: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Describe pods that belong to no unit, units without all pods, and entries that are missed.

    Args:
        plan: The plan of a serving that runs.
        pods: All pods in its namespace.
    """
    emitter, found = find_emitter(plan.backend), list(pods)
    targets = emitter.targets(plan) if emitter else None
    units = targets.units if targets else ()
    names = [str(pod["metadata"]["name"]) for pod in found]
    for name in names:
        owners = sum(bool(re.fullmatch(unit.pods, name)) for unit in units)
        if owners != 1:
            yield f"{name} belongs to {owners} units"
    for unit in units:
        sizes = Counter(at[1] for name in names if (at := re.fullmatch(unit.pods, name)))
        wanted = [unit.size] * (unit.number or 0)
        if unit.size is not None and unit.number is not None and [*sizes.values()] != wanted:
            yield f"{unit.pods} finds {dict(sizes)} instead of {wanted}"
    for role in plan.roles:
        labels = targets.entries[role.name] if targets else {}
        entries = [pod for pod in found if labels.items() <= _labels(pod).items()]
        if len(entries) != plan.groups * role.replicas:
            yield f"{len(entries)} entries of {role.name}, of {plan.groups * role.replicas}"


def _labels(pod: Mapping[str, Any]) -> dict[str, str]:
    return dict(pod["metadata"].get("labels") or {})
