"""Reads PodGroups of Volcano with their pods, as a cluster lists them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from kthena_components.cluster.objects import (
    Body,
    accelerators,
    amounts_of,
    annotations_of,
    labels_of,
    name_of,
    namespace_of,
    status_of,
)
from kthena_components.cluster.pending import node_of
from kthena_components.core import naming
from kthena_components.core.objects.object import EACH_POD
from kthena_components.core.values.read import count, digits, mapping, sequence, unknown_inside
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.model import (
    Neighbour,
    PodGroup,
    PodSet,
    Running,
    SubGroupPolicy,
    Topology,
)
from kthena_components.placement.pod_sets import (
    controller_of,
    deciding_spec,
    labelled_owner,
    owner_of,
    priority_in,
    scheduled_requests,
)

_ENDED = ("Succeeded", "Failed")


def read_topology(stated: object) -> Topology | None:
    """Read a networkTopology; None if there is none."""
    fields = mapping(stated)
    if not fields:
        return None
    tier, name = fields.get("highestTierAllowed"), fields.get("highestTierName")
    return Topology(
        hard=fields.get("mode", "hard") != "soft",
        highest_tier=tier if isinstance(tier, int) and not isinstance(tier, bool) else None,
        highest_tier_name=name if isinstance(name, str) and name else None,
    )


def read_subgroup(stated: object) -> SubGroupPolicy:
    """Read one entry of subGroupPolicy."""
    fields = mapping(stated)
    return SubGroupPolicy(
        name=str(fields.get("name") or ""),
        match_labels=mapping(fields.get("labelSelector")),
        match_label_keys=tuple(map(str, sequence(fields.get("matchLabelKeys")))),
        size=number_or(fields.get("subGroupSize"), 1),
        minimum=number_or(fields.get("minSubGroups")),
        topology=read_topology(fields.get("networkTopology")),
    )


def number_or(value: object, default: int = 0) -> int:
    """Read a count; the default for anything else."""
    whole = count(value, default)
    return whole if isinstance(whole, int) and whole >= 0 else default


def read_pod_group(
    body: Body, pods: Sequence[PodSet], *, owner: str, priority: int = 0
) -> PodGroup:
    """Read a PodGroup, whose pods are known.

    Args:
        owner: The object that makes it.
        priority: The value of its priority class.
    """
    spec = mapping(body.get("spec"))
    return PodGroup(
        namespace=namespace_of(body) or "default",
        name=name_of(body),
        owner=owner,
        pods=tuple(pods),
        minimum=number_or(spec.get("minMember")),
        task_minimum={
            str(task): number_or(least)
            for task, least in mapping(spec.get("minTaskMember")).items()
        },
        min_resources=amounts_of(spec["minResources"]) if spec.get("minResources") else None,
        topology=read_topology(spec.get("networkTopology")),
        subgroups=tuple(map(read_subgroup, sequence(spec.get("subGroupPolicy")))),
        queue=str(spec.get("queue") or "default"),
        priority=priority,
        unknown=unknown_inside(spec),
    )


# The groups of a cluster: those of PodGroups, and pods by themselves.


def groups_in(
    pod_groups: Iterable[Body], pods: Iterable[Body], priorities: Mapping[str, int]
) -> tuple[list[Running], list[PodGroup]]:
    """Return the groups that run, with the nodes of their pods, and those that wait.

    Pods without a PodGroup are groups by their controllers: those that wait, and those that run and
    hold accelerators. Of other pods only the sums by node count.
    """
    members: dict[tuple[str, str], list[Body]] = {}
    others: dict[tuple[str, str, bool], list[Body]] = {}
    for pod in filter(_counts, pods):
        named = annotations_of(pod).get(naming.POD_GROUP)
        if named:
            members.setdefault((namespace_of(pod), named), []).append(pod)
        elif not node_of(pod) or _holds_devices(pod):
            key = (namespace_of(pod), _controller(pod), bool(node_of(pod)))
            others.setdefault(key, []).append(pod)
    running, waiting = list[Running](), list[PodGroup]()
    for body in sorted(pod_groups, key=oldest_first):
        found = members.get((namespace_of(body), name_of(body)), [])
        listed, nodes = _sets_of(found)
        priority = priority_in(mapping(body.get("spec")), priorities)
        group = read_pod_group(body, listed, owner=_owner(body, found), priority=priority)
        _sort(group, nodes, running, waiting)
    for (namespace, name, _), found in others.items():
        listed, nodes = _sets_of(found)
        _sort(_alone(namespace, name, found, listed), nodes, running, waiting)
    return running, waiting


def neighbours_in(pods: Iterable[Body]) -> list[Neighbour]:
    """Return the running pods that are in no group, equal ones together."""
    alike: dict[str, tuple[str, PodSet, list[str]]] = {}
    for pod in filter(_counts, pods):
        if (
            node_of(pod)
            and not annotations_of(pod).get(naming.POD_GROUP)
            and not _holds_devices(pod)
        ):
            space = namespace_of(pod)
            pods_ = replace(_set_of(pod), name="pods", requests={}, task="", priority=0)
            affinity = {key: value for key, value in mapping(pods_.spec.get("affinity")).items()
                        if key == "podAntiAffinity"}  # fmt: skip
            ports = pods_.spec.get("containers")
            stated = {"affinity": affinity, "containers": ports}
            spec = {key: value for key, value in stated.items() if value}
            pods_ = replace(pods_, spec=spec)
            key = repr((space, sorted(pods_.labels.items()), spec))
            alike.setdefault(key, (space, pods_, []))[2].append(node_of(pod))
    return [
        Neighbour(namespace=space, pods=replace(pods_, count=len(nodes)), nodes=tuple(nodes))
        for space, pods_, nodes in alike.values()
    ]


def _counts(pod: Body) -> bool:
    """Say whether a pod holds or waits for a node."""
    gated = mapping(pod.get("spec")).get("schedulingGates")
    return status_of(pod).get("phase") not in _ENDED and not gated


def _sort(
    group: PodGroup, nodes: Sequence[str], running: list[Running], waiting: list[PodGroup]
) -> None:
    if any(nodes):
        running.append(Running(group=group, nodes=tuple(nodes)))
    elif group.pods:
        waiting.append(group)


def _alone(namespace: str, name: str, pods: Sequence[Body], sets: Sequence[PodSet]) -> PodGroup:
    """Describe pods without a PodGroup as a group in which no pod waits for another."""
    scheduler = str(mapping(pods[0].get("spec")).get("schedulerName") or "default-scheduler")
    return PodGroup(
        namespace=namespace,
        name=name,
        owner=owner_of({**pods[0], "kind": "Pod"}),
        pods=tuple(sets),
        minimum=0,
        priority=max((each.priority for each in sets), default=0),
        scheduler=scheduler,
    )


def _holds_devices(pod: Body) -> bool:
    asked = scheduled_requests(mapping(pod.get("spec")))
    return not isinstance(asked, Unknown) and accelerators(asked) > 0


def _controller(pod: Body) -> str:
    """Return the name of the object that controls a pod; the pod's without one."""
    return str(controller_of(pod).get("name") or name_of(pod))


