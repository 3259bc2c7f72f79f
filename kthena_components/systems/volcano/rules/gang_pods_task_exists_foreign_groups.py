"""Checks PodGroups of a cluster against the pods with their names.

Volcano finds the pods of a PodGroup by the annotation scheduling.k8s.io/group-name and by the
namespace. PodGroups that Kthena and Volcano Jobs create are not in a stack, and not checked here.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    Level,
    count_of,
    join_path,
    not_checked,
    part_of_rule,
)
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import (
    JOB,
    POD_GROUP,
    VOLCANO,
    GroupKind,
    Object,
    PodSet,
    requests_of,
)
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.caches import cached_by_object
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import parse_quantity, render_quantity
from kthena_components.core.values.read import (
    count,
    digits,
    first_unknown,
    mapping,
    pairs,
    sequence,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, total
from kthena_components.systems.kubernetes.rules.autoscalers_and_coscheduling_pods import numbers_of
from kthena_components.systems.volcano.view import Topology, topologies

DEPLOYMENT, STATEFUL_SET = ("apps", "Deployment"), ("apps", "StatefulSet")
_NOBODY = Unknown("none of these pods has its name")


def _gangs(cluster: ClusterObjects) -> Iterator[tuple[Object, list[PodSet]]]:
    """Return each PodGroup with the pods that have its name."""
    for (namespace, name), entry in cluster.named(POD_GROUP).items():
        yield entry, cluster.gangs.get((namespace, name), [])


def gang_has_pods(cluster: ClusterObjects) -> Iterator[Finding]:
    """At least minMember pods have the name of their PodGroup; otherwise it waits forever.

    The same applies to the PodGroup that Volcano makes for the annotation
    scheduling.volcano.sh/group-min-member of a Deployment or a StatefulSet.

    Pass: minMember 2, a StatefulSet of 2 replicas with its name.
    Fail: minMember 3, a StatefulSet of 2 replicas with its name; group-min-member 4, and 2
    replicas.
    Level: mandatory; not checked if no pod has the name, or if an autoscaler sets their number.
    Source: Volcano v1.14 pkg/scheduler/plugins/gang/gang.go, validJobFn (ValidTaskNum).
    """
    for entry, pods in _gangs(cluster):
        member, path = count(entry.spec.get("minMember"), 0), entry.at("spec.minMember")
        number = total(numbers_of(cluster, pods))
        if member in {None, 0}:
            continue
        gap = next((value for value in (member, number) if isinstance(value, Unknown)), None)
        short = isinstance(number, int) and isinstance(member, int) and number < member
        if gap is None and short:
            gap = cluster.unsure or (None if pods else _NOBODY)
        if gap:
            yield not_checked(path, gap)
        elif short:
            yield Finding(
                path=path,
                seen=f"the gang waits for {count_of(member, 'pod')}, but {_have(number)} its name, "
                "so it never starts",
                remedy=either(
                    write(number, f"write minMember {number}"), "give more pods the annotation"
                ),
            )
    for one in cluster.pods:
        yield from _has_least(cluster, one)


def member_of(pods: PodSet, *kinds: GroupKind) -> int | None:
    """Return the minimum that an object's annotation gives to the PodGroup of its pods."""
    owner = pods.owner
    if owner.group_kind not in kinds or pods.gang or pods.spec.get("schedulerName") != VOLCANO:
        return None
    return digits(mapping(owner.metadata.get("annotations")).get(naming.GANG_MINIMUM))


def _has_least(cluster: ClusterObjects, pods: PodSet) -> Iterator[Finding]:
    """Report a minimum of an annotation that the pods of its object never reach."""
    least = member_of(pods, DEPLOYMENT, STATEFUL_SET)
    number = numbers_of(cluster, [pods])[0] if least else None
    if least and isinstance(number, int) and 0 < number < least:
        at = pods.owner.at(join_path("metadata.annotations", key_text(naming.GANG_MINIMUM)))
        seen = f"is {least}, but {pods.owner.kind} {display(pods.owner.name)} has "
        seen += f"{count_of(number, 'replica')}, so its gang never starts"
        yield Finding(path=at, seen=seen, remedy=write(str(number)))


def _have(number: MaybeInt) -> str:
    return f"{number} has" if number == 1 else f"{number} have"


def pod_group_exists(cluster: ClusterObjects) -> Iterator[Finding]:
    """The PodGroup that pods name exists in their namespace.

    Pass: a PodGroup chat-0 and pods that name chat-0.
    Fail: a PodGroup chat-0 in the namespace default, and pods in models that name it.
    Level: mandatory if a PodGroup of the name is in another namespace, has no pods there, and these
    are all objects of the cluster; otherwise not checked.
    Source: Volcano v1.14 pkg/scheduler/cache/event_handlers.go: pods without their PodGroup are not
    scheduled.
    """
    known = cluster.named(POD_GROUP)
    elsewhere = {name: namespace for namespace, name in known}
    for (namespace, name), pods in cluster.gangs.items():
        if name and (namespace, name) not in known:
            at = pods[0].at("metadata.annotations")
            other = elsewhere.get(name)
            if other is not None and cluster.complete and (other, name) not in cluster.gangs:
                seen = f"is {display(other)}, but the pods that name this PodGroup are in "
                seen += f"{display(namespace)}, so none of them starts"
                at = known[other, name].at("metadata.namespace")
                yield Finding(path=at, seen=seen, remedy=write(namespace))
                continue
            because = f"the PodGroup {display(name)} of these pods is not in namespace "
            gap = Unknown(f"{because}{display(namespace)}")
            yield not_checked(at, gap)


