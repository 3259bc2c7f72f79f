"""Checks gangs: how many pods must start together, in PodGroups and Volcano Jobs.

The docstring of each rule is its documentation.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import (
    Finding,
    advise,
    count_of,
    each_of,
    join_path,
    not_checked,
)
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import JOB, MODEL_SERVING, VOLCANO, Object, PodSet
from kthena_components.core.remedies import or_more, write
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.core.values.read import (
    count,
    first_unknown,
    mapping,
    pairs,
    require_known,
    sequence,
    text,
    unknown_inside,
    whole,
)
from kthena_components.core.values.unknown import Unknown, known
from kthena_components.systems.volcano.rules.hypernode_names_topology import (
    TOPOLOGY_RULES,
    volcano_name,
)
from kthena_components.systems.volcano.view import Rule

_POLICIES = "spec.subGroupPolicy"
_TASKS = "spec.minTaskMember"


def _policies(found: Object) -> Iterator[tuple[Mapping[str, Any], str]]:
    for i, policy in enumerate(sequence(found.spec.get("subGroupPolicy"))):
        yield mapping(policy), f"{_POLICIES}[{i}]"


@each_of(_policies)
def subgroup_match_label_keys(policy: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """A subgroup policy has matchLabelKeys; without them it matches no pod at all.

    A labelSelector alone is not enough: the values of these labels distinguish subgroups.

    Pass: matchLabelKeys modelserving.volcano.sh/role-id.
    Fail: a labelSelector without matchLabelKeys.
    Level: mandatory if minSubGroups is above 0, because the group then waits forever; else
    advisory, because the policy has no effect.
    Source: Volcano v1.14 pkg/scheduler/api/job_info.go getOrCreateSubJob and sub_job_info.go
    getSubJobMatchValues; run on 1.14.1: never placed.
    """
    keys, least = policy.get("matchLabelKeys"), count(policy.get("minSubGroups"), 0)
    require_known(f"{path}.matchLabelKeys", unknown_inside(keys))
    if not any(isinstance(key, str) and key for key in sequence(keys)):
        seen = "has no matchLabelKeys, so Volcano assigns no pod to this subgroup"
        remedy = "add the label that distinguishes the pods of different subgroups"
        if isinstance(least, int) and least > 0:
            seen += f", and with minSubGroups {least} the gang waits forever"
            yield Finding(path=path, seen=seen, remedy=remedy)
        else:
            yield advise(path, seen, remedy)


def subgroup_names_unique(found: Object) -> Iterator[Finding]:
    """Each subgroup policy has a unique name; policies with the same name share one minimum.

    Pass: prefill and decode.
    Fail: two policies named server, or two without a name.
    Level: mandatory. Volcano only keeps the later of the two minima.
    Source: Volcano v1.14 pkg/scheduler/api/sub_job_info.go getSubJobGID and job_info.go MinSubJobs.
    """
    first: dict[str, int] = {}
    for i, item in enumerate(sequence(found.spec.get("subGroupPolicy"))):
        name, path = text(mapping(item).get("name"), ""), f"{_POLICIES}[{i}].name"
        if isinstance(name, Unknown):
            yield not_checked(path, name)
        elif name is not None and first.setdefault(name, i) != i:
            seen = (
                f"is {display(name)}, like subGroupPolicy[{first[name]}]"
                if name
                else (f"is missing, as in subGroupPolicy[{first[name]}]")
            )
            yield Finding(
                path=path,
                seen=f"{seen}, and Volcano keeps one minimum for both: the later one",
                remedy="give each policy a unique name",
            )


def subgroup_minimum(found: Object) -> Iterator[Finding]:
    """The minMember of a gang is at least the pods of the subgroups that must be complete.

    Volcano waits for both, so the gang does not start with a smaller minMember. A larger one is
    correct if pods outside the subgroups must start, too.

    Pass: minMember 4, minSubGroups 2 of subGroupSize 2.
    Fail: minMember 3, minSubGroups 2 of subGroupSize 2.
    Level: advisory.
    Source: Volcano v1.14 pkg/scheduler/plugins/gang/gang.go (CheckSubJobReady and MinAvailable).
    """
    total, path = 0, "spec.minMember"
    for policy, _ in _policies(found):
        size = known(count(policy.get("subGroupSize"), 1), path)
        least = known(count(policy.get("minSubGroups"), 0), path)
        total += max(size or 0, 0) * max(least or 0, 0)
    member = known(count(found.spec.get("minMember"), 0), path) if total else None
    if member is not None and 0 <= member < total:
        yield advise(
            path,
            f"is {member}, but the subgroups that must be complete have {count_of(total, 'pod')}, "
            "and Volcano waits for both",
            write(total, f"write minMember {total}"),
        )


def gang_minimum_stated(found: Object) -> Iterator[Finding]:
    """A PodGroup states how many pods start together; with minMember 0 each pod starts alone.

    Pass: minMember 2; minMember 0 with a subgroup whose minSubGroups is above 0.
    Fail: neither minMember nor subgroups.
    Level: advisory.
    Source: Volcano v1.14 config/crd/volcano/bases, scheduling.volcano.sh_podgroups.yaml.
    """
    spec = found.spec
    if first_unknown(found.body.get("spec"), spec.get("subGroupPolicy")):
        return
    minima = (mapping(p).get("minSubGroups") for p in sequence(spec.get("subGroupPolicy")))
    if count(spec.get("minMember"), 0) == 0 and all(count(m, 0) == 0 for m in minima):
        yield advise(
            "spec.minMember",
            "is 0, so nothing starts together: each pod starts as soon as it fits",
            "write the number of pods that must start together",
        )


def task_minimum(found: Object) -> Iterator[Finding]:
    """The minima of the tasks add up to at most minMember; otherwise Volcano ignores all of them.

    Each key is the name of a task, which is the value of the annotation volcano.sh/task-spec.

    Pass: minMember 3, minTaskMember leader 1 and worker 2.
    Fail: minMember 2, minTaskMember leader 1 and worker 2.
    Level: mandatory.
    Source: Volcano v1.14 pkg/scheduler/api/job_info.go CheckTaskValid.
    """
    spec = found.spec
    member, minima = count(spec.get("minMember"), 0), spec.get("minTaskMember")
    require_known(_TASKS, unknown_inside(minima))
    total = 0
    for task, stated in pairs(minima):
        least = whole(stated)
        if not isinstance(task, str) or not task:
            seen = f"{display(task)} is not the name of a task"
            yield Finding(path=_TASKS, seen=seen, remedy="name a task")
        elif isinstance(least, int) and least < 0:
            path = join_path(_TASKS, key_text(task))
            seen = f"is {display(least)}, but must be at least 0"
            yield Finding(path=path, seen=seen, remedy=or_more(0))
        total += least if isinstance(least, int) else 0
    require_known(_TASKS, member if total else None)
    if isinstance(member, int) and member < total:
        yield Finding(
            path=_TASKS,
            seen=f"the minima add up to {display(total)}, but minMember is {member}, and "
            "Volcano then ignores all of them",
            remedy=f"write minMember {display(total)}, or lower minima",
        )


def min_resources_within_minimum(found: Object) -> Iterator[Finding]:
    """The minResources of a gang are at most what minMember pods need.

    Volcano looks for a HyperNode with that much room before it places any pod. One object only
    shows the number of pods; the whole stack also shows their requests.

    Pass: minMember 2, minResources pods 2.
    Fail: minMember 2, minResources pods 3.
    Level: mandatory if it cannot be a valid minimum of pods.
    Source: Volcano v1.14 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go
    hyperNodeGradientFn with JobInfo.GetMinResources; run on 1.14.1: none placed.
    """
    spec = found.spec
    member, amounts = count(spec.get("minMember"), 0), mapping(spec.get("minResources"))
    asked, path = amounts.get("pods"), "spec.minResources.pods"
    require_known(path, first_unknown(asked, member) if asked is not None else None)
    pods = parse_quantity(asked)
    if pods is not None and isinstance(member, int) and pods > member > 0:
        yield Finding(
            path=path,
            seen=f"is {display(asked)}, but the gang starts with {count_of(member, 'pod')} "
            "(minMember), and Volcano places none until there is room for all requested resources",
            remedy=write(member, f"write {member}"),
        )


POD_GROUP_RULES: tuple[Rule, ...] = (
    volcano_name,
    subgroup_match_label_keys,
    subgroup_names_unique,
    subgroup_minimum,
    gang_minimum_stated,
    task_minimum,
    min_resources_within_minimum,
    *TOPOLOGY_RULES,
)


_SCHEDULERS = ("default-scheduler", "kai-scheduler", "koord-scheduler", VOLCANO, "yunikorn")
_OTHER_NAMES = {"volcano-scheduler": VOLCANO, "vc-scheduler": VOLCANO, "kai": "kai-scheduler"}
"""Names of Deployments and programs of schedulers, by which pods do not find them."""
_DEFAULT = (None, "", "default-scheduler")
_PLAIN = frozenset({"", "apps", "batch"})
"""API groups of the kinds whose controllers leave schedulerName as it is."""


def _scheduled(cluster: ClusterObjects) -> Iterator[tuple[str, Any, PodSet | None]]:
    """Return each schedulerName with its path, and the pods that have it."""
    for found in (*cluster.of(JOB), *cluster.of(MODEL_SERVING)):
        yield found.at("spec.schedulerName"), found.spec.get("schedulerName"), None
    for pods in cluster.pods:
        if pods.count != 0:
            yield pods.at("spec.schedulerName"), pods.spec.get("schedulerName"), pods


@each_of(_scheduled)
def gang_scheduler(path: str, name: Any, pods: PodSet | None) -> Iterator[Finding]:
    """Pods name the scheduler that reads their gang, and its name is not misspelled.

    No scheduler takes pods of another name, so they stay Pending. Volcano takes those that name it:
    for others, its annotations group-name, queue-name and group-min-member have no effect. Compared
    are the names volcano, kai-scheduler, koord-scheduler, yunikorn and default-scheduler.

    Pass: schedulerName volcano, and the annotation scheduling.k8s.io/group-name.
    Fail: schedulerName vulcano or volcano-scheduler; the annotation and no schedulerName.
    Level: advisory, because a cluster may start its schedulers under other names.
    Source: Volcano v1.14 cmd/scheduler/app/options/options.go (defaultSchedulerName);
    pkg/controllers/podgroup/pg_controller.go (schedulerNames); Kubernetes documentation, Configure
    Multiple Schedulers; the documentation of KAI Scheduler, Koordinator and Apache YuniKorn.
    """
    require_known(path, name)
    if name and isinstance(name, str) and name not in _SCHEDULERS:
        meant = _OTHER_NAMES.get(name.lower()) or naming.name_slip_of(name.lower(), _SCHEDULERS)
        meant = name.lower() if name.lower() in _SCHEDULERS else meant
        if meant is not None:
            seen = f"is {display(name)}, but the name of the scheduler is {display(meant)}"
            yield advise(path, f"{seen}, so the pods stay Pending", write(meant))
    elif pods is not None and name in _DEFAULT and pods.owner.group in _PLAIN:
        stated = _gang_annotation(pods)
        if stated:
            seen = f"is {display(name)}" if name else "is missing"
            seen += f", but the pods have {stated}, which only Volcano reads"
            yield advise(path, f"{seen}: they start one by one", write(VOLCANO))


def _gang_annotation(pods: PodSet) -> str:
    """Return an annotation of Volcano that says how pods start together; empty if none."""
    for key in (naming.POD_GROUP, naming.QUEUE_NAME, naming.GANG_MINIMUM):
        for annotations in (pods.annotations, mapping(pods.owner.metadata.get("annotations"))):
            if isinstance(annotations.get(key), str):
                return key
    return ""
