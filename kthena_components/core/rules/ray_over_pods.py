"""Rules of releases of vLLM that do not run a copy of a model over pods with Ray."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.rules.support.engine_pods import spread_of
from kthena_components.core.rules.support.messages import (
    each_engine,
    title,
)
from kthena_components.core.values.images import Version, write_version
from kthena_components.core.values.unknown import known

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