def gang_task_exists(cluster: ClusterObjects) -> Iterator[Finding]:
    """Each task in minTaskMember has that many pods; otherwise no pod of the gang starts.

    minTaskMember applies if minMember is at least the sum of the minima.

    Pass: minTaskMember worker 2, 2 pods of task worker.
    Fail: minTaskMember worker 2, only pods of task leader.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/job_info.go CheckTaskValid; run on 1.14.1.
    """
    for entry, pods in _gangs(cluster):
        minima = {
            task: least
            for task, stated in mapping(entry.spec.get("minTaskMember")).items()
            if isinstance(least := count(stated), int) and least > 0
        }
        member = count(entry.spec.get("minMember"), 0)
        if pods and isinstance(member, int) and member >= sum(minima.values()):
            yield from _check_tasks(cluster, entry, pods, minima)


def _check_tasks(
    cluster: ClusterObjects, entry: Object, pods: list[PodSet], minima: Mapping[str, int]
) -> Iterator[Finding]:
    """Compare minTaskMember with the pods that each task has."""
    carried: dict[object, list[MaybeInt]] = {}
    for item, number in zip(pods, numbers_of(cluster, pods), strict=True):
        carried.setdefault(item.task, []).append(number)
    unsure = next((task for task in carried if isinstance(task, Unknown)), None) or cluster.unsure
    for task, least in minima.items():
        path = entry.at(join_path("spec.minTaskMember", key_text(task)))
        number = total(carried.get(task, []))
        if isinstance(number, int) and number >= least:
            continue
        if gap := number if isinstance(number, Unknown) else unsure:
            yield not_checked(path, gap)
            continue
        yield Finding(
            path=path,
            seen=f"requires {count_of(least, 'pod')} of task {display(task)}, but {_have(number)} "
            "it among the pods of this gang, so none of them ever starts",
            remedy="name the task that the annotation volcano.sh/task-spec of the pods has",
        )


def gang_requests(cluster: ClusterObjects) -> Iterator[Finding]:
    """The pods of a gang with a hard topology request resources; otherwise the topology skips them.

    The topology comes from their PodGroup, or from the object whose controller creates it: a
    Volcano Job, a ModelServing, a ModelInfer.

    Pass: pods with a request or a limit of CPU, memory or GPUs.
    Fail: pods without any.
    Level: mandatory.
    Source: Volcano issue 4811; run on 1.14.1: placed over both racks under a hard cap of 1, for a
    PodGroup and for a ModelServing of Kthena 1.0.0.
    """
    for entry, pods in (*_gangs(cluster), *_by_controllers(cluster)):
        scheduler = text(entry.spec.get("schedulerName"), VOLCANO)
        if scheduler != VOLCANO and not isinstance(scheduler, Unknown):
            continue
        for item in pods:
            modes = [each.mode for each in topologies(entry.body) if _is_about(each, item)]
            unsure = first_unknown(scheduler, *modes)
            if "hard" in modes and not isinstance(scheduler, Unknown):
                yield from _check_requests(entry, item)
            elif modes and unsure and _requests(item) == {}:
                yield not_checked(item.at("spec.containers"), unsure)


_requests = cached_by_object(64)(requests_of)
"""Three rules ask for the requests of the same pods."""


def _by_controllers(cluster: ClusterObjects) -> Iterator[tuple[Object, list[PodSet]]]:
    """Return each object whose controller creates the PodGroups of its pods, with these pods."""
    owned: dict[int, list[PodSet]] = {}
    for pods in cluster.pods:
        if pods.by_controller:
            owned.setdefault(pods.owner.index, []).append(pods)
    return ((pods[0].owner, pods) for pods in owned.values())


def _is_about(topology: Topology, pods: PodSet) -> bool:
    """Return whether a topology applies to some pods: one of a Job's task applies to no others."""
    task, _, rest = topology.path.partition(".partitionPolicy.")
    return not rest or pods.path.startswith(f"{task}.")


@part_of_rule
def _check_requests(entry: Object, item: PodSet) -> Iterator[Finding]:
    """Report pods without requests, which a hard network topology does not hold together."""
    path = item.at("spec.containers")
    if not known(_requests(item), path) and item.count != 0:
        yield Finding(
            path=path,
            seen=f"request no resources, so the hard network topology of {entry.kind} "
            f"{display(entry.name)} does not apply to these pods",
            remedy="add requests, for example of CPU, which restarts the pods",
        )


