"""Volcano: gangs, queues and HyperNodes, and the rules over all objects about them."""

from typing import Any

from kthena_components.core.objects.kinds import HYPER_NODE, JOB, POD_GROUP, QUEUE
from kthena_components.core.objects.object import GroupKind, Object
from kthena_components.core.objects.retained_fields import kept_pods, kept_spec, only
from kthena_components.systems.contract import Body, Kind, System
from kthena_components.systems.volcano.emit import HYPER_NODES, QUEUES
from kthena_components.systems.volcano.facts import facts
from kthena_components.systems.volcano.pod_variables import tells
from kthena_components.systems.volcano.pods import pods
from kthena_components.systems.volcano.rules.cluster_queues import (
    queue_cycle,
    queue_exists,
    queue_within_parent,
)
from kthena_components.systems.volcano.rules.gang import POD_GROUP_RULES
from kthena_components.systems.volcano.rules.gang_fits_hypernode import gang_fits_hypernode
from kthena_components.systems.volcano.rules.gang_pods import (
    foreign_group_name,
    gang_has_pods,
    gang_requests,
    gang_resources,
    gang_task_exists,
    pod_group_exists,
)
from kthena_components.systems.volcano.rules.hypernode import HYPER_NODE_RULES
from kthena_components.systems.volcano.rules.job import JOB_RULES
from kthena_components.systems.volcano.rules.queue import QUEUE_RULES
from kthena_components.systems.volcano.rules.subgroup_has_pods import subgroup_has_pods
from kthena_components.systems.volcano.rules.topology_tier_exists import (
    hypernode_tree,
    topology_tier_exists,
)
from kthena_components.systems.volcano.states import states


def _kind(group_kind: GroupKind, **known: Any) -> Kind[Object]:
    group, name = group_kind
    return Kind(group=group, name=name, view=_as_it_is, **known)


def _as_it_is(found: Object) -> Object:
    return found


def _kept_queue(body: Body) -> Body:
    return {**kept_spec(body), "status": only(body.get("status"), frozenset({"state"}))}


SYSTEM = System(
    name="volcano",
    title="Volcano objects",
    kinds=(
        _kind(POD_GROUP, rules=POD_GROUP_RULES),
        _kind(QUEUE, rules=QUEUE_RULES, kept=_kept_queue, cluster_wide=True),
        _kind(HYPER_NODE, rules=HYPER_NODE_RULES, cluster_wide=True),
        _kind(
            JOB,
            facts=facts,
            pods=pods,
            tells=tells,
            states=states,
            rules=JOB_RULES,
            templates=("spec.tasks[].template",),
            # The plugins svc and ssh: pkg/controllers/job/plugins.
            adds_volumes=("*-svc", "*-ssh"),
            kept=kept_pods,
            without={"restarts": "Volcano's webhook rejects changed templates in an update"},
        ),
    ),
    cluster_rules=(
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
    extras={"hypernodes": (HYPER_NODES,), "queues": (QUEUES,)},
)
