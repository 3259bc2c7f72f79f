"""Volcano: gangs, queues and HyperNodes, and the rules over all objects about them."""

from kthena_components.core.objects.kinds import HYPER_NODE, JOB, POD_GROUP, QUEUE
from kthena_components.core.objects.reduction import kept_pods, kept_spec, only
from kthena_components.systems.contract import Body, System, legacy
from kthena_components.systems.volcano.emit import HYPER_NODES, QUEUES
from kthena_components.systems.volcano.pods import pods_of_tasks
from kthena_components.systems.volcano.rules import RULES, judge_volcano_object
from kthena_components.systems.volcano.rules_topology import TOPOLOGY_RULES
from kthena_components.systems.volcano.stack_capacity import gang_fits_hypernode
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


def _kept_queue(body: Body) -> Body:
    return {**kept_spec(body), "status": only(body.get("status"), frozenset({"state"}))}


SYSTEM = System(
    name="volcano",
    title="Volcano objects",
    kinds=(
        legacy(POD_GROUP, None, judge_volcano_object, rules=(*RULES[POD_GROUP], *TOPOLOGY_RULES)),
        legacy(
            QUEUE,
            None,
            judge_volcano_object,
            rules=RULES[QUEUE],
            kept=_kept_queue,
            cluster_wide=True,
        ),
        legacy(HYPER_NODE, None, judge_volcano_object, rules=RULES[HYPER_NODE], cluster_wide=True),
        legacy(
            JOB,
            None,
            judge_volcano_object,
            rules=RULES[JOB],
            pods=pods_of_tasks,
            templates=("spec.tasks[].template",),
            kept=kept_pods,
        ),
    ),
    stack_rules=(
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
        gang_fits_hypernode,
    ),
    extras={"hypernodes": HYPER_NODES, "queues": QUEUES},
)
