"""Volcano: gangs, queues and HyperNodes, and the rules over all objects about them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core import naming
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.objects.cluster_objects import Gang
from kthena_components.core.objects.object import (
    HYPER_NODE,
    JOB,
    POD_GROUP,
    QUEUE,
    GroupKind,
    Object,
    PodSet,
    copies_in,
    pod_set,
)
from kthena_components.core.objects.retained_fields import kept_pods, kept_spec, only
from kthena_components.core.plan.controller_variables import PodVariables, first_pod, reference
from kthena_components.core.plan.read_back import stated
from kthena_components.core.values.read import count, mapping, name_of, text
from kthena_components.core.values.unknown import total
from kthena_components.systems.system import Body, Kind, System, as_it_is
from kthena_components.systems.volcano.emit import HYPER_NODES, QUEUES, described_topology
from kthena_components.systems.volcano.facts import facts
from kthena_components.systems.volcano.plugins import (
    INDEX,
    PYTORCH,
    PytorchPlugin,
    task_names,
    variables,
)
from kthena_components.systems.volcano.rules.gang_fits_hypernode import gang_fits_hypernode
from kthena_components.systems.volcano.rules.gang_pods_task_exists_foreign_groups import (
    foreign_group_name,
    gang_has_pods,
    gang_requests,
    gang_resources,
    gang_task_exists,
    pod_group_exists,
)
from kthena_components.systems.volcano.rules.gang_starts_rollout_subgroup_has_pods import (
    gang_rollout,
    gang_starts,
    subgroup_has_pods,
)
from kthena_components.systems.volcano.rules.gang_task_subgroup_minimum_and_names import (
    POD_GROUP_RULES,
    gang_scheduler,
)
from kthena_components.systems.volcano.rules.gang_within_queue import gang_within_queue
from kthena_components.systems.volcano.rules.hypernode_names_topology import HYPER_NODE_RULES
from kthena_components.systems.volcano.rules.job_and_ray_plugin import JOB_RULES
from kthena_components.systems.volcano.rules.pod_fits_node import pod_fits_node
from kthena_components.systems.volcano.rules.pods_apart_fit import pods_apart_fit
from kthena_components.systems.volcano.rules.queue import QUEUE_RULES
from kthena_components.systems.volcano.rules.queue_references import (
    queue_cycle,
    queue_exists,
    queue_within_parent,
)
from kthena_components.systems.volcano.rules.topology_tier_exists import (
    hypernode_tree,
    topology_tier_exists,
)
from kthena_components.systems.volcano.view import tasks_of


def _kind(group_kind: GroupKind, **known: Any) -> Kind[Object]:
    group, name = group_kind
    return Kind(group=group, name=name, view=as_it_is, **known)


def _kept_queue(body: Body) -> Body:
    return {**kept_spec(body), "status": only(body.get("status"), frozenset({"state"}))}


def pods(found: Object) -> Iterator[PodSet]:
    """Return the pods of each task."""
    for task in tasks_of(found):
        number = copies_in(task.fields.get("replicas"), 1)
        yield pod_set(found, f"{task.path}.template", task.template, number, by_controller=True)


def gangs(found: Object) -> Iterator[Gang]:
    """Return the pods of a Job that start together: all, or the minimum of each task."""
    tasks, wanted = tasks_of(found), count(found.spec.get("minAvailable"))
    numbers = [copies_in(task.fields.get("replicas"), 1) for task in tasks]
    if wanted is not None and wanted != total(numbers):
        alone = len(tasks) == 1
        least = [copies_in(task.fields.get("minAvailable"), 0) for task in tasks]
        numbers = [copies_in(wanted, 0)] if alone else least
    templates = [(f"{task.path}.template", task.template) for task in tasks]
    yield Gang(
        owner=found,
        title="the Job",
        pods=tuple(
            (pod_set(found, at, template, number, by_controller=True), number)
            for (at, template), number in zip(templates, numbers, strict=True)
        ),
        queue=text(found.spec.get("queue"), ""),
        queue_path="spec.queue",
        topology=mapping(found.spec.get("networkTopology")),
        topology_path="spec.networkTopology",
    )


def pod_variables(found: Object) -> PodVariables:
    """Return the variables of the plugins env and svc, with one engine in the Job.

    Source: Volcano v1.14 pkg/controllers/job/plugins/env/env.go (VC_TASK_INDEX),
    svc/svc.go (hosts), distributed-framework/pytorch/pytorch.go (RANK).
    """
    engines, name = facts(found).engines, name_of(found.body)
    tasks = {str(task.fields.get("name")) for task in tasks_of(found)}
    first = engines[0].name if engines else ""
    exactly = variables(found)
    # `convert` rewrites and names them all, whether a plugin sets them or not.
    plugin = PytorchPlugin.read(found)
    others = ("VC_", "VK_", *(() if plugin is None else PYTORCH))
    made = PodVariables(ordinal=INDEX, others=others, exactly=exactly)
    if plugin is not None and len(engines) == 1 and _is_ranked(found, engines[0], plugin):
        made = replace(made, leader=("MASTER_ADDR",), size=("WORLD_SIZE",), rank=("RANK",))
    if len(engines) != 1 or first not in tasks:
        return made
    hosts, alone = f"VC_{first.replace('-', '_').upper()}", engines[0].worker is None
    return replace(
        made,
        # The first of several hosts, or the only one.
        addresses=(
            first_pod(f"{name}-{first}-0", name, found.metadata.get("namespace")),
            rf"\$\{{{re.escape(hosts)}_HOSTS%%,\*\}}",
            *(() if alone else (reference(f"{hosts}_HOSTS"),)),
        ),
        size=(f"{hosts}_NUM",) if alone else made.size,
    )


_ON_PODS = ("job-name", "queue-name", "task-index", "task-spec")
_NOTES = ("job-retry-count", "job-version", "template-uid")


def added_fields(_found: Object) -> tuple[str, ...]:
    """Return the labels and annotations that Volcano gives to the pods of a Job.

    Source: Volcano v1.14 pkg/controllers/job/job_controller_util.go createJobPod. Run on 1.14.1.
    """
    both = (field for name in _ON_PODS for field in naming.fields_of_pod(f"volcano.sh/{name}"))
    notes = (naming.annotation_field(f"volcano.sh/{name}") for name in _NOTES)
    space, gang = naming.label_field("volcano.sh/job-namespace"), naming.POD_GROUP
    return (*both, *notes, space, naming.annotation_field(gang))


def _is_ranked(found: Object, engine: EngineFacts, plugin: PytorchPlugin) -> bool:
    """Return whether the plugin's tasks are the pods of an engine, and its master the first."""
    paths = {
        found.at(f"{task.path}.template"): name
        for task, name in zip(tasks_of(found), task_names(found), strict=True)
    }
    worker = paths.get(engine.worker_template(paths))
    return engine.name == plugin.master and worker == plugin.worker != plugin.master


def states(found: Object) -> Mapping[str, Any]:
    """Return the queue, the priority and the topology of a Job.

    Source: volcano-sh/volcano pkg/controllers/job/job_controller_actions.go,
    createOrUpdatePodGroup, which copies these fields to the PodGroup.
    """
    spec = found.spec
    topology = mapping(spec.get("networkTopology"))
    policy = described_topology({"mode": "hard", **topology}) if topology else None
    return stated(
        queue=spec.get("queue"),
        priority_class=spec.get("priorityClassName"),
        network_topology=None if policy is None else {"group_policy": policy},
    )


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
            gangs=gangs,
            pod_variables=pod_variables,
            added_fields=added_fields,
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
        gang_starts,
        gang_rollout,
        gang_scheduler,
        gang_task_exists,
        subgroup_has_pods,
        gang_requests,
        gang_resources,
        pod_group_exists,
        foreign_group_name,
        queue_exists,
        queue_cycle,
        queue_within_parent,
        gang_within_queue,
        gang_fits_hypernode,
        pod_fits_node,
        pods_apart_fit,
    ),
    extras={"hypernodes": (HYPER_NODES,), "queues": (QUEUES,)},
)
