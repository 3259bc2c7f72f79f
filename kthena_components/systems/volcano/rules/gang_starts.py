"""The rules gang-starts and gang-rollout: enough pods of a gang exist at the same time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.findings import Finding, count_of, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import JOB, POD_GROUP, VOLCANO, Object, PodSet
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import (
    count,
    digits,
    first_unknown,
    mapping,
    require_known,
    sequence,
)
from kthena_components.core.values.unknown import MaybeInt, known, total
from kthena_components.systems.volcano.view import Task, tasks_of

_LEAST = "scheduling.volcano.sh/group-min-member"
_DEPLOYMENT, _SET = ("apps", "Deployment"), ("apps", "StatefulSet")
_ORDERED, _QUARTER = "OrderedReady", "25%"


def gang_starts(cluster: ClusterObjects) -> Iterator[Finding]:
    """A gang does not wait for pods that are created after others of it are ready.

    A StatefulSet with the podManagementPolicy OrderedReady, the default, creates a pod when the one
    before it is ready, but Volcano places no pod before minMember of them exist. The gang is a
    PodGroup that the pods name, or the one that Volcano creates for the annotation
    scheduling.volcano.sh/group-min-member of the StatefulSet. A Volcano Job creates the pods of a
    task with dependsOn when those of the other tasks are ready, and waits for minAvailable pods, by
    default for all.

    Pass: minMember 2, a StatefulSet of 2 replicas with podManagementPolicy Parallel.
    Fail: minMember 2, a StatefulSet of 2 replicas without podManagementPolicy; a Job of a leader
    and a worker that depends on it, with minAvailable 2.
    Level: mandatory.
    Source: kubernetes pkg/controller/statefulset/stateful_set_control.go; Volcano v1.14
    pkg/scheduler/plugins/gang/gang.go validJobFn; pkg/controllers/podgroup;
    pkg/controllers/job/job_controller_actions.go isDependsOnPodsReady;
    pkg/webhooks/admission/jobs/mutate/mutate_job.go. Run on 1.14.1: such a Job stays Pending.
    """
    for (namespace, name), entry in cluster.named(POD_GROUP).items():
        member = count(entry.spec.get("minMember"), 0)
        gang = cluster.gangs.get((namespace, name), [])
        if isinstance(member, int) and member > 0:
            yield from _starts(gang, member, f"the PodGroup {display(name)}")
    for pods in cluster.pods:
        least = _member_of(pods, _SET)
        if least is not None:
            yield from _starts([pods], least, "its gang (group-min-member)")
    for job in cluster.of(JOB):
        yield from _tasks_start(job)


def _starts(gang: list[PodSet], member: int, whose: str) -> Iterator[Finding]:
    ordered = [pods for pods in gang if pods.count != 1 and _is_ordered(pods.owner)]
    counts = [pods.count for pods in gang]
    if not ordered or first_unknown(*counts):
        return
    whole = sum(number for number in counts if isinstance(number, int))
    late = sum(max(pods.count - 1, 0) for pods in ordered if isinstance(pods.count, int))
    if whole - late < member <= whole:
        found = ordered[0].owner
        yield Finding(
            path=found.at("spec.podManagementPolicy"),
            seen=f"is {_ORDERED}, by which each pod is created when the one before it is ready, "
            f"but {whose} waits for {count_of(member, 'pod')}, and at first {whole - late} of "
            f"{whole} exist, so none of them ever starts",
            remedy=write("Parallel"),
        )


@part_of_rule
def _tasks_start(job: Object) -> Iterator[Finding]:
    tasks, stated = tasks_of(job), count(job.spec.get("minAvailable"), 0)
    late = [task for task in tasks if _waits(task, tasks)]
    if not late or job.spec.get("schedulerName") not in (None, "", VOLCANO):
        return
    at = job.at(f"{late[0].path}.dependsOn")
    require_known(at, *(_minimum(other) for task in late for other in _before(task, tasks)))
    whole, later = (known(total([t.replicas or 0 for t in some]), at) for some in (tasks, late))
    least = known(stated or total([_minimum(task) or 0 for task in tasks]), at)
    if 0 < whole - later < least <= whole:
        yield _late(job, at, whole - later, least, whole)


def _late(job: Object, at: str, first: int, least: int, whole: int) -> Finding:
    fewer = write(first, f"write minAvailable {first}", at=job.at("spec.minAvailable"))
    return Finding(
        path=at,
        seen="lets Volcano create these pods when those of other tasks are ready, but the Job "
        f"waits for {count_of(least, 'pod')} (minAvailable), and at first {first} of {whole} "
        "exist, so none of them ever starts",
        remedy=either(remove(), fewer),
    )


def _waits(task: Task, tasks: Sequence[Task]) -> bool:
    """Return whether the pods of a task are created after those of another one."""
    return any(_minimum(other) != 0 for other in _before(task, tasks))


def _before(task: Task, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that a task depends on."""
    named = sequence(mapping(task.fields.get("dependsOn")).get("name"))
    return [other for other in tasks if other.fields.get("name") in named]