def gang_resources(cluster: ClusterObjects) -> Iterator[Finding]:
    """The minResources of a gang are at most what minMember of its pods request.

    The whole amount must be free in one HyperNode before any pod is placed. The rule counts the
    pods with the largest requests, so it does not report a minimum that is possible.

    Pass: minMember 2, pods of 8 GPUs, minResources of 16 GPUs.
    Fail: minMember 2, three pods of 8 GPUs, minResources of 24 GPUs.
    Level: mandatory.
    Source: run on Volcano 1.14.1: minResources for all pods of an elastic gang places none.
    """
    for entry, pods in _gangs(cluster):
        member = count(entry.spec.get("minMember"), 0)
        amounts = [(item.count, _requests(item)) for item in pods]
        if not pods or cluster.unsure or not isinstance(member, int) or member <= 0:
            continue
        known = [(n, a) for n, a in amounts if isinstance(n, int) and not isinstance(a, Unknown)]
        whole = sum(n for n, _ in known)
        gap = next((v for pair in amounts for v in pair if isinstance(v, Unknown)), None)
        if gap and entry.spec.get("minResources") is not None:
            yield not_checked(entry.at("spec.minResources"), gap)
        if gap or whole < member:
            continue  # gang-has-pods reports too few pods
        yield from _check_resources(entry, member, known)


def _check_resources(
    entry: Object, member: int, known: list[tuple[int, dict[str, Decimal]]]
) -> Iterator[Finding]:
    """Check that minResources is at most what minMember pods can request together."""
    asked_by: dict[str, list[tuple[int, Decimal]]] = {}
    for number, amounts in known:
        for name, amount in amounts.items():
            asked_by.setdefault(name, []).append((number, amount))
    for resource, stated in pairs(entry.spec.get("minResources")):
        asked = parse_quantity(stated)
        if asked is None or not isinstance(resource, str) or resource == "pods":
            continue
        most = _sum_of_largest(member, asked_by.get(resource, []))
        if asked > most:
            yield Finding(
                path=entry.at(join_path("spec.minResources", key_text(resource))),
                seen=f"is {display(stated)}, but the {count_of(member, 'pod')} of minMember "
                f"request at most {render_quantity(most)}, and Volcano places none until "
                "there is room for all requested resources",
                remedy=write(render_quantity(most), f"write {render_quantity(most)}"),
            )


def _sum_of_largest(member: int, amounts: list[tuple[int, Decimal]]) -> Decimal:
    """Return what the `member` pods with the largest requests of a resource request together.

    Args:
        member: The number of pods.
        amounts: Numbers of pods, each with what one of them requests.
    """
    most, left = Decimal(0), member
    for number, amount in sorted(amounts, key=lambda pair: -pair[1]):
        taken = min(number, left)
        most, left = most + taken * amount, left - taken
    return most


def foreign_group_name(cluster: ClusterObjects) -> Iterator[Finding]:
    """Pods name their PodGroup in the annotation that the scheduler reads.

    A Job of Volcano makes its own PodGroup, and writes its name into the annotation of its pods.

    Pass: annotation scheduling.k8s.io/group-name.
    Fail: only the annotation scheduling.volcano.sh/group-name, or a label of either name; the
    annotation in a task of a Job of Volcano, or of a Deployment and not of its template.
    Level: advisory.
    Source: Volcano v1.14 pkg/scheduler/api/job_info.go getJobID;
    pkg/controllers/job/job_controller_util.go createJobPod.
    """
    right, other = naming.POD_GROUP, "scheduling.volcano.sh/group-name"
    for pods in cluster.pods:
        if isinstance(pods.gang, str) and pods.owner.group_kind == JOB:
            path = pods.at(f"metadata.annotations.{right}")
            seen = f"is {display(pods.gang)}, but Volcano writes the name of the Job's own PodGroup"
            yield Finding(path=path, seen=f"{seen} there", remedy=remove(), level=Level.ADVISORY)
        if pods.gang is not None or pods.by_controller:
            continue
        if right in mapping(pods.owner.metadata.get("annotations")) and pods.path:
            at = join_path("metadata.annotations", key_text(right))
            seen = (
                "names a PodGroup, but Volcano reads the annotation of pods, and the template has "
            )
            seen += "none, so its pods get another PodGroup"
            remedy = f"write it into the annotations of {pods.path}"
            yield Finding(path=pods.owner.at(at), seen=seen, remedy=remedy, level=Level.ADVISORY)
            continue
        wrong = "annotation" if other in pods.annotations else ""
        key = other if wrong or other in pods.labels else right
        wrong = wrong or ("label" if key in pods.labels else "")
        if not wrong and (gap := unknown_in(pods.labels.get(right))):
            path = pods.at("metadata.labels")
            yield not_checked(path, gap)
        elif wrong:
            yield Finding(
                path=pods.at(f"metadata.{wrong}s"),
                seen=f"the {wrong} {key} names a PodGroup, but Volcano only reads the annotation "
                f"{right}",
                remedy=f"write the annotation {right}",
                level=Level.ADVISORY,
            )


def policies_of(entry: Object) -> list[Mapping[str, object]]:
    """List the subgroup policies of a PodGroup."""
    return [mapping(item) for item in sequence(entry.spec.get("subGroupPolicy"))]
