"""KAI Scheduler: its queues, and the rules over all objects about them.

Source: NVIDIA/KAI-Scheduler v0.9.9 and main of March 2026, pkg/apis/scheduling/v2 (Queue),
pkg/scheduler/plugins/proportion, pkg/podgrouper; docs/queues.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import ceil

from kthena_components.core.findings import Finding, advise, each_of, part_of_rule, refuse, suggest
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import KAI, GroupKind, Object, requests_of
from kthena_components.core.remedies import write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity, render_quantity
from kthena_components.core.values.read import mapping, require_known, text, unknown_in
from kthena_components.core.values.unknown import MaybeText, Unknown, known
from kthena_components.systems.system import Kind, System, as_it_is
from kthena_components.systems.volcano.rules.gang_within_queue import of_gang, upwards

QUEUE: GroupKind = ("scheduling.run.ai", "Queue")
LABEL = "kai.scheduler/queue"
_OF_RELEASE = frozenset({"default-queue", "default-parent-queue"})
"""Queues that the chart makes."""
_UNITS: Mapping[str, tuple[str, Decimal, str]] = {
    "gpu": ("nvidia.com/gpu", Decimal(1), ""),
    "cpu": ("cpu", Decimal(1000), " thousandths"),
    "memory": ("memory", Decimal(1) / Decimal(1000**2), " MB"),
}
"""Of each resource of a queue: the resource of pods, how many units are 1 of it, and their name."""
_UNLIMITED = Decimal(-1)
_PARENT = "parentQueue"
_AT_PARENT = f"spec.{_PARENT}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Demand:
    """What KAI schedules at once."""

    path: str
    """Path of the queue's name, in the caller's input."""
    owner: Object
    queue: MaybeText | None
    title: str
    amounts: Mapping[str, Decimal] | Unknown


def _everything(cluster: ClusterObjects) -> Iterator[_Demand]:
    """Yield the gangs of controllers and the single pods that KAI schedules in a named queue."""
    made = set[int]()
    for gang in cluster.made_gangs:
        if gang.scheduler == KAI:
            made.add(gang.owner.index)
            yield _Demand(
                path=gang.owner.at(gang.queue_path),
                owner=gang.owner,
                queue=gang.queue,
                title=gang.title,
                amounts=of_gang(gang),
            )
    for pods in cluster.pods:
        if pods.owner.index in made or pods.count == 0 or pods.spec.get("schedulerName") != KAI:
            continue
        labels = mapping(pods.owner.metadata.get("labels"))
        of_owner = labels.get(LABEL) is not None
        stated = labels.get(LABEL) if of_owner else pods.labels.get(LABEL)
        if stated is not None:
            at = f"metadata.labels.{LABEL}"
            yield _Demand(
                path=pods.owner.at(at) if of_owner else pods.at(at),
                owner=pods.owner,
                queue=text(stated, ""),
                title="each pod",
                amounts=requests_of(pods),
            )


def _queue_names(cluster: ClusterObjects) -> Iterator[tuple[ClusterObjects, str, MaybeText | None]]:
    """Return the path of each name of a queue, and the name."""
    if cluster.of(QUEUE):
        paths = {one.path: one.queue for one in cluster.once(_everything)}
        yield from ((cluster, path, name) for path, name in paths.items())
        for queue in cluster.of(QUEUE):
            path = queue.at(_AT_PARENT)
            yield cluster, path, text(queue.spec.get(_PARENT), "")


@each_of(_queue_names)
def kai_queue_exists(
    cluster: ClusterObjects, path: str, stated: MaybeText | None
) -> Iterator[Finding]:
    """The queue of pods that KAI schedules exists, as does its parent, and has no queues below it.

    The label kai.scheduler/queue of the object, or else of its pods, names it. KAI schedules pods
    only in queues that have no queues below them.

    Pass: the label kai.scheduler/queue: team, and a Queue team.
    Fail: among all objects of the cluster, kai.scheduler/queue: tema and a Queue team; a
    parentQueue without a Queue; the label research, and a Queue with parentQueue research.
    Level: advisory if these are all objects of the cluster; else a missing one is not checked.
    Source: NVIDIA/KAI-Scheduler pkg/podgrouper/podgrouper/plugins/defaultgrouper/
    default_grouper.go CalcPodGroupQueue; docs/queues/README.md; pkg/scheduler/api/queue_info.
    """
    name = known(stated, path)
    if name in (None, "") or name in _OF_RELEASE:
        return
    queues = cluster.named(QUEUE)
    if ("", str(name)) in queues:
        below = [str(one.name) for one in cluster.of(QUEUE) if one.spec.get(_PARENT) == name]
        if below and not path.endswith(_AT_PARENT):
            seen = f"is {display(name)}, which has the queue {display(below[0])} below it, and KAI "
            seen += "schedules pods only in queues without queues below them"
            yield advise(path, seen, write(below[0]))
        return
    missing = Unknown(f"the queue {display(name)} is not among these objects")
    require_known(path, None if cluster.complete else missing, cluster.name_unknown(QUEUE))
    seen = f"is {display(name)}, but there is no such Queue of KAI, so these pods never start"
    if path.endswith(_AT_PARENT):
        seen = f"is {display(name)}, but there is no such Queue of KAI, so KAI ignores this Queue"
    yield advise(path, seen, suggest(str(name), [own for _, own in queues]))


def kai_queue_limit(cluster: ClusterObjects) -> Iterator[Finding]:
    """What KAI starts together requests at most the limits of its queue and the queues above it.

    It applies to the gang of a PodCliqueSet, and to each single pod with the label
    kai.scheduler/queue that KAI schedules. A limit of -1 means no limit. A limit of 0 or a
    missing one allows nothing, if the queue states resources.

    Pass: a Queue with gpu.limit 16, and a PodCliqueSet whose minAvailable pods request 16 GPUs.
    Fail: a Queue with gpu.limit 8, or with gpu.quota 16 and no limit, and the same PodCliqueSet.
    Level: mandatory, because the pods never start; advisory for a queue of another file, which may
    be an alternative, unless `--whole` says that all are in one cluster.
    Source: NVIDIA/KAI-Scheduler pkg/scheduler/plugins/proportion/capacity_policy/
    max_allowed_check.go; proportion.go createQueueResourceAttrs; docs/queues/README.md;
    ai-dynamo/grove operator/internal/scheduler/kai/backend.go.
    """
    queues = {name: entry for (_, name), entry in cluster.named(QUEUE).items()}
    for wanted in cluster.once(_everything) if queues else ():
        yield from _within(cluster, wanted, queues)


@part_of_rule
def _within(
    cluster: ClusterObjects, wanted: _Demand, queues: Mapping[str, Object]
) -> Iterator[Finding]:
    """Compare what starts together with the limits of its queue and of those above."""
    for name in upwards(known(wanted.queue, wanted.path), queues, _PARENT):
        queue = queues[name]
        same = cluster.source_of(queue) == cluster.source_of(wanted.owner)
        resources = queue.spec.get("resources")
        for key, (resource, unit, title) in _UNITS.items() if resources is not None else ():
            asked = known(wanted.amounts, wanted.path).get(resource, Decimal(0)) * unit
            limit, has = _limit(queue, key)
            if not asked or limit == _UNLIMITED or asked <= known(limit, wanted.path):
                continue
            least = ceil(asked)
            seen = f"is {display(wanted.queue)}, and {wanted.title} requests {least}{title} of "
            seen += f"{resource} at once, but the {key} limit of {display(queue.name)} {has}, so "
            field = f"spec.resources.{key}.limit"
            message = f"write {field}: {least} in Queue {display(queue.name)}"
            remedy = write(least, message, at=queue.at(field))
            report = refuse if same else advise
            yield report(wanted.path, f"{seen}it never starts", remedy)


def _limit(queue: Object, key: str) -> tuple[Decimal | Unknown, str]:
    """Return the limit of a resource in a queue, and a clause about it."""
    stated: object = mapping(mapping(queue.spec.get("resources")).get(key)).get("limit")
    if stated is None:
        return Decimal(0), "is not stated, which counts as 0"
    if gap := unknown_in(stated):
        return gap, ""
    limit = parse_quantity(stated)
    return (_UNLIMITED, "") if limit is None else (limit, f"is {render_quantity(limit)}")


SYSTEM = System(
    name="kai",
    title="KAI Scheduler",
    kinds=(Kind(group=QUEUE[0], name=QUEUE[1], view=as_it_is, cluster_wide=True),),
    cluster_rules=(kai_queue_exists, kai_queue_limit),
)
