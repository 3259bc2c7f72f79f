"""Checks the GPUs that a RayJob reserves for its entrypoint, against those of its engine."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.remedies import remove
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, require_known, sequence, whole
from kthena_components.core.values.unknown import is_unresolved, total
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
    reserved GPUs alone. Without the field it sees all GPUs of the head.

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
    lacks = isinstance(counted, int) and job.reserved + job.ranks > counted
    if job.command.executor == "ray" and lacks:
        seen = (
            f"reserves {count_of(job.reserved, 'GPU')} for the entrypoint, and its engine needs "
            f"{job.ranks} others, but Ray counts {counted} in all pods: the engine waits until it "
            "gives up"
        )
        yield Finding(path=_AT, seen=seen, remedy=remove())
    elif job.command.executor == "mp" and job.reserved < job.ranks and not job.sees_all:
        seen = (
            f"is {job.reserved}, so the entrypoint sees {count_of(job.reserved, 'GPU')}, but its "
            f"engine starts {count_of(job.ranks, 'rank')} there"
        )
        yield Finding(path=_AT, seen=seen, remedy=remove())


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
