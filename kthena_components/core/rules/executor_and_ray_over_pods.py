"""Rules of the executor of vLLM: it is stated, and a release runs a model over pods with Ray."""

from collections.abc import Iterator

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.remedies import either, set_option, without
from kthena_components.core.rules.support.engine_pods import release_of, spread_of
from kthena_components.core.rules.support.messages import each_engine, title
from kthena_components.core.values.images import Version, write_version
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import known

STATED_SINCE: Version = (0, 11, 1)
"""The first vLLM that requires an executor for several pods, and that has --nnodes."""
UNI_SINCE: Version = (0, 12, 0)
"""The first vLLM that accepts the executor uni with --nnodes."""
LAUNCHER_SINCE: Version = (0, 13, 0)
"""The first vLLM that accepts the executor external_launcher with --nnodes."""

_EXECUTOR = "--distributed-executor-backend"


@each_engine
def executor_stated(engine: EngineFacts) -> Iterator[Finding]:
    """A vLLM engine over several pods states how they connect: an executor, or --nnodes.

    With neither, vLLM only counts the GPUs of one pod, and fails to start if a copy of the model
    needs more; up to 0.11.0 it chose Ray by itself if it found Ray. With --nnodes above 1, the
    executor must be mp; uni is allowed since 0.12.0, external_launcher since 0.13.0, and Ray never.
    With --nnodes and no executor, 0.11.1 and 0.11.2 choose uni for a copy on one GPU, and then
    reject it. Copies that fit into one pod need none of this. For a single pod, see
    world-size-equals-gpus. On TPUs, TPU_MULTIHOST_BACKEND decides, whatever the command says, and
    on AWS Neuron vLLM sets the executor itself. Only CUDA counts the GPUs before the start.

    Pass: --distributed-executor-backend ray with a Ray cluster; --nnodes 2 in two pods.
    Fail: tensor 8 × pipeline 2 on pods of 8 GPUs with neither; --nnodes 2 with executor ray.
    Level: mandatory from vLLM 0.11.1 on NVIDIA; advisory before, on other accelerators, and when
    the image states no version, unless the pods have Ray and the tag looks like an older vLLM. An
    executor that --nnodes does not support is mandatory.
    Source: vllm/config/parallel.py, __post_init__, of 0.11.0 to 0.33.0; tpu-inference
    tpu_inference/platforms/tpu_platform.py.
    """
    command = engine.entry.command
    if command is None or command.engine != "vllm" or engine.pods == 1:
        return
    if engine.entry.one_process is True or engine.entry.on_cpus is True:
        return
    if known(command.nnodes) not in {None, 1}:
        yield from _beside_nodes(engine, command)
    elif command.executor is None:
        yield from _not_stated(engine, command)


