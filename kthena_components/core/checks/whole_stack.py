"""Whether the objects of one cluster fit together. Each rule's docstring is its documentation.

One object shows its own mistakes (volcano_objects.py); what it expects of others shows only when
all are read. The caller hands over the objects of one cluster at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.checks.stack_gangs import (
    foreign_group_name,
    gang_has_pods,
    gang_requests,
    gang_resources,
    gang_task_exists,
    pod_group_exists,
)
from kthena_components.core.checks.stack_objects import (
    gpu_budget,
    headless_service,
    object_twice,
    queue_cycle,
    queue_exists,
    secret_key_exists,
)
from kthena_components.core.checks.stack_reading import Stack, read_stack
from kthena_components.core.checks.stack_subgroups import subgroup_has_pods
from kthena_components.core.checks.stack_topology import hypernode_tree, topology_tier_exists
from kthena_components.core.checks.volcano_reading import tidy
from kthena_components.core.findings import Finding, Level
from kthena_components.core.known import Unknown

_ELSEWHERE = Unknown("pods that are not in this stack may belong to the gang")
StackRule = Callable[[Stack], Iterator[Finding]]

STACK_RULES: tuple[StackRule, ...] = (
    object_twice,
    hypernode_tree,
    topology_tier_exists,
    gang_has_pods,
    gang_task_exists,
    subgroup_has_pods,
    gang_requests,
    gang_resources,
    pod_group_exists,
    foreign_group_name,
    queue_exists,
    queue_cycle,
    headless_service,
    secret_key_exists,
)
"""Every rule but gpu_budget, which needs the budget as well."""


def judge_stack(
    manifests: Sequence[Mapping[str, Any]],
    paths: Sequence[str] = (),
    *,
    budget: int | None = None,
    complete: bool = True,
) -> list[Finding]:
    """Judge all objects of one cluster together, in time linear in their number.

    Args:
        manifests: The objects as they would be applied. What is not a map is passed over.
        paths: Where each of them stands, in the caller's coordinates; none if left out.
        budget: How many accelerators the stack may ask for; no limit if left out.
        complete: Whether all pods of each PodGroup here are here too. If not, too few of them are
            told as not checked.
    """
    stack = read_stack(manifests, paths)
    if not complete:
        stack.unsure = _ELSEWHERE
    found: dict[object, Finding] = {}
    rules = [rule(stack) for rule in STACK_RULES]
    rules += [] if budget is None else [gpu_budget(stack, budget)]
    for findings in rules:
        for finding in findings:
            once = (finding.rule, finding.path) if finding.level is Level.UNKNOWN else finding
            found.setdefault(once, finding)
    return [tidy(finding) for finding in found.values()]
