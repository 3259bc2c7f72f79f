"""The rule gang-within-queue: a queue has room for what starts together."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, not_checked, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects, Gang
from kthena_components.core.objects.object import (
    POD_GROUP,
    QUEUE,
    VOLCANO,
    Object,
    PodSet,
    requests_of,
)
from kthena_components.core.remedies import write
from kthena_components.core.topology.node_fit import least_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import parse_quantity, render_quantity
from kthena_components.core.values.read import count, first_unknown, mapping, pairs, text
from kthena_components.core.values.unknown import MaybeText, Unknown, known, may_be
from kthena_components.systems.volcano.rules.gang_pods_task_exists_foreign_groups import (
    DEPLOYMENT,
    STATEFUL_SET,
    member_of,
)
from kthena_components.systems.volcano.rules.queue import exceeds

_USUAL = "default"
"""The queue of pods that name none."""
_DEEPEST = 32
"""Longest chain of parent queues that is followed."""
_WITHOUT_ZERO = frozenset({"cpu", "memory"})
"""Resources for which a capability of 0 means no limit (proportion.go OnSessionOpen)."""
_Amounts = Mapping[str, Decimal] | Unknown


@dataclass(frozen=True, slots=True)
class _Demand:
    """What must be free in a queue at the same time."""

    owner: Object
    path: str
    queue: MaybeText | None
    title: str
    amounts: _Amounts
    sure: bool = True
    """Whether Volcano schedules it in any case."""


def gang_within_queue(cluster: ClusterObjects) -> Iterator[Finding]:
    """What starts together requests at most the capability of its queue and of the queues above.

    It applies to the minResources of a PodGroup, or minMember of its smallest pods; to a group of a
    ModelServing or a LeaderWorkerSet, to a Volcano Job and to a Ray cluster with the label
    volcano.sh/queue-name; to each group of a RoleBasedGroup or its set, to the least pods of a
    PodCliqueSet, and to a StormService with volcanoSchedulingStrategy; to the gang of
    group-min-member; and to each single pod that Volcano schedules. A capability limits only the
    resources that it names, and 0 of CPU and memory mean no limit: the devices of resource claims
    count under `deviceclass/<class>`, in 1.15 with its plugin capacity, and are not compared here.
    Volcano compares the queues above with its plugin capacity and enableHierarchy only; with
    proportion, the default, it starts more than they allow.

    Pass: a Queue with capability 16 GPUs, and a ModelServing with groups of 16 GPUs.
    Fail: a Queue with capability 8 GPUs, and a ModelServing with groups of 16 GPUs.
    Level: mandatory, because it never starts; advisory for a queue above, for a Ray cluster, of
    which KubeRay's option batch-scheduler decides, and for a queue of another file, which may be an
    alternative, unless `--whole` says that all are in one cluster.
    Source: Volcano v1.14 pkg/scheduler/plugins/proportion/proportion.go and capacity/capacity.go,
    AddJobEnqueueableFn and AddAllocatableFn. Run on 1.14.1 with both plugins, and with AIBrix 0.7.0
    and RoleBasedGroup v0.8.0-alpha.5. docs/user-guide/how_to_use_dra_quota.md of 1.15.
    ray-project/kuberay ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go.
    """
    queues = {name: entry for (_, name), entry in cluster.named(QUEUE).items()}
    if not queues:
        return
    for wanted in _everything(cluster):
        queue = _USUAL if wanted.queue in (None, "") else wanted.queue
        if gap := first_unknown(queue):
            yield not_checked(wanted.path, gap)
        elif isinstance(queue, str) and queue in queues:
            same = cluster.source_of(queues[queue]) == cluster.source_of(wanted.owner)
            found = _check_gang(wanted, queue, queues)
            yield from found if same and wanted.sure else map(_as_advice, found)


def _as_advice(found: Finding) -> Finding:
    return replace(found, level=Level.ADVISORY) if found.level is Level.MANDATORY else found


def _everything(cluster: ClusterObjects) -> Iterator[_Demand]:
    """List what takes room of a queue at once: PodGroups, gangs of controllers, and single pods."""
    hidden = [pods for pods in cluster.pods if first_unknown(pods.gang) and not pods.by_controller]
    for (namespace, name), entry in cluster.named(POD_GROUP).items():
        path, queue = entry.at("spec.queue"), text(entry.spec.get("queue"), "")
        near = (pods.gang for pods in hidden if may_be(pods.owner.namespace, namespace))
        pods_of = cluster.gangs.get((namespace, name), [])
        amounts = _of_pod_group(entry, pods_of, first_unknown(*near))
        yield _Demand(entry, path, queue, "the gang", amounts)
    made = {gang.owner.index for gang in cluster.made_gangs}
    for gang in cluster.made_gangs:
        if gang.queue_path and gang.scheduler == VOLCANO:
            path = gang.owner.at(gang.queue_path)
            stated = gang.resources
            amounts = of_gang(gang) if stated is None else _amounts(stated)
            yield _Demand(gang.owner, path, gang.queue, gang.title, amounts, gang.sure)
    for pods in cluster.pods:
        queue = text(pods.annotations.get(naming.QUEUE_NAME), "")
        if pods.owner.index in made or pods.gang or pods.count == 0:
            continue
        if pods.spec.get("schedulerName") == VOLCANO and (queue or not pods.by_controller):
            at = f"metadata.annotations.{naming.QUEUE_NAME}" if queue else "spec.schedulerName"
            least = member_of(pods, DEPLOYMENT, STATEFUL_SET) or 1
            title = "each pod" if least == 1 else "its gang (group-min-member)"
            amounts = _times(requests_of(pods), least)
            yield _Demand(pods.owner, pods.at(at), queue, title, amounts)


def _times(amounts: _Amounts, number: int) -> _Amounts:
    if isinstance(amounts, Unknown):
        return amounts
    return {key: amount * number for key, amount in amounts.items()}


def _of_pod_group(entry: Object, pods: list[PodSet], hidden: Unknown | None) -> _Amounts:
    """Return the minResources of a PodGroup, or the least that its pods request.

    Args:
        hidden: Why other pods may belong to it, which may request less; None if none may.
    """
    stated = entry.spec.get("minResources")
    if stated is not None:
        return _amounts(stated)
    member = count(entry.spec.get("minMember"), 0)
    asked = [requests_of(item) for item in pods if item.count != 0]
    if (
        gap := hidden
        or first_unknown(member)
        or next((a for a in asked if isinstance(a, Unknown)), None)
    ):
        return gap
    known = [one for one in asked if not isinstance(one, Unknown)]
    return _times(least_of(known), member) if isinstance(member, int) else {}


def of_gang(gang: Gang) -> Mapping[str, Decimal] | Unknown:
    """Add up the requests of a gang's pods by resource; unknown if any of them is."""
    found: dict[str, Decimal] = {}
    for pods, number in gang.pods:
        asked = requests_of(pods)
        if isinstance(number, Unknown):
            return number
        if isinstance(asked, Unknown):
            return asked
        for key, amount in asked.items():
            found[key] = found.get(key, Decimal(0)) + amount * number
    return found


