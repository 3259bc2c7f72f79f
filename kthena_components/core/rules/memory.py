"""Whether a model's weights, and a request, fit the GPUs that an engine is placed on."""

import math
from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory import GIB
from kthena_components.core.memory.engine import Placed, cache_of, length_of, placed_engines
from kthena_components.core.rules.wording import title, unjudged
from kthena_components.core.values.unknown import Unknown

FIT = "memory-weights-fit"
ONE = "memory-one-sequence"
_ROUND = 1024
"""Tokens that a remedy's length is a multiple of, where there is room for as many."""


def memory_weights_fit(facts: ServingFacts) -> Iterator[Finding]:
    """The weights of a model fit the share of its GPUs' memory that the engine may take.

    The memory is that of the GPU which the node selector or the required node affinity names, as
    its driver reports it. Where none is named nothing is said: most manifests leave it to the
    cluster. Where one is named and something else is missing (the model, the form of its weights,
    what of them stays in the host), one line says so here for both rules about memory. Without a
    stated share it is 0.92, up to vLLM 0.19 its default of 0.9.

    Pass: 756 GiB over tensor 8 × pipeline 2, 47.2 GiB on each H100 of 79.65 GiB.
    Fail: 756 GiB over tensor 8, 94.5 GiB on each H100 of 79.65 GiB.
    Level: mandatory.
    Source: vllm/v1/worker/gpu_worker.py determine_available_memory;
    sglang/srt/server_args.py --mem-fraction-static.
    """
    for engine, placed in placed_engines(facts):
        if isinstance(placed, Unknown):
            yield from unjudged(engine, placed, FIT)
        elif placed.weights > placed.budget:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} puts {_gib(placed.weights)} of weights on each GPU, "
                f"{_gib(placed.gib)} of {placed.command.model} over {_split(placed)}, but may take "
                f"{_gib(placed.budget)} of it: {_share(placed)}",
                remedy=_more_gpus(placed),
                rule=FIT,
            )


def memory_one_sequence(facts: ServingFacts) -> Iterator[Finding]:
    """A request of the longest length fits into the KV cache.

    The cache gets what the weights of the fullest stage and an estimated overhead leave: 8 GiB
    for a model with experts, 2.3 GiB and 5 % of the weights for others, 3.5 GiB at least. The
    length is the stated one, or the model's own. A number takes what --kv-cache-dtype says, with
    its share of the scales. Layers that look back over a window count nothing.

    Pass: 40.4 GiB left by Llama-3.3-70B over tensor 4 on H100 of 79.65 GiB, 10.0 GiB needed.
    Fail: 7.6 GiB left over tensor 2, of which 5.6 GiB is overhead, 20.0 GiB needed.
    Level: advisory.
    Source: vllm/v1/core/kv_cache_utils.py check_enough_kv_cache_memory; KAITO's node estimator
    and llm-d-benchmark's capacity planner for the overhead.
    """
    for engine, placed in placed_engines(facts):
        if isinstance(placed, Unknown) or placed.weights > placed.budget:
            continue
        length, each = length_of(placed), cache_of(placed)
        unknown = next((value for value in (length, each) if isinstance(value, Unknown)), None)
        if unknown is not None:
            yield from unjudged(engine, unknown, ONE)
        elif isinstance(length, int) and isinstance(each, int):
            yield from _judge(placed, length, each)


def _judge(placed: Placed, length: int, each: int) -> Iterator[Finding]:
    left = placed.left
    needed = length * each / GIB
    if left is None or needed <= left:
        return
    tokens = max(int(left * GIB / each), 0) if each else 0
    tokens -= tokens % _ROUND if tokens >= _ROUND else 0
    wants = f"one request of {count_of(length, 'token')} needs {_gib(needed)}"
    leaves = f"leaves {_gib(left)} of each GPU" if left > 0 else "leaves nothing of a GPU"
    shorter = f"set {placed.length_flag} to {tokens} or less, or " if tokens else ""
    yield Finding(
        path=placed.engine.entry.command_path,
        seen=f"{title(placed.engine)} {leaves} to the KV cache ({_share(placed)}, less "
        f"{_gib(placed.fullest)} of weights and about {_gib(placed.overhead)} of overhead), but "
        f"{wants}",
        remedy=f"{shorter}split the model over more GPUs",
        rule=ONE,
        level=Level.ADVISORY,
    )


def _share(placed: Placed) -> str:
    memory = f"{_gib(placed.gpu.memory_gib)} of {placed.gpu.name}"
    return memory if placed.share == 1 else f"{placed.share:g} × {memory}"


def _split(placed: Placed) -> str:
    command = placed.engine.entry.command
    if command is None:
        return "its GPUs"
    sizes = [("tensor", command.tensor), ("pipeline", command.pipeline)]
    words = [f"{word} {size}" for word, size in sizes if size != 1 or word == "tensor"]
    return " × ".join(words)


def _more_gpus(placed: Placed) -> str:
    least = math.ceil(placed.weights / placed.share)
    if placed.budget <= 0:
        return f"use GPUs of {least} GiB or more"
    ranks = math.ceil(placed.ranks * placed.weights / placed.budget)
    over = f"split the model over {count_of(ranks, 'GPU')} or more"
    return f"{over}, or use GPUs of {least} GiB or more"


def _gib(size: float) -> str:
    return f"{f'{size:.1f}'.removesuffix('.0')} GiB"
