"""Checks that something connects the pods of an engine that needs the GPUs of several."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Finding, count_of
from kthena_components.core.rules.support.messages import cannot_check, title
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import MaybeInt, Unknown, may_be

_REMEDIES = {
    "sglang": "add --nnodes {pods} with --node-rank and --dist-init-addr to all pods",
    "trtllm": "start it by mpirun and trtllm-llmapi-launch with {ranks} processes",
    "vllm": "run `ray start --address=HEAD:6379 --block` in the other pods",
}


_HEAD = "run `ray start --head --port=6379` before the engine in the first pod"
_MOST_GPUS = 8
_RAY = "RAY_ADDRESS"
"""The variable that names a cluster of Ray elsewhere."""
_RUN = "start the engine in the workers, too, with the same options and a --node-rank from 1"


def pods_joined(facts: ServingFacts) -> Iterator[Finding]:
    """Something connects the pods of an engine whose copy of the model needs several of them.

    SGLang connects pods by --nnodes, or by Ray; TensorRT-LLM by an MPI launcher; vLLM with Ray by
    `ray start` in each pod, with --head in the first one. Without, the entry starts all ranks in
    its own pod and finds too few GPUs, or waits for GPUs that no pod adds. Where an operator, a
    hook, another container or a program that is not read may start Ray, nothing is reported. For
    vLLM without an executor, see executor-stated.

    Pass: tensor 16 with --nnodes 2 in 2 pods of 8 GPUs; tensor 8 in each of 2 such pods.
    Fail: SGLang's --tp-size 16 without --nnodes; trtllm-serve --tp_size 16 without mpirun; vLLM's
    executor mp for tensor 16 without --nnodes; a worker of Ray, or one beside --nnodes 2, that runs
    `sleep infinity`; one that runs `ray start --head`; executor ray in pods of which none runs `ray
    start --head`.
    Level: mandatory.
    Source: sglang/srt/entrypoints/engine.py _launch_scheduler_processes; tensorrt_llm/llmapi/llm.py
    (MpiPoolSession); vllm/v1/executor/ray_utils.py initialize_ray_cluster; vllm/v1/executor/
    multiproc_executor.py _init_executor (local_world_size).
    """
    for engine in facts.engines:
        command = engine.entry.command
        if command is None or command.engine not in _REMEDIES or engine.pods == 1:
            continue
        seen = _idle(engine, command) or _ALONE[command.engine](engine, command)
        if not seen or engine.entry.one_process is True or engine.entry.on_cpus is True:
            continue
        yield from _check(engine, command, seen)


def _check(engine: EngineFacts, command: CommandFacts, seen: str) -> Iterator[Finding]:
    pod = engine.entry
    copy, gpus = command.per_rank_world, pod.gpus
    if isinstance(copy, int) and isinstance(command.data, int) and command.engine == "sglang":
        copy *= command.data if may_be(command.executor, None) else 1
    unknown = first_unknown(pod.one_process, pod.on_cpus, copy, gpus, pod.gap)
    if unknown is not None:
        yield from cannot_check(engine, unknown)
    elif isinstance(copy, int) and isinstance(gpus, int) and copy > gpus > 0:
        yield Finding(
            path=pod.command_path,
            seen=f"{title(engine)} has {count_of(copy, 'rank')} in each replica and "
            f"{count_of(gpus, 'GPU')} in each pod, but {seen}",
            remedy=_remedy(engine, command, copy),
        )


def _remedy(engine: EngineFacts, command: CommandFacts, copy: int) -> str:
    """Say how to connect the pods, or that one pod may do."""
    if _idle(engine, command):
        return _RUN
    pods = engine.pods if isinstance(engine.pods, int) else "N"
    if command.executor == "mp":
        return f"add --nnodes {pods} with --node-rank and --master-addr to all pods"
    remedy = _REMEDIES[str(command.engine)].format(pods=pods, ranks=copy)
    if not (command.executor == "ray" and command.ray_role is None):
        return remedy
    larger = f"request {count_of(copy, 'GPU')}, or " if pods == "N" and copy <= _MOST_GPUS else ""
    return f"{larger}{_HEAD}, and {remedy}"


def _idle(engine: EngineFacts, command: CommandFacts) -> str:
    """Explain that the workers of an engine with --nnodes do nothing."""
    worker = engine.worker
    if worker is None or not worker.idle or _is_one(command.nnodes) or command.hidden is not None:
        return ""
    return f"its workers run `{worker.idle}`, so the ranks of --nnodes never meet"


def _sglang(_engine: EngineFacts, command: CommandFacts) -> str:
    alone = _is_one(command.nnodes) and command.executor is None and command.hidden is None
    return "states no --nnodes, so it starts all ranks in one pod" if alone else ""


def _trtllm(_engine: EngineFacts, command: CommandFacts) -> str:
    launched = command.mpi_ranks is not None or command.mpi_session is not False
    if launched or command.hidden is not None:
        return ""
    return "no MPI launcher starts it, so it starts all ranks in one pod"


def _ray(engine: EngineFacts, command: CommandFacts) -> str:
    """Explain why vLLM's executor does not connect the pods, as its own Ray cluster does."""
    worker = engine.worker
    if command.executor == "mp" and _is_one(command.nnodes):
        return "the executor mp without --nnodes starts all of them in one pod"
    if command.executor == "ray" and command.ray_role is None:
        return _no_cluster(engine)
    if command.executor != "ray" or command.ray_role != "head" or worker is None:
        return ""
    return _not_joined(worker)


def _not_joined(worker: PodFacts) -> str:
    """Explain why a worker does not join the Ray cluster of its entry."""
    if worker.idle:
        return f"its workers run `{worker.idle}`, so they never join the entry's Ray cluster"
    other = worker.command
    if other is None or other.hidden is not None or other.engine is not None:
        return ""
    if other.ray_ends:
        return "its workers end when they have joined: nothing follows `ray start` without --block"
    if other.ray_role == "head" and other.ray_address is None:
        return "its workers run `ray start --head`, so each is a Ray cluster of its own"
    return ""


def _no_cluster(engine: EngineFacts) -> str:
    """Explain that no pod starts a Ray cluster which the engine could find."""
    templates = (engine.entry, *((engine.worker,) if engine.worker is not None else ()))
    commands = [pod.command for pod in templates if pod.command is not None]
    if engine.ray_started or len(commands) < len(templates) or any(map(_may_start_ray, templates)):
        return ""
    if not all(each.hidden is None and each.ray_role in {None, "worker"} for each in commands):
        return ""
    return (
        "no pod of it runs `ray start --head`, so vLLM starts Ray in its own pod and waits for "
        "GPUs that never come"
    )


def _may_start_ray(pod: PodFacts) -> bool:
    """Return whether something else than a pod's command may start Ray, or name a cluster."""
    own, command = pod.own, pod.command
    by_image = command is not None and (command.ray_script is not None or command.runs_others)
    others = own is None or own.has_other_inputs or bool(pod.others)
    return others or by_image or pod.gap is not None or _RAY in pod.stated


def _is_one(nodes: MaybeInt | None) -> bool:
    return not isinstance(nodes, Unknown) and nodes in {None, 1}


_ALONE = {"sglang": _sglang, "trtllm": _trtllm, "vllm": _ray}
