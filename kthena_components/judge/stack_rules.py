"""Whether the objects of one cluster fit together. Each rule's docstring is its documentation.

One object shows its own mistakes (volcano_objects.py); what it expects of others shows only when
all are read. The caller hands over the objects of one cluster at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from kthena_components.core.facts.totals import GpuDemand
from kthena_components.core.findings import Finding, judged, once_each, tidy
from kthena_components.core.objects.kinds import HYPER_NODE, POD_GROUP, QUEUE
from kthena_components.core.objects.object import GroupKind
from kthena_components.core.objects.stack import Stack
from kthena_components.judge.objects import MAKERS, read_objects
from kthena_components.judge.rollout import surge_needs_spare_gpus
from kthena_components.judge.scaling import (
    HPA,
    INFERENCE_SERVICE,
    SCALED_OBJECT,
    autoscaler_conflict,
)
from kthena_components.systems.kubernetes.stack_gpus import gpu_budget, gpu_type_allowed
from kthena_components.systems.kubernetes.stack_objects import (
    headless_service,
    object_twice,
    service_selects_pods,
)
from kthena_components.systems.kubernetes.stack_secrets import SECRET, secret_key_exists
from kthena_components.systems.kubernetes.stack_volumes import CLAIM, rwx_for_shared_model
from kthena_components.systems.volcano.stack_capacity import NODE, gang_fits_hypernode
from kthena_components.systems.volcano.stack_gangs import (
    foreign_group_name,
    gang_has_pods,
    gang_requests,
    gang_resources,
    gang_task_exists,
    pod_group_exists,
)
from kthena_components.systems.volcano.stack_queues import (
    queue_cycle,
    queue_exists,
    queue_within_parent,
)
from kthena_components.systems.volcano.stack_subgroups import subgroup_has_pods
from kthena_components.systems.volcano.stack_topology import hypernode_tree, topology_tier_exists

COMPARED: frozenset[GroupKind] = frozenset(
    {
        *MAKERS,
        *(POD_GROUP, QUEUE, HYPER_NODE, NODE, SECRET, CLAIM, HPA, SCALED_OBJECT),
        *(INFERENCE_SERVICE, ("", "Service")),
    }
)
"""Kinds that the rules for a whole stack compare, besides those that the caller counts."""
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
    queue_within_parent,
    headless_service,
    secret_key_exists,
    rwx_for_shared_model,
    autoscaler_conflict,
    gang_fits_hypernode,
    service_selects_pods,
)
"""Every rule that needs nothing but the stack."""
ASKED_RULES = (gpu_budget, surge_needs_spare_gpus, gpu_type_allowed)
"""Rules that need a budget or a list as well, and hold only where one is given."""


def compare_objects(
    manifests: Sequence[Mapping[str, Any]],
    paths: Sequence[str] = (),
    *,
    held: Mapping[int, GpuDemand] | None = None,
    budget: int | None = None,
    gpu_types: Sequence[str] = (),
    complete: bool = True,
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
    """
    stack = read_objects(manifests, paths, held, complete=complete)
    rules = [judged(rule, stack) for rule in STACK_RULES]
    if budget is not None:
        rules += [judged(rule, stack, budget) for rule in (gpu_budget, surge_needs_spare_gpus)]
    if gpu_types:
        rules.append(judged(gpu_type_allowed, stack, gpu_types))
    return [tidy(finding) for finding in once_each(chain.from_iterable(rules))]
