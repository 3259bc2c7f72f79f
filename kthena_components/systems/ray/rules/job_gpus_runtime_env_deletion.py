"""Checks RayJobs: their GPUs, their runtime environment, and when they delete their cluster."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import Finding, count_of, not_checked, refuse
from kthena_components.core.remedies import either, or_more, remove, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import (
    first_unknown,
    mapping,
    require_known,
    sequence,
    text,
    unknown_inside,
    unknown_within,
    whole,
)
from kthena_components.core.values.unknown import Unknown, is_unresolved, known, total
from kthena_components.core.values.values_in_text import read_yaml_text
from kthena_components.systems.ray.facts import CLUSTER_LABEL
from kthena_components.systems.ray.rules.worker_groups_gpus_params_head import counted_in
from kthena_components.systems.ray.view import ENTRYPOINT, Cluster, RayView, with_command

# Checks the GPUs that a RayJob reserves for its entrypoint, against those of its engine.


_GPUS_AT = "spec.entrypointNumGpus"
_SEES_ALL = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True, slots=True)
class _Job:
    """What a RayJob runs, and what it reserves for that."""

    cluster: Cluster
    command: CommandFacts
    reserved: int
    ranks: int
    sees_all: bool
    """Whether a variable may keep Ray from hiding the other GPUs."""


def ray_job_gpus(view: RayView) -> Iterator[Finding]:
    """The GPUs that a RayJob reserves for its entrypoint leave enough for its engine.

    Ray gives entrypointNumGpus GPUs to the process of the entrypoint. vLLM's executor ray reserves
    others, one for each rank, so the cluster needs both. Without executor ray, the engine sees the
    reserved GPUs alone. Without the field it runs in the head, and sees all GPUs there.

    Pass: vllm serve -tp 8 --distributed-executor-backend ray on 16 GPUs, without entrypointNumGpus.
    Fail: the same with tensor 16 and entrypointNumGpus 1 on 16 GPUs; entrypointNumGpus 1 for
    vllm serve -tp 8 --distributed-executor-backend mp.
    Level: mandatory. The job waits until vLLM gives up, or the engine does not start.
    Source: ray python/ray/dashboard/modules/job/job_manager.py (_get_supervisor_runtime_env);
    vllm/v1/executor/ray_utils.py initialize_ray_cluster, _wait_until_pg_ready.
    """
    job = _job(view)
    if job is None:
        return
    counted = total(map(counted_in, job.cluster.groups))
    require_known(_GPUS_AT, counted)
    if job.command.executor == "ray" and isinstance(counted, int):
        if job.reserved + job.ranks > counted:
            yield _too_few(job, counted)
    elif job.command.executor == "mp" and job.reserved < job.ranks and not job.sees_all:
        yield _in_one_pod(job)


def _too_few(job: _Job, counted: int) -> Finding:
    """Report an engine over Ray that waits for GPUs that the cluster does not have."""
    seen = (
        f"reserves {count_of(job.reserved, 'GPU')} for the entrypoint, and its engine needs "
        f"{job.ranks} others, but Ray counts {counted} in all pods: the engine waits until it "
        "gives up"
    )
    # In a pod without GPUs, vLLM finds none for its first rank.
    if counted >= job.ranks and counted_in(job.cluster.head) != 0:
        return Finding(path=_GPUS_AT, seen=seen, remedy=remove())
    missing = job.reserved + job.ranks - counted
    remedy = f"add {count_of(missing, 'GPU')} to the pods in total"
    if counted > job.reserved:
        remedy += f", or start at most {count_of(counted - job.reserved, 'rank')}"
    return Finding(path=_GPUS_AT, seen=seen, remedy=remedy)


def _in_one_pod(job: _Job) -> Finding:
    """Report an engine of one pod that sees fewer GPUs than it has ranks."""
    seen = (
        f"is {job.reserved}, so the entrypoint sees {count_of(job.reserved, 'GPU')}, but its "
        f"engine starts {count_of(job.ranks, 'rank')} there"
    )
    # Ray looks for a pod with the reserved GPUs; without the field, it takes the head.
    sizes = [group.ray_gpus for group in job.cluster.groups]
    reserved = any(isinstance(size, int) and size >= job.ranks for size in sizes)
    head = job.cluster.head.ray_gpus
    without = isinstance(head, Unknown) or head >= job.ranks
    remedy = either(write(job.ranks) if reserved else "", remove() if without else "")
    return Finding(path=_GPUS_AT, seen=seen, remedy=remedy or _spread(job))


def _spread(job: _Job) -> str:
    return f"give a pod {count_of(job.ranks, 'GPU')}, or use the executor ray"


def _job(view: RayView) -> _Job | None:
    """Return what is compared; None if the object runs no vLLM with reserved GPUs."""
    spec, cluster = view.object.spec, view.cluster
    entrypoint, reserved = spec.get(ENTRYPOINT), whole(spec.get("entrypointNumGpus"))
    if view.object.kind != "RayJob" or cluster is None or not isinstance(entrypoint, str):
        return None
    started = with_command(cluster.head.template, ["sh", "-c", entrypoint])
    pod = read_pod(started, "", context=view.object.context)
    command = pod.command
    if command is None or command.engine != "vllm" or command.data != 1 or reserved == 0:
        return None
    ranks = command.per_rank_world
    require_known(_GPUS_AT, reserved, ranks, command.executor, command.nnodes)
    if command.nnodes is not None or not isinstance(reserved, int) or not isinstance(ranks, int):
        return None
    containers = sequence(mapping(mapping(started).get("spec")).get("containers"))
    unread = any(is_unresolved(mapping(each).get("env")) for each in containers)
    return _Job(cluster, command, reserved, ranks, unread or _SEES_ALL in pod.stated)


# KubeRay's rules about a RayJob and the deletion after it. A rule's docstring documents it.


_READ = (
    "backoffLimit",
    "clusterSelector",
    "shutdownAfterJobFinishes",
    "submissionMode",
    "submitterConfig",
    "suspend",
    "ttlSecondsAfterFinished",
)


def ray_job(view: RayView) -> Iterator[Finding]:
    """A RayJob describes or selects a cluster, and its other fields fit to that.

    With a selected cluster, it has no suspend, no backoffLimit above 0 and no SidecarMode. suspend
    and ttlSecondsAfterFinished need shutdownAfterJobFinishes.

    Pass: rayClusterSpec, shutdownAfterJobFinishes true, ttlSecondsAfterFinished 60.
    Fail: neither rayClusterSpec nor clusterSelector; suspend without shutdownAfterJobFinishes.
    Level: mandatory. KubeRay starts nothing for it.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayJobSpec, validateDeletionConfiguration.
    """
    spec = view.object.spec
    require_known("spec", unknown_inside(*(spec.get(name) for name in _READ)))
    selected, shut = mapping(spec.get("clusterSelector")), spec.get("shutdownAfterJobFinishes")
    wait, tries = whole(spec.get("ttlSecondsAfterFinished")), whole(spec.get("backoffLimit"))
    if spec.get("rayClusterSpec") is None and not selected:
        seen = "has neither rayClusterSpec nor clusterSelector"
        remedy = "write rayClusterSpec, or clusterSelector for an existing cluster"
        yield refuse("spec", seen, remedy)
    if shut is not True and spec.get("suspend") is True:
        yield _not_shut("suspend", "is true", "a suspended job", selected)
    if shut is not True and isinstance(wait, int) and wait > 0 and view.has_since("1.4"):
        yield _not_shut("ttlSecondsAfterFinished", f"is {wait}", "this", selected)
    if isinstance(tries, int) and tries < 0:
        yield refuse("spec.backoffLimit", f"is {tries}, but must be at least 0", or_more(0))
    if selected:
        yield from _selected(view, spec, selected)
    yield from _submitted(view, spec, tries if isinstance(tries, int) else 0)


def _not_shut(name: str, what: str, whose: str, selected: object) -> Finding:
    """Report a field of jobs that end their cluster. A selected cluster is kept."""
    seen = f"{what}, but {whose} needs shutdownAfterJobFinishes true"
    shut = "spec.shutdownAfterJobFinishes"
    to_shut = write(True, "set shutdownAfterJobFinishes: true", at=shut)
    remedy = remove() if selected else either(to_shut, remove())
    return refuse(f"spec.{name}", seen, remedy)


def _selected(
    view: RayView, spec: Mapping[str, Any], selected: Mapping[str, Any]
) -> Iterator[Finding]:
    """Check a job on a selected cluster, with which several fields have no effect."""
    path = "spec.clusterSelector"
    if spec.get("suspend") is True:
        yield refuse("spec.suspend", "is true, but clusterSelector is given", remove())
    if selected.get(CLUSTER_LABEL) in (None, ""):
        yield refuse(path, f"has no {CLUSTER_LABEL}", "write the name of the cluster there")
    if spec.get("submissionMode") == "SidecarMode":
        remedy = write("K8sJobMode", "write K8sJobMode")
        seen = "is SidecarMode, but clusterSelector is given"
        yield refuse("spec.submissionMode", seen, remedy)
    tries = whole(spec.get("backoffLimit"))
    if isinstance(tries, int) and tries > 0 and view.has_since("1.6"):
        seen = f"is {tries}, but a job on a selected cluster is tried once"
        yield refuse("spec.backoffLimit", seen, remove())


def _submitted(view: RayView, spec: Mapping[str, Any], tries: int) -> Iterator[Finding]:
    """Check how a job is submitted: its tries, its submitter, and the head's restarts."""
    mode = spec.get("submissionMode")
    if mode == "InteractiveMode" and tries > 0 and view.has_since("1.4"):
        seen = f"is {tries}, but an interactive job is tried once"
        yield refuse("spec.backoffLimit", seen, remove())
    if mode != "SidecarMode":
        return
    for name in ("submitterPodTemplate", "submitterConfig"):
        if spec.get(name) is not None:
            seen = "is given, but with SidecarMode no separate pod submits the job"
            yield refuse(
                f"spec.{name}",
                seen,
                either(remove(), write("K8sJobMode", "write K8sJobMode", at="spec.submissionMode")),
            )
    policy = view.head.pod_spec.get("restartPolicy")
    if policy not in (None, "", "Never") and not first_unknown(policy):
        seen = f"is {display(policy)}, but with SidecarMode the head is not restarted"
        path = f"{view.head.path}.template.spec.restartPolicy"
        yield refuse(path, seen, either(write("Never", "write Never"), remove("leave it out")))


