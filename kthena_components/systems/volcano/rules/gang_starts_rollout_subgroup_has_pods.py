"""Rules of gangs that can start: enough pods at the same time, also in each subgroup."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from kthena_components.core.findings import Finding, count_of, not_checked, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import EACH_POD, JOB, POD_GROUP, VOLCANO, Object, PodSet
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.topology.domains import OPERATORS, holds
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import (
    NOT_YET_KNOWN,
    count,
    first_unknown,
    mapping,
    require_known,
    sequence,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown, known, total
from kthena_components.systems.volcano.rules.gang_pods_task_exists_foreign_groups import (
    DEPLOYMENT,
    STATEFUL_SET,
    member_of,
    policies_of,
)
from kthena_components.systems.volcano.view import Task, tasks_of

_ORDERED, _QUARTER = "OrderedReady", "25%"


def gang_starts(cluster: ClusterObjects) -> Iterator[Finding]:
    """A gang does not wait for pods that are created after others of it are ready.

    A StatefulSet with the podManagementPolicy OrderedReady, the default, creates a pod when the one
    before it is ready, but Volcano places no pod before minMember of them exist. The gang is a
    PodGroup that the pods name, or the PodGroup that Volcano creates for the annotation
    scheduling.volcano.sh/group-min-member of the StatefulSet. A Volcano Job creates the pods of a
    task with dependsOn when the pods of the other tasks are ready, and waits for minAvailable pods,
    by default for all.

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
        least = member_of(pods, STATEFUL_SET)
        if least is not None:
            yield from _starts([pods], least, "its gang (group-min-member)")
    for job in cluster.of(JOB):
        yield from _waits_for_dependent_tasks(job)


def _starts(gang: list[PodSet], member: int, whose: str) -> Iterator[Finding]:
    """Report a gang in a StatefulSet that creates one pod after the other."""
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
            seen=f"is {_ORDERED}, with which each pod is created only after the one before it is "
            f"ready, but {whose} waits for {count_of(member, 'pod')}, and at first {whole - late} "
            f"of {whole} exist, so none of them ever starts",
            remedy=write("Parallel"),
        )


@part_of_rule
def _waits_for_dependent_tasks(job: Object) -> Iterator[Finding]:
    """Report a Job whose minAvailable counts pods of tasks that depend on others."""
    tasks, stated = tasks_of(job), count(job.spec.get("minAvailable"), 0)
    dependent = [task for task in tasks if _waits(task, tasks)]
    if not dependent or job.spec.get("schedulerName") not in (None, "", VOLCANO):
        return
    at = job.at(f"{dependent[0].path}.dependsOn")
    require_known(at, *(_minimum(other) for task in dependent for other in _before(task, tasks)))
    both = (known(total([t.replicas or 0 for t in some]), at) for some in (tasks, dependent))
    all_pods, dependent_pods = both
    required = known(stated or total([_minimum(task) or 0 for task in tasks]), at)
    at_first = all_pods - dependent_pods
    if 0 < at_first < required <= all_pods:
        yield _late(job, at, at_first, required, all_pods)


def _late(job: Object, at: str, at_first: int, required: int, all_pods: int) -> Finding:
    """Write the finding of minAvailable above the pods that exist at first."""
    fewer = write(at_first, f"write minAvailable {at_first}", at=job.at("spec.minAvailable"))
    return Finding(
        path=at,
        seen="lets Volcano create these pods only when those of other tasks are ready, but the Job "
        f"waits for {count_of(required, 'pod')} (minAvailable), and at first {at_first} of "
        f"{all_pods} exist, so none of them ever starts",
        remedy=either(remove(), fewer),
    )


def _waits(task: Task, tasks: Sequence[Task]) -> bool:
    """Return whether a task's pods are created only after the pods of another task."""
    return any(_minimum(other) != 0 for other in _before(task, tasks))


