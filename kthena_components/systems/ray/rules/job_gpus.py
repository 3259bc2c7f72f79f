"""Checks the GPUs that a RayJob reserves for its entrypoint, against those of its engine."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import (
    mapping,
    require_known,
    sequence,
    whole,
)
from kthena_components.core.values.unknown import Unknown, is_unresolved, total
from kthena_components.systems.ray.command import with_command
from kthena_components.systems.ray.rules.worker_groups_gpus_params import counted_in
from kthena_components.systems.ray.view import ENTRYPOINT, Cluster, RayView

_AT = "spec.entrypointNumGpus"
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
    require_known(_AT, counted)
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
        return Finding(path=_AT, seen=seen, remedy=remove())
    missing = job.reserved + job.ranks - counted
    remedy = f"give the pods {count_of(missing, 'more GPU')} together"
    if counted > job.reserved:
        remedy += f", or start at most {count_of(counted - job.reserved, 'rank')}"
    return Finding(path=_AT, seen=seen, remedy=remedy)


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
    return Finding(path=_AT, seen=seen, remedy=remedy or _spread(job))


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
    require_known(_AT, reserved, ranks, command.executor, command.nnodes)
    if command.nnodes is not None or not isinstance(reserved, int) or not isinstance(ranks, int):
        return None
    containers = sequence(mapping(mapping(started).get("spec")).get("containers"))
    unread = any(is_unresolved(mapping(each).get("env")) for each in containers)
    return _Job(cluster, command, reserved, ranks, unread or _SEES_ALL in pod.stated)