def ray_runtime_env(view: RayView) -> Iterator[Finding]:
    """The runtime environment of a RayJob is a YAML map.

    Pass: runtimeEnvYAML "pip: [vllm]".
    Fail: runtimeEnvYAML "vllm".
    Level: mandatory. KubeRay does not submit the job.
    Source: ray-project/kuberay v1.7.0 ray-operator/controllers/ray/utils/validation.go
    ValidateRayJobSpec; dashboardclient UnmarshalRuntimeEnvYAML.
    """
    stated, path = view.object.spec.get("runtimeEnvYAML"), "spec.runtimeEnvYAML"
    read = read_yaml_text(stated, "runtimeEnvYAML")
    read = known(read, path)
    if isinstance(text(stated), str) and not isinstance(read, dict | None):
        seen = f"is {display(stated)}, which is not a YAML map"
        yield refuse(path, seen, "write, for example, 'pip: [vllm]'")


_DELETION_AT = "spec.deletionStrategy"
_OLD = ("onSuccess", "onFailure")
_STATES = ("jobStatus", "jobDeploymentStatus")
_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")
"""The order of deletion."""


def ray_deletion(view: RayView) -> Iterator[Finding]:
    """A deletionStrategy has rules, or onSuccess and onFailure, that do not contradict each other.

    Each rule has one state of the job and one policy, and each such pair occurs once. Workers are
    deleted no later than their cluster, and the cluster no later than the job. KubeRay keeps a
    selected cluster, and the workers of a cluster with an autoscaler. shutdownAfterJobFinishes
    excludes rules and DeleteNone.

    Pass: deletionRules DeleteWorkers after 60 s and DeleteCluster after 600 s of SUCCEEDED.
    Fail: onSuccess alone; a rule with jobStatus and jobDeploymentStatus; DeleteCluster after 10 s
    and DeleteWorkers after 20 s of the same state.
    Level: mandatory. The CRD of KubeRay or KubeRay rejects it, since 1.5.
    Source: ray-project/kuberay v1.7.0 ray-operator/config/crd/bases/ray.io_rayjobs.yaml;
    controllers/ray/utils/validation.go validateDeletionConfiguration, validateDeletionRules,
    validateTTLConsistency, validateLegacyDeletionPolicies.
    """
    spec, stated = view.object.spec, view.object.spec.get("deletionStrategy")
    if stated is None or not view.has_since("1.5"):
        return
    shut, scaled = spec.get("shutdownAfterJobFinishes"), view.fields.get("enableInTreeAutoscaling")
    selector = spec.get("clusterSelector")
    require_known(_DELETION_AT, unknown_inside(stated), shut, scaled, selector)
    strategy = mapping(stated)
    rules, at = strategy.get("deletionRules"), f"{_DELETION_AT}.deletionRules"
    old = [name for name in _OLD if strategy.get(name) is not None]
    yield from _beside(rules, old, shut)
    is_selected = bool(mapping(selector))
    for name in old:
        path, policy = f"{_DELETION_AT}.{name}.policy", mapping(strategy[name]).get("policy")
        yield from _check_policy(policy, path, shut)
        yield from _possible(policy, path, is_selected=is_selected, scaled=scaled)
    read: dict[tuple[str, str], dict[str, int]] = {}
    for index, rule in enumerate(map(mapping, sequence(rules))):
        path = f"{at}[{index}]"
        policy = rule.get("policy")
        if gap := unknown_within(sequence(rules)[index]):
            yield not_checked(path, gap)
            continue
        yield from _possible(policy, f"{path}.policy", is_selected=is_selected, scaled=scaled)
        yield from _one_rule(rule, path, read)
    yield from _in_order(at, read)