def _owner(body: Body, pods: Sequence[Body]) -> str:
    """Return the object behind a PodGroup: what labels name, else what has created it."""
    named = map(labelled_owner, (body, *pods[:1]))
    return next(filter(None, named), "") or owner_of({**body, "kind": "PodGroup"})


def _sets_of(pods: Sequence[Body]) -> tuple[list[PodSet], list[str]]:
    """Return pods in Volcano's order as sets of equal ones, and the node of each pod."""
    ordered = [(_set_of(pod), node_of(pod)) for pod in sorted(pods, key=turn_of)]
    runs = [list(run) for _, run in groupby(ordered, key=lambda each: replace(each[0], name=""))]
    sets = [replace(run[0][0], count=len(run)) for run in runs]
    return sets, [node for _, node in ordered]


def oldest_first(body: Body) -> tuple[str, str, str]:
    """Order objects by their age, as Volcano does; equally old ones by their names.

    Source: Volcano v1.14.1 pkg/scheduler/framework/session_plugins.go, JobOrderFn, QueueOrderFn.
    """
    created = str(mapping(body.get("metadata")).get("creationTimestamp") or "")
    return created, namespace_of(body), name_of(body)


def turn_of(pod: Body) -> tuple[int, str, str]:
    """Order the pods of a PodGroup as Volcano does: by the number at the end of their names.

    Source: Volcano v1.14.1 pkg/controllers/job/helpers/helpers.go, CompareTask.
    """
    number, metadata = name_of(pod).rpartition("-")[2], mapping(pod.get("metadata"))
    index = digits(number) or 0
    return index, str(metadata.get("creationTimestamp") or ""), str(metadata.get("uid") or "")


def _set_of(pod: Body) -> PodSet:
    """Describe a pod as a set of one, with the requests that schedulers count."""
    spec, labels = mapping(pod.get("spec")), labels_of(pod)
    asked = scheduled_requests(spec)
    priority = spec.get("priority")
    task = annotations_of(pod).get(naming.TASK_SPEC) or labels.get(naming.TASK_SPEC) or ""
    return PodSet(
        name=task or labels.get(naming.ROLE) or _controller(pod),
        count=1,
        requests={} if isinstance(asked, Unknown) else asked,
        spec=deciding_spec(spec),
        labels={key: value for key, value in labels.items() if key not in EACH_POD},
        task=task,
        priority=priority if isinstance(priority, int) else 0,
    )