def _amounts(stated: object) -> _Amounts:
    if gap := first_unknown(stated, *mapping(stated).values()):
        return gap
    read = ((key, parse_quantity(value)) for key, value in pairs(stated))
    return {str(key): amount for key, amount in read if amount is not None}


@part_of_rule
def _check_gang(wanted: _Demand, name: str, queues: Mapping[str, Object]) -> Iterator[Finding]:
    """Compare a gang's requests with the capability of its queue and of the queues above."""
    for resource, amount in known(wanted.amounts, wanted.path).items():
        for above in upwards(name, queues, "parent"):
            limits = mapping(queues[above].spec.get("capability"))
            stated = limits.get(resource)
            limit = parse_quantity(stated)
            if limit is None or (limit <= 0 and resource in _WITHOUT_ZERO):
                continue
            if amount <= limit or (limit > 0 and not exceeds(resource, [amount], limit)):
                continue
            yield _finding(wanted, name, queues[above], resource, (amount, limit))
            break


def upwards(name: MaybeText | None, queues: Mapping[str, Object], field: str) -> Iterator[str]:
    """Yield a queue and the queues above it, whose names are in a field of the spec."""
    at = name
    met: set[str] = set()
    while isinstance(at, str) and at in queues and at not in met and len(met) < _DEEPEST:
        met.add(at)
        yield at
        at = text(queues[at].spec.get(field))


def _finding(
    wanted: _Demand, name: str, queue: Object, resource: str, numbers: tuple[Decimal, Decimal]
) -> Finding:
    """Write the finding of a gang above a capability; `numbers` are requested and allowed."""
    asked, limit = map(render_quantity, numbers)
    own = queue.name == name
    whose = "" if own else f" of {display(queue.name)} above it"
    when = "" if own else " where Volcano compares the queues above (enableHierarchy)"
    at = queue.at(f"spec.capability.{key_text(resource)}")
    return Finding(
        path=wanted.path,
        seen=f"is {display(name)}, and {wanted.title} requests {asked} of {resource} at once, but "
        f"the capability{whose} is {limit}, so it never starts{when}",
        remedy=write(asked, f"raise the capability to {asked}, or request less", at=at),
        level=Level.MANDATORY if own else Level.ADVISORY,
    )