def _beside(rules: object, old: Sequence[str], shut: object) -> Iterator[Finding]:
    """Check that deletion rules do not stand with the older fields or with a shutdown."""
    at = f"{_DELETION_AT}.deletionRules"
    if not rules and len(old) < len(_OLD):
        seen = "has neither deletionRules, nor both onSuccess and onFailure"
        yield refuse(_DELETION_AT, seen, "write deletionRules")
    if rules is not None and old:
        yield refuse(at, f"are given beside {old[0]}", "remove one of them")
    if rules and shut is True:
        remedy = "remove the latter, and add a rule for DeleteCluster"
        yield refuse(at, "are given beside shutdownAfterJobFinishes", remedy)


def _check_policy(policy: object, path: str, shut: object) -> Iterator[Finding]:
    if policy is None:
        yield refuse(path, "is missing", "write, for example, DeleteCluster")
    elif policy == "DeleteNone" and shut is True:
        seen = "is DeleteNone, but shutdownAfterJobFinishes is true"
        yield refuse(path, seen, "remove one of the two")


def _possible(policy: object, path: str, *, is_selected: bool, scaled: object) -> Iterator[Finding]:
    if is_selected and policy in ("DeleteCluster", "DeleteWorkers"):
        seen = f"is {policy}, but clusterSelector is given, and that cluster is kept"
        yield refuse(path, seen, "write DeleteSelf or DeleteNone")
    elif policy == "DeleteWorkers" and scaled is True:
        seen = "is DeleteWorkers, but the cluster scales by itself"
        yield refuse(path, seen, "write DeleteCluster, or remove enableInTreeAutoscaling")


