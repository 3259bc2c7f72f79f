"""Whether the objects of one cluster fit together. Each rule's docstring is its documentation.

One object shows its own mistakes; what it expects of others shows only when all are read. The
caller hands over the objects of one cluster at a time. Most of these rules are each system's own.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any

from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.findings import Finding, judged, once_each, tidy
from kthena_components.judge.objects import read_objects
from kthena_components.judge.rollout import surge_needs_spare_gpus
from kthena_components.judge.scaling import autoscaler_conflict
from kthena_components.systems import all_systems
from kthena_components.systems.contract import StackRule
from kthena_components.systems.kubernetes.stack_gpus import gpu_budget, gpu_type_allowed

OWN_RULES: tuple[StackRule, ...] = (autoscaler_conflict,)
"""Rules that ask every system something, and are none's own."""
ASKED_RULES = (gpu_budget, surge_needs_spare_gpus, gpu_type_allowed)
"""Rules that need a budget or a list as well, and hold only where one is given."""


def stack_rules() -> tuple[StackRule, ...]:
    """List every rule that needs nothing but the stack."""
    systems = (rule for system in all_systems() for rule in system.stack_rules)
    return (*systems, *OWN_RULES)


def compare_objects(
    manifests: Sequence[Mapping[str, Any]],
    paths: Sequence[str] = (),
    *,
    held: Mapping[int, GpuDemand] | None = None,
    budget: int | None = None,
    gpu_types: Sequence[str] = (),
    complete: bool = True,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> list[Finding]:
    """Judge all objects of one cluster together, in time linear in their number.

    Args:
        manifests: The objects as they would be applied. What is not a map is passed over.
        paths: Where each of them stands, in the caller's coordinates; none if left out.
        held: What objects ask for whose pods do not stand in them as templates, by their index.
        budget: How many accelerators the stack may ask for; no limit if left out.
        gpu_types: Resources and products of accelerators that pods may ask for; all if empty.
        complete: Whether these are all objects of the cluster, at least all pods of each PodGroup
            and all Services. If not, what is missing is told as not checked, or not at all.
        versions: The releases that the cluster runs, by system; the newest if left out.
    """
    stack = read_objects(manifests, paths, held, complete=complete, versions=versions)
    rules = [judged(rule, stack) for rule in stack_rules()]
    if budget is not None:
        rules += [judged(rule, stack, budget) for rule in (gpu_budget, surge_needs_spare_gpus)]
    if gpu_types:
        rules.append(judged(gpu_type_allowed, stack, gpu_types))
    return [tidy(finding) for finding in once_each(chain.from_iterable(rules))]