def _not_stated(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Report an engine over several pods that states no executor."""
    copy, gpus, pod = command.per_rank_world, engine.entry.gpus, engine.entry
    require_known("", pod.one_process, pod.on_cpus, copy, gpus)
    if not (isinstance(copy, int) and isinstance(gpus, int)) or copy <= gpus:
        return
    version = release_of(engine)
    hard = version is not None and version >= STATED_SINCE and engine.entry.has_cuda
    ray = command.ray_role is not None or command.data_backend == "ray"
    if ray and version is None and _looks_older(engine):
        return
    if ray:
        seen = "connects its pods with Ray and does not state the executor"
        remedy = set_option(_EXECUTOR, "ray", f"add {_EXECUTOR} ray")
    else:
        seen = "states neither --nnodes nor an executor"
        remedy = either(*_ways(engine, version))
    yield Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} has {count_of(copy, 'rank')} in each replica and "
        f"{count_of(gpus, 'GPU')} in each pod, but {seen}, {_since(hard)}",
        remedy=remedy,
        level=Level.MANDATORY if hard else Level.ADVISORY,
    )


def _looks_older(engine: EngineFacts) -> bool:
    image = engine.entry.image
    likely = None if image is None else image.probable_release_of("vllm")
    return likely is not None and likely < STATED_SINCE


def _ways(engine: EngineFacts, version: Version | None) -> Iterator[str]:
    """Return the ways to connect the pods of an engine that a release has."""
    if version is None or version >= STATED_SINCE:
        yield f"add --nnodes {_pods(engine)} with --node-rank and --master-addr"
    if version is None or not RANKS_COUNTED <= version < RANKS_COUNTED_UNTIL:
        yield f"start Ray and add {_EXECUTOR} ray"


def _since(hard: bool) -> str:
    first = write_version(STATED_SINCE)
    if hard:
        return f"and vLLM rejects more ranks than one pod has GPUs since {first}"
    return f"which vLLM rejects since {first}"


def _pods(engine: EngineFacts) -> object:
    return engine.pods if isinstance(engine.pods, int) else "N"


def _beside_nodes(engine: EngineFacts, command: CommandFacts) -> Iterator[Finding]:
    """Check the executor of a vLLM command with --nnodes: few start over several nodes."""
    version, executor, nodes = release_of(engine), command.executor, command.nnodes
    allowed = _allowed(version)
    if executor is None:
        if version is not None and "uni" not in allowed:
            yield from _chooses_uni(engine, command, version)
        return
    if executor in allowed:
        return
    require_known("", executor, nodes)
    *others, last = allowed
    listed = f"{', '.join(others)} or {last}" if others else last
    newer = f"use vLLM {write_version(LAUNCHER_SINCE)} or later"
    alone = without("--nnodes", "--node-rank", "--master-addr")
    yield Finding(
        path=engine.entry.command_path,
        seen=f"{title(engine)} has --nnodes {nodes} with the executor {executor}, and vLLM"
        f"{_release(version)} supports only {listed} there",
        remedy=either(set_option(_EXECUTOR, "mp"), newer if executor in _allowed(None) else alone),
    )


def _allowed(version: Version | None) -> tuple[str, ...]:
    """Return the executors that --nnodes supports, by default in the newest release.

    Also for a release without --nnodes: another rule reports that.
    """
    every = ("mp", "uni", "external_launcher")
    if version is None or not STATED_SINCE <= version < LAUNCHER_SINCE:
        return every
    return every[:1] if version < UNI_SINCE else every[:2]


def _chooses_uni(engine: EngineFacts, command: CommandFacts, version: Version) -> Iterator[Finding]:
    """Refuse --nnodes without an executor where vLLM picks `uni` because a copy has one rank."""
    copy, nodes = command.per_rank_world, command.nnodes
    require_known("", copy, nodes)
    if copy == 1:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has --nnodes {nodes} and states no executor, and vLLM"
            f"{_release(version)} chooses uni for a copy of 1 rank, which it rejects over several "
            "nodes",
            remedy=either(
                set_option(_EXECUTOR, "mp", f"add {_EXECUTOR} mp"),
                f"use vLLM {write_version(UNI_SINCE)} or later",
            ),
        )


def _release(version: Version | None) -> str:
    return "" if version is None or version < STATED_SINCE else f" {write_version(version)}"


RANKS_COUNTED: Version = (0, 11, 1)
"""The only vLLM whose workers count the ranks of all pods as their own pod's."""
RANKS_COUNTED_UNTIL: Version = (0, 11, 2)


@each_engine
def ray_over_pods(engine: EngineFacts) -> Iterator[Finding]:
    """A copy of a model that spans pods with Ray does not run vLLM 0.11.1.

    In this release, each worker compares the ranks of the whole copy with the GPUs of its own pod,
    and exits. Engines whose image states no version of vLLM are not checked.

    Pass: tensor 8 × pipeline 2 over 2 pods, with Ray in v0.11.0 or v0.11.2, or with --nnodes.
    Fail: tensor 8 × pipeline 2 over 2 pods of 8 GPUs with the executor ray in v0.11.1.
    Level: mandatory.
    Source: vllm/v1/worker/gpu_worker.py init_device of 0.11.1 (local_world_size) and 0.11.2.
    """
    spread = known(spread_of(engine, RANKS_COUNTED, RANKS_COUNTED_UNTIL))
    if spread is not None:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has a copy of {count_of(spread.copy, 'rank')}, which "
            "Ray spreads over "
            f"pods of {count_of(spread.gpus, 'GPU')}, and every worker of vLLM "
            f"{write_version(spread.version)} exits when its pod has fewer GPUs than the copy "
            "has ranks",
            remedy="use vLLM 0.11.0, or 0.11.2 or later, or connect the pods with --nnodes and "
            "--node-rank",
        )


STALE_RANKS: tuple[Version, Version] = (0, 11, 2), (0, 21, 0)
"""The first vLLM whose workers look up their cache by the rank from before renumbering, and the
first whose default executor numbers them only once. 0.11.1 exits before that.
"""
LEAST_THAT_MOVE = 3
"""Of 2 ranks, the first is bound to the entry's pod, so neither can move."""


@each_engine
def pp_with_ray(engine: EngineFacts) -> Iterator[Finding]:
    """A pipeline that spans pods with Ray does not run vLLM 0.11.2 to 0.20.2.

    Ray chooses a pod for each rank; only the first is bound to the entry's pod. vLLM then renumbers
    the workers pod by pod, but each looks up its KV cache layout by its old number. If the two
    numbers belong to different stages, the engine exits with a KeyError. Whether that happens
    depends on Ray's placement. It cannot happen with 2 stages of 1 GPU in 2 pods, nor if a copy
    fits into one pod. Engines whose image states no version of vLLM are not checked.
    VLLM_USE_RAY_V2_EXECUTOR_BACKEND, which selects the old or the new executor, is ignored.

    Pass: tensor 1 × pipeline 2 on 2 pods of 1 GPU; pipeline 4 with v0.11.0 or v0.21.0, or --nnodes.
    Fail: pipeline 3 on 3 pods, or tensor 8 × pipeline 2 on 2 pods of 8 GPUs, with v0.17.1 and Ray.
    Level: advisory.
    Source: vllm/v1/executor/ray_executor.py and vllm/v1/worker/worker_base.py (adjust_rank,
    initialize_from_config) of 0.11.1 to 0.20.2; vllm-project/vllm#23691, #30128, #41287, #36836.
    """
    spread = known(spread_of(engine, *STALE_RANKS))
    if spread is not None and spread.stages > 1 and spread.copy >= LEAST_THAT_MOVE:
        yield Finding(
            path=engine.entry.command_path,
            seen=f"{title(engine)} has {spread.stages} pipeline stages in a copy of "
            f"{count_of(spread.copy, 'rank')}, which Ray spreads over pods of "
            f"{count_of(spread.gpus, 'GPU')}, and in vLLM {write_version(spread.version)} a "
            "rank that Ray places out of order can get the KV cache layout of another stage",
            remedy="connect the pods with --nnodes and --node-rank, or use vLLM 0.21.0 or later",
            level=Level.ADVISORY,
        )
