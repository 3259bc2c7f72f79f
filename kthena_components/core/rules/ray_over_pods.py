"""The rule ray-over-pods: a copy of a model that spans pods with Ray does not run vLLM 0.11.1."""

from collections.abc import Iterator

from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, count_of
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
            seen=f"{title(engine)} has a copy of {spread.copy} ranks, which Ray spreads over "
            f"pods of {count_of(spread.gpus, 'GPU')}, and every worker of vLLM "
            f"{write_version(spread.version)} exits when its pod has fewer GPUs than the copy "
            "has ranks",
            remedy="use vLLM 0.11.0, or 0.11.2 or later, or connect the pods with --nnodes and "
            "--node-rank",
        )