def _before(task: Task, tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that a task depends on."""
    named = sequence(mapping(task.fields.get("dependsOn")).get("name"))
    return [other for other in tasks if other.fields.get("name") in named]


def _minimum(task: Task) -> MaybeInt | None:
    """Return how many pods of a task must be ready before the pods of others are created."""
    stated = count(task.fields.get("minAvailable"))
    return task.replicas if stated is None else stated


def _is_ordered(found: Object) -> bool:
    policy = found.spec.get("podManagementPolicy", _ORDERED)
    return found.group_kind == STATEFUL_SET and policy == _ORDERED


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
        member, owner = member_of(pods, DEPLOYMENT), pods.owner
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
    """Report an update that creates fewer pods at first than their gang waits for."""
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


_MOST_COMPARED = 1_000_000
_TOO_MANY = Unknown("there are too many pods and policies to compare them all")


@dataclass(slots=True)
class _Sub:
    """The pods of one policy, by the values of its keys."""

    groups: dict[tuple[str, ...], list[MaybeInt]] = field(default_factory=dict)
    gap: Unknown | None = None


def subgroup_has_pods(cluster: ClusterObjects) -> Iterator[Finding]:
    """Each subgroup policy finds at least minSubGroups subgroups of subGroupSize pods.

    A pod belongs to the first policy whose labelSelector it matches and whose matchLabelKeys it all
    has; the values of these keys distinguish the subgroups.

    Pass: minSubGroups 1, subGroupSize 2, two pods that share the value of the key.
    Fail: the same with pods of another role, without the key, or with only one pod.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/sub_job_info.go getSubJobMatchValues, job_info.go
    CheckSubJobValid and CheckSubJobReady; run on 1.14.1.
    """
    for (namespace, name), entry in cluster.named(POD_GROUP).items():
        pods = cluster.gangs.get((namespace, name), [])
        if pods:
            yield from _check(cluster, entry, pods)


def _check(cluster: ClusterObjects, entry: Object, pods: list[PodSet]) -> Iterator[Finding]:
    """Compare minSubGroups with the whole subgroups that the pods form."""
    policies = policies_of(entry)
    subs = _gather(policies, pods)
    for i, (policy, sub) in enumerate(zip(policies, subs, strict=True)):
        least, size = count(policy.get("minSubGroups"), 0), count(policy.get("subGroupSize"), 1)
        keyed = any(isinstance(key, str) and key for key in sequence(policy.get("matchLabelKeys")))
        if not isinstance(least, int) or not isinstance(size, int) or least <= 0 or not keyed:
            continue  # subgroup-match-label-keys reports missing keys
        path = entry.at(f"spec.subGroupPolicy[{i}]")
        sizes = [total(counts) for counts in sub.groups.values()]
        whole = sum(1 for number in sizes if isinstance(number, int) and number >= size)
        if whole >= least:
            continue
        gap = next((number for number in sizes if isinstance(number, Unknown)), None)
        if gap := gap or sub.gap or cluster.unsure:
            yield not_checked(path, gap)
            continue
        have = "has" if whole == 1 else "have"
        yield Finding(
            path=path,
            seen=f"waits for {count_of(least, 'subgroup')} of {count_of(size, 'pod')}, but the "
            f"labels of the gang's pods form {count_of(len(sizes), 'subgroup')}, of which {whole} "
            f"{have} enough pods, so none of them ever starts",
            remedy="make labelSelector, matchLabelKeys and subGroupSize fit the pods",
        )


def _gather(policies: list[Mapping[str, Any]], pods: list[PodSet]) -> list[_Sub]:
    """Group pods by the label values of the first policy that selects them, as Volcano does."""
    subs = [_Sub() for _ in policies]
    gap = _TOO_MANY if len(pods) * sum(map(_size, policies)) > _MOST_COMPARED else None
    for item in pods if gap is None else ():
        for policy, sub in zip(policies, subs, strict=True):
            values = _values(policy, item)
            if isinstance(values, Unknown):
                gap = gap or values
                break
            if values is not None:
                if item.count != 0:
                    sub.groups.setdefault(values, []).append(item.count)
                break
    for sub in subs:
        sub.gap = gap
    return subs


def _size(policy: Mapping[str, Any]) -> int:
    """Count the comparisons per pod."""
    selector = mapping(policy.get("labelSelector"))
    expressions = sequence(selector.get("matchExpressions"))
    values = sum(len(sequence(mapping(one).get("values"))) for one in expressions)
    keys = sequence(policy.get("matchLabelKeys"))
    return 1 + len(mapping(selector.get("matchLabels"))) + len(expressions) + values + len(keys)


def _values(policy: Mapping[str, Any], pods: PodSet) -> tuple[str, ...] | Unknown | None:
    """Return the values that identify a pod's subgroup; None if the policy does not apply to it."""
    matches = _matches(policy.get("labelSelector"), pods.labels)
    if matches is False:
        return None
    keys = policy.get("matchLabelKeys")
    if gap := (matches if isinstance(matches, Unknown) else None) or unknown_inside(keys):
        return gap
    found: list[str] = []
    for key in sequence(keys):
        value = pods.labels.get(key) if isinstance(key, str) else None
        if gap := unknown_in(value):
            return gap
        if value is None and isinstance(key, str) and key in EACH_POD:
            return Unknown(f"the label {key} is added when the pod is created")
        if not isinstance(value, str) or not value:
            return None
        found.append(value)
    return tuple(found) or None


def _matches(selector: object, labels: Mapping[str, Any]) -> bool | Unknown:
    """Return whether labels match a selector; a missing selector matches everything."""
    fields = mapping(selector)
    wanted, listed = fields.get("matchLabels"), fields.get("matchExpressions")
    if gap := unknown_in(selector) or unknown_inside(wanted, listed):
        return gap
    found: list[bool | Unknown] = [
        unknown_in(labels.get(key)) or labels.get(key) == value
        for key, value in mapping(wanted).items()
    ]
    found += [_expression(mapping(expression), labels) for expression in sequence(listed)]
    if False in found:
        return False
    return next((value for value in found if isinstance(value, Unknown)), True)


def _expression(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool | Unknown:
    """Evaluate an expression of a label selector; unknown if its values are."""
    key, operator = expression.get("key"), str(expression.get("operator"))
    value = labels.get(key) if isinstance(key, str) else NOT_YET_KNOWN
    if gap := unknown_in(value) or unknown_inside(expression, expression.get("values")):
        return gap
    if operator not in OPERATORS:
        return Unknown("the selector has an operator that is not known here")
    return holds(expression, labels)
