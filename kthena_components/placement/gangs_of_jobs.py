"""The PodGroup that Volcano makes for a Job. Pure.

Source: Volcano v1.14 pkg/controllers/job/job_controller_actions.go createOrUpdatePodGroup and
pkg/webhooks/admission/jobs/mutate/mutate_job.go.
"""

from collections.abc import Iterator

from kthena_components.core import naming
from kthena_components.core.objects.object import VOLCANO, copies_in, pod_set
from kthena_components.core.values.read import count, mapping, text, unknown_in
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.model import PodGroup, PodSet, SubGroupPolicy
from kthena_components.placement.pod_groups import number, read_topology
from kthena_components.placement.pod_sets import Templates, pod_sets, priority_in
from kthena_components.systems.volcano.view import Task, tasks_of

_PARTITION = "volcano.sh/partition-id"


def groups_of_job(templates: Templates, _view: object) -> Iterator[PodGroup]:
    """Return the PodGroup of a Volcano Job."""
    spec, pods, minima = templates.owner.spec, list[PodSet](), dict[str, int]()
    gap = templates.unnamed or unknown_in(spec.get("tasks")) or unknown_in(spec.get("minAvailable"))
    tasks = [(_name(task, i), task) for i, task in enumerate(tasks_of(templates.owner))]
    total = 0
    for name, task in tasks:
        copies = copies_in(task.fields.get("replicas"), 1)
        least = count(task.fields.get("minAvailable"))
        found = copies if isinstance(copies, Unknown) else _pods(templates, task, name, copies)
        for made in (found, least):
            gap = gap or (made if isinstance(made, Unknown) else None)
        if not isinstance(copies, Unknown) and not isinstance(least, Unknown):
            minima[name] = copies if least is None else least
            total += minima[name]
        pods += [] if isinstance(found, Unknown) else found
    minimum = number(spec.get("minAvailable")) or total
    partitioned = [_subgroup(name, task) for name, task in tasks if _partition(task)]
    scheduler = text(spec.get("schedulerName"), VOLCANO)
    yield PodGroup(
        namespace=templates.namespace,
        name=templates.name,
        owner=templates.title,
        pods=tuple(pods),
        minimum=minimum,
        task_minimum={name: least for name, least in minima.items() if least},
        topology=read_topology(spec.get("networkTopology")),
        subgroups=tuple(partitioned),
        queue=str(spec.get("queue") or "default"),
        priority=priority_in(spec, templates.priorities),
        scheduler=scheduler if isinstance(scheduler, str) and scheduler else VOLCANO,
        unknown=gap,
    )


def _name(task: Task, index: int) -> str:
    """Return the name of a task; the webhook numbers unnamed ones."""
    name = task.fields.get("name")
    return name if isinstance(name, str) and name else f"default{index}"


def _partition(task: Task) -> bool:
    return bool(mapping(task.fields.get("partitionPolicy")).get("partitionSize"))


def _pods(templates: Templates, task: Task, name: str, copies: int) -> list[PodSet] | Unknown:
    """Return the pods of a task, those of each partition as one set."""
    made = pod_set(templates.owner, f"{task.path}.template", task.template, copies)
    size = number(mapping(task.fields.get("partitionPolicy")).get("partitionSize"))
    if not size:
        labels = {naming.TASK_SPEC: name}
        return pod_sets(templates, made, copies, name=name, labels=labels, task=name)
    pods: list[PodSet] = []
    for partition, start in enumerate(range(0, copies, size)):
        labels = {naming.TASK_SPEC: name, _PARTITION: str(partition)}
        found = pod_sets(templates, made, min(size, copies - start), name=f"{name}-{partition}",
                         labels=labels, task=name)  # fmt: skip
        if isinstance(found, Unknown):
            return found
        pods += found
    return pods


def _subgroup(name: str, task: Task) -> SubGroupPolicy:
    policy = mapping(task.fields.get("partitionPolicy"))
    return SubGroupPolicy(
        name=name,
        match_labels={"matchLabels": {naming.TASK_SPEC: name}},
        match_label_keys=(_PARTITION,),
        size=number(policy.get("partitionSize"), 1),
        minimum=number(policy.get("minPartitions")),
        topology=read_topology(policy.get("networkTopology")),
    )
