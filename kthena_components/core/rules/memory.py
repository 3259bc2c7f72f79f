"""Checks that a model's weights and one request fit into the GPUs that pods are placed on."""

import math
from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level, count_of
from kthena_components.core.memory import GIB
from kthena_components.core.memory.engine import (
    Placed,
    cache_of,
    larger_sizes,
    length_of,
    placed_engines,
)
from kthena_components.core.remedies import either, set_option
from kthena_components.core.rules.support.messages import cannot_check, title
from kthena_components.core.values.unknown import Unknown

ONE = "memory-one-sequence"
_LEAST_OVERHEAD = 0.5
"""GiB that an engine needs beside weights and KV cache at least: the smallest of 19 published
start-ups of vLLM and SGLang, whose largest is 8 GiB."""
_ROUND = 1024
"""A remedy's length is a multiple of this many tokens, if there is room for as many."""


def memory_weights_fit(facts: ServingFacts) -> Iterator[Finding]:
    """The weights of a model fit into the share of GPU memory that the engine may use.

    The node selector or the required node affinity names the GPU; its memory is what the driver
    reports. Without a named GPU nothing is reported: most manifests leave it to the cluster. If a
    GPU is named but something else is unknown (the model, the format of its weights, the part that
    stays in host memory), this rule reports it once for both rules about memory. The default share
    is 0.92, or 0.9 up to vLLM 0.19.

    Pass: 756 GiB over tensor 8 × pipeline 2, 47.2 GiB on each H100 of 79.65 GiB.
    Fail: 756 GiB over tensor 8, 94.5 GiB on each H100 of 79.65 GiB.
    Level: mandatory.
    Source: vllm/v1/worker/gpu_worker.py determine_available_memory;
    sglang/srt/server_args.py --mem-fraction-static.
    """
    for engine, placed in placed_engines(facts):
        if isinstance(placed, Unknown):
            yield from cannot_check(engine, placed)
        elif placed.weights > placed.budget:
            yield Finding(
                path=engine.entry.command_path,
                seen=f"{title(engine)} puts {_gib(placed.weights)} of weights on each GPU, "
                f"{_gib(placed.gib)} of {placed.command.model} over {_split(placed)}, but may use "
                f"{_gib(placed.budget)} of it: {_share(placed)}",
                remedy=_more_gpus(placed),
            )


def memory_one_sequence(facts: ServingFacts) -> Iterator[Finding]:
    """A request of maximum length fits into the KV cache.

    The cache gets the memory that the weights of the fullest stage and an estimated overhead leave.
    The overhead is 8 GiB for a model with experts; for others 2.3 GiB plus 5 % of the weights, but
    at least 3.5 GiB. The length is the stated one, or the model's maximum. --kv-cache-dtype sets
    the bytes per number, including scales. Layers with a sliding window do not count. Measured
    overheads begin at 0.5 GiB: if the request fits with that, the finding is advice in every
    environment.

    Pass: 40.4 GiB left by Llama-3.3-70B over tensor 4 on H100 of 79.65 GiB, 10.0 GiB needed.
    Fail: 7.6 GiB left over tensor 2, of which 5.6 GiB is overhead, 20.0 GiB needed.
    Level: advisory; never more if the request fits beside an overhead of 0.5 GiB.
    Source: vllm/v1/core/kv_cache_utils.py check_enough_kv_cache_memory; KAITO's node estimator
    and llm-d-benchmark's capacity planner for the overhead.
    """
    for engine, placed in placed_engines(facts):
        if isinstance(placed, Unknown) or placed.weights > placed.budget:
            continue
        length, each = length_of(placed), cache_of(placed)
        unknown = next((value for value in (length, each) if isinstance(value, Unknown)), None)
        if unknown is not None:
            yield from cannot_check(engine, unknown)
        elif isinstance(length, int) and isinstance(each, int):
            yield from _check(placed, length, each)


def _check(placed: Placed, length: int, each: int) -> Iterator[Finding]:
    left = placed.left
    needed = length * each / GIB
    if left is None or needed <= left:
        return
    tokens = max(int(left * GIB / each), 0) if each else 0
    tokens -= tokens % _ROUND if tokens >= _ROUND else 0
    may_fit = needed <= left + placed.overhead - _LEAST_OVERHEAD
    wants = f"one request of {count_of(length, 'token')} needs {_gib(needed)}"
    leaves = f"leaves {_gib(left)} of each GPU" if left > 0 else "leaves nothing of a GPU"
    flag = placed.length_flag
    shorter = set_option(flag, tokens, f"set {flag} to {tokens} or less") if tokens else ""
    yield Finding(
        path=placed.engine.entry.command_path,
        seen=f"{title(placed.engine)} {leaves} for the KV cache ({_share(placed)}, less "
        f"{_gib(placed.fullest)} of weights and about {_gib(placed.overhead)} of overhead), but "
        f"{wants}",
        remedy=either(shorter, "split the model over more GPUs"),
        level=Level.ADVISORY,
        most=Level.ADVISORY if may_fit else Level.MANDATORY,
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
    sizes = larger_sizes(placed)
    bigger = f"use GPUs of {least} GiB or more"
    if not sizes:
        return bigger
    gpus = count_of(sizes[0][0] * sizes[0][1], "GPU")
    ways = ", or ".join(f"tensor {tensor} × pipeline {pipeline}" for tensor, pipeline in sizes)
    return f"split the model over {gpus} or more ({ways}), or {bigger}"


def _gib(size: float) -> str:
    return f"{f'{size:.1f}'.removesuffix('.0')} GiB"
