"""Turns objects into the groups of pods that controllers make, also during an update. Pure.

A PodGroup is read with its pods; ModelServings, ModelInfers, LeaderWorkerSets and Volcano Jobs give
the PodGroups of their controllers. All other pods start alone: they are one group without a
minimum for each object. Where the pods are not known, the group says why.

Source: the rollouts of the kinds, which `surge-needs-spare-gpus` reads, too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.checker.read_cluster_objects import known, read_objects
from kthena_components.cluster.objects import accelerators
from kthena_components.core import naming
from kthena_components.core.facts.serving import gpu_demand
from kthena_components.core.findings import count_of
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import JOB, MODEL_SERVING, POD_GROUP, Object
from kthena_components.core.objects.object import PodSet as Template
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import mapping, text, unknown_within
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.gangs import groups_of_job, groups_of_serving, groups_of_sets
from kthena_components.placement.model import Cluster, PodGroup, PodSet
from kthena_components.placement.place import FITTED, first_change, place, why_not
from kthena_components.placement.pod_groups import read_pod_group
from kthena_components.placement.pod_sets import (
    Templates,
    owner_of,
    pod_sets,
    priority_classes,
    priority_in,
)
from kthena_components.placement.quotas_and_limit_ranges import ranges_among
from kthena_components.systems import find_kind
from kthena_components.systems.lws.view import DISAGGREGATED_SET, LEADER_WORKER_SET
from kthena_components.systems.matrixinfer.view import MODEL_INFERS
from kthena_components.systems.system import Rollout

_MAKERS = {
    MODEL_SERVING: groups_of_serving,
    **dict.fromkeys(MODEL_INFERS, groups_of_serving),
    **dict.fromkeys((LEADER_WORKER_SET, DISAGGREGATED_SET), groups_of_sets),
    JOB: groups_of_job,
}
"""Which controller makes the PodGroups of each kind."""
_TEMPLATE = ("", "PodTemplate")
"""Who refers to it makes the pods."""
NO_TEMPLATES = "its controller writes the pods, so their sizes are not known"


def pod_groups_of(
    objects: Iterable[Mapping[str, Any]],
    priorities: Mapping[str, int] | None = None,
    limit_ranges: Iterable[Mapping[str, Any]] = (),
) -> list[PodGroup]:
    """Return the groups of all pods of some objects, in the order of the objects.

    Args:
        objects: Objects of one cluster. Those without pods are passed over.
        priorities: The values of the cluster's priority classes; objects may add some.
        limit_ranges: The cluster's LimitRanges; those of the objects replace them by name.
    """
    bodies = list(objects)
    cluster = read_objects(bodies, [])
    values = {**(priorities or {}), **priority_classes(bodies)}
    ranges = ranges_among(bodies, limit_ranges)
    by_owner: dict[int, list[Template]] = {}
    for pods in cluster.pods:
        by_owner.setdefault(pods.owner.index, []).append(pods)
    joined = cluster.named(POD_GROUP)
    return [
        group
        for found in cluster.objects
        for group in _groups(
            Templates(found, values, ranges), by_owner.get(found.index, []), cluster, joined
        )
    ]


def _groups(
    templates: Templates,
    pods: Sequence[Template],
    cluster: ClusterObjects,
    joined: Mapping[tuple[str, str], Object],
) -> Iterator[PodGroup]:
    """List the groups of an object's pods: a stated one, a controller's, or single pods."""
    found, view = templates.owner, cluster.views[templates.owner.index]
    if found.group_kind == POD_GROUP:
        yield from _stated_pod_group(templates, cluster)
    elif found.group_kind in _MAKERS:
        yield from _MAKERS[found.group_kind](templates, view)
    else:
        alone = [each for each in pods if _group_of(each) not in joined]
        group = _alone(templates, alone) if alone else None
        if group is None or group.unknown is None:
            shown = () if group is None else group.pods
            hidden = None if pods and not alone else _without_templates(templates, view, shown)
            group = hidden or group
        if group is not None:
            yield group


def _group_of(pods: Template) -> tuple[str, str]:
    """Return the namespace and name of the PodGroup that pods name."""
    return str(pods.owner.namespace), str(pods.gang or "")


def _stated_pod_group(templates: Templates, cluster: ClusterObjects) -> Iterator[PodGroup]:
    """Return a PodGroup with the pods that name it."""
    found = templates.owner
    members = cluster.gangs.get((str(found.namespace), str(found.name)), [])
    pods: list[PodSet] = []
    gap = unknown_within(found.spec) or cluster.unsure
    for each in members:
        made = pod_sets(replace(templates, owner=each.owner), each)
        gap = gap or (made if isinstance(made, Unknown) else None)
        pods += [] if isinstance(made, Unknown) else made
    group = read_pod_group(found.body, pods, owner=owner_of(found.body),
                           priority=priority_in(found.spec, templates.priorities))  # fmt: skip
    if members or gap:
        yield replace(group, unknown=gap)


def _alone(templates: Templates, pods: Sequence[Template]) -> PodGroup:
    """Return pods that start one by one."""
    made: list[PodSet] = []
    gap = templates.unnamed
    for each in pods:
        one = pod_sets(templates, each)
        gap = gap or (one if isinstance(one, Unknown) else None)
        made += [] if isinstance(one, Unknown) else one
    scheduler = text(pods[0].spec.get("schedulerName"), "default-scheduler")
    queue = mapping(templates.owner.metadata.get("annotations")).get(naming.QUEUE_NAME)
    return PodGroup(
        namespace=templates.namespace,
        name=templates.name,
        owner=templates.title,
        pods=tuple(made),
        minimum=0,
        queue=queue if isinstance(queue, str) else "default",
        priority=max((one.priority for one in made), default=0),
        scheduler=scheduler if isinstance(scheduler, str) and scheduler else "default-scheduler",
        unknown=gap,
    )


def _without_templates(
    templates: Templates, view: object, pods: Sequence[PodSet] = ()
) -> PodGroup | None:
    """Return a group without pods, if the controller gives pods GPUs that no template shows."""
    kind = find_kind(templates.owner.group_kind)
    if (
        kind is None
        or kind.completes
        or kind.group_kind == _TEMPLATE
        or any(accelerators(each.requests) for each in pods)
    ):
        return None
    demand = kind.demand(view) if kind.demand is not None else None
    facts = kind.facts(view) if kind.facts is not None and demand is None else None
    gpus = gpu_demand(facts).gpus if facts is not None else demand.gpus if demand else 0
    if gpus == 0:
        return None
    many = (
        f"{NO_TEMPLATES}; all request {count_of(gpus, 'GPU')}"
        if isinstance(gpus, int)
        else NO_TEMPLATES
    )
    return PodGroup(
        namespace=templates.namespace,
        name=templates.name,
        owner=templates.title,
        pods=(),
        minimum=0,
        scheduler="default-scheduler",
        unknown=templates.unnamed or Unknown(many),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Surge:
    """What an update of an object runs beside its old pods."""

    owner: str
    groups: tuple[PodGroup, ...]
    stuck: bool
    """Whether no old pod stops before, so that the update ends only if all of them fit."""


def surges_of(objects: Iterable[Mapping[str, Any]], groups: Iterable[PodGroup]) -> list[Surge]:
    """Return the surge of each object that has one; of several strategies in one, none is read.

    Args:
        objects: The objects after the change.
    """
    by_owner: dict[str, list[PodGroup]] = {}
    for group in groups:
        by_owner.setdefault(group.owner, []).append(group)
    found = []
    for one, kind, view in known(read_objects(list(objects), [])):
        rollouts = list(kind.rollouts(view)) if kind.rollouts is not None else []
        owner = Templates(one, {}).title
        own = by_owner.get(owner, [])
        if len(rollouts) == 1 and own and not any(group.unknown for group in own):
            more, stuck = _more(rollouts[0])
            extra = tuple(_copies(own, rollouts[0], more))
            found += [Surge(owner=owner, groups=extra, stuck=stuck)] if extra else []
    return found


def _more(rollout: Rollout) -> tuple[int, bool]:
    """Count the replicas that start beside the old ones, and say whether these all stay."""
    replicas = rollout.replicas
    if not isinstance(replicas, int) or replicas < 1:
        return 0, False
    if rollout.all_at_once:
        return replicas, True
    stated = rollout.max_unavailable, rollout.max_surge
    down, up = (u if s is None else s for s, u in zip(stated, rollout.usual, strict=True))
    if not is_budget(up) or not is_budget(down):
        return 0, False
    return scaled(up, replicas, up=True) or 0, not scaled(down, replicas, up=False)


def _copies(own: list[PodGroup], rollout: Rollout, more: int) -> Iterator[PodGroup]:
    """Write further replicas: whole groups, or pods of the only group."""
    replicas = rollout.replicas
    if not more or not isinstance(replicas, int):
        return
    if len(own) == replicas and own[0].minimum:
        for number in range(more):
            group = own[number % len(own)]
            yield replace(group, name=f"{group.name}-update-{number}")
    elif len(own) == 1:
        pods = tuple(replace(one, count=-(-one.count * more // replicas)) for one in own[0].pods)
        yield replace(own[0], name=f"{own[0].name}-update", pods=pods)


def notes_of(cluster: Cluster, surges: Iterable[Surge]) -> dict[str, str]:
    """Say of each owner whose surge finds no room what the update needs.

    Args:
        cluster: With the old pods.
        surges: What is to be updated.
    """
    found = {}
    for surge in surges:
        own = {node for one in cluster.running if one.group.owner == surge.owner
               for node in one.nodes}  # fmt: skip
        there = replace(cluster, taken_by_others=cluster.taken_by_others | own)
        waiting = [one for one in place(there, surge.groups) if one.verdict not in FITTED]
        if waiting:
            number = sum(group.size for group in surge.groups)
            begins = f"during its update, {count_of(number, 'pod')} beside the old ones must fit"
            end = ", and the update never ends otherwise" if surge.stuck else ""
            why = ". ".join(filter(None, (why_not(waiting[0]), first_change(waiting[0]))))
            found[surge.owner] = f"{begins}{end}: {why}"
    return found