def _minimum(task: Task) -> MaybeInt | None:
    """Return how many pods of a task must be ready before those of others are created."""
    stated = count(task.fields.get("minAvailable"))
    return task.replicas if stated is None else stated


def _is_ordered(found: Object) -> bool:
    policy = found.spec.get("podManagementPolicy", _ORDERED)
    return found.group_kind == _SET and policy == _ORDERED


def _member_of(pods: PodSet, kind: tuple[str, str]) -> int | None:
    """Return the minimum that an object's annotation gives to the PodGroup of its pods."""
    owner = pods.owner
    stated = mapping(owner.metadata.get("annotations")).get(_LEAST)
    if owner.group_kind != kind or pods.gang or pods.spec.get("schedulerName") != VOLCANO:
        return None
    return digits(stated)


def gang_rollout(cluster: ClusterObjects) -> Iterator[Finding]:
    """An update of a Deployment creates at least as many new pods as their gang waits for.

    Volcano creates a PodGroup for each ReplicaSet, with the minimum of the annotation
    scheduling.volcano.sh/group-min-member. At first an update creates maxSurge + maxUnavailable
    pods of the new ReplicaSet, and the next ones when some of these are ready.

    Pass: group-min-member 2 with maxSurge 100%, or with the strategy Recreate.
    Fail: group-min-member 2, 2 replicas, and the default of maxSurge 25%, which is 1 pod.
    Level: mandatory, because the update never ends.
    Source: Volcano v1.14 pkg/controllers/podgroup/pg_controller_handler.go buildPodGroupFromPod;
    kubernetes pkg/controller/deployment/util ResolveFenceposts and NewRSNewReplicas.
    """
    for pods in cluster.pods:
        member, owner = _member_of(pods, _DEPLOYMENT), pods.owner
        strategy = mapping(owner.spec.get("strategy"))
        if member is None or strategy.get("type") == "Recreate":
            continue
        rolling = mapping(strategy.get("rollingUpdate"))
        at = owner.at("spec.strategy.rollingUpdate.maxSurge")
        stated = [rolling.get(key, _QUARTER) for key in ("maxSurge", "maxUnavailable")]
        yield from _rollout(owner, at, member, pods.count, stated)


@part_of_rule
def _rollout(
    owner: Object, at: str, member: int, pods: MaybeInt, stated: list[Any]
) -> Iterator[Finding]:
    replicas = known(pods, at)
    require_known(at, *stated)
    if not all(map(is_budget, stated)):
        return
    surge, down = scaled(stated[0], replicas, up=True), scaled(stated[1], replicas, up=False)
    new = (surge or 0) + (down or 0) or 1
    if not new < member <= replicas:
        return
    recreated: Mapping[str, str] = {"type": "Recreate"}
    remedy = either(
        write("100%", "write maxSurge: 100%"),
        write(recreated, "the strategy Recreate", at=owner.at("spec.strategy")),
    )
    yield Finding(
        path=at,
        seen=f"is {display(stated[0])}, so an update of the "
        f"{count_of(replicas, 'replica')} creates "
        f"{count_of(new, 'pod')} at first, but the gang of the new ReplicaSet waits for {member} "
        "(group-min-member), and the update never ends",
        remedy=remedy,
    )