def _one_rule(
    rule: Mapping[str, Any], path: str, read: dict[tuple[str, str], dict[str, int]]
) -> Iterator[Finding]:
    """Check one deletion rule: one state, and no policy twice for it.

    Adds its policy and its seconds to `read`, by state.
    """
    condition, policy = mapping(rule.get("condition")), str(rule.get("policy"))
    named = [name for name in _STATES if condition.get(name) is not None]
    if len(named) != 1:
        both = "both jobStatus and" if named else "neither jobStatus nor"
        seen = f"names {both} jobDeploymentStatus"
        yield refuse(f"{path}.condition", seen, "name one of them")
        return
    known = read.setdefault((named[0], str(condition[named[0]])), {})
    if policy in known:
        seen = f"is {policy} for {named[0]} {condition[named[0]]}, as another rule is"
        yield refuse(path, seen, "remove one of them")
    seconds = whole(condition.get("ttlSeconds"))
    known.setdefault(policy, seconds if isinstance(seconds, int) else 0)


def _in_order(at: str, read: Mapping[tuple[str, str], Mapping[str, int]]) -> Iterator[Finding]:
    for (kind, state), seconds in read.items():
        for first, then in pairwise(policy for policy in _ORDER if policy in seconds):
            if seconds[then] < seconds[first]:
                seen = f"do {then} {seconds[then]} s and {first} {seconds[first]} s after {kind} "
                seen += f"{state}, but {first} must come first"
                remedy = f"write ttlSeconds {seconds[first]} or more for {then}"
                yield refuse(at, seen, remedy)
