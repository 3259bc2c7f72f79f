"""Rules of quantised weights: each rank has whole blocks of FP8, and whole groups."""

import math
import re
from collections.abc import Iterator

from kthena_components.core.facts.serving import ServingFacts
from kthena_components.core.findings import Finding, Level
from kthena_components.core.memory.sharding import (
    VLLM,
    Part,
    Sharding,
    cut_blocks,
    each_sharding,
    fits,
    shardings,
    unknown_part,
)
from kthena_components.core.remedies import either, plain
from kthena_components.core.rules.support.engine_pods import Start, sglang_for_amd
from kthena_components.core.rules.support.nearest_sizes import nearest_sizes
from kthena_components.core.values.regex import regex

BLOCKS = "fp8-block-multiple"
_VLLM_SINCE = (0, 6, 6)
_REFINED_SINCE = (0, 29)
"""The first vLLM that refines the scales of experts if blocks are split."""
_FINEST = 32
"""The smallest block that it refines them to."""
_SHARED_SINCE, _SHARED_PADDED = (0, 20), (0, 24)
"""The first vLLM with DeepSeek-V4, and the first that pads its shared expert to whole blocks."""
_SHARED = regex(r"DeepSeek-V4", re.IGNORECASE)
"""Models with one shared expert as wide as another, in FP8 blocks, whatever the others are in."""
_SHARED_BLOCK = 128
_SGLANG_SINCE = (0, 4, 6)
_SGLANG_PADS = (0, 5, 11)
"""The first SGLang that pads experts to whole blocks on AMD (get_moe_padding_size)."""


@each_sharding
def fp8_block_multiple(sharding: Sharding) -> Iterator[Finding]:
    """Each rank has whole blocks of a checkpoint with FP8 scales per block of weights.

    The rule checks the inner widths of the dense layers and of the experts; expert parallelism
    keeps experts whole. Since 0.29 vLLM refines the scales of experts: their parts must be
    multiples of 32. The shared expert of DeepSeek-V4 is split over the tensor group, with expert
    parallelism, too, until vLLM 0.24 pads it. TPUs have a plugin of their own. SGLang's own images
    for AMD pad experts since 0.5.11.

    Pass: experts of 1536 over tensor 4, 384 for each, in blocks of 128; over tensor 8 since vLLM
    0.29.
    Fail: experts of 1536 over tensor 8, 192 for each, in vLLM up to 0.28; a dense layer of 25600
    over tensor 16; a shared expert of 3072 over tensor 16, 192 for each, in vLLM 0.23.
    Level: mandatory if the release rejects it; advisory if the image states none.
    Source: vllm/model_executor/layers/quantization/utils/fp8_utils.py validate_fp8_block_shape;
        fused_moe/oracle/fp8.py refine_fp8_moe_block_shape; vllm/models/deepseek_v4/nvidia/model.py
        DeepseekV4MLP; sglang/srt/layers/quantization/fp8.py
        validate_block_quant_shapes and create_fp8_moe_weight_.
    """
    yield from _shared_expert(sharding)
    if sharding.shape.fp8_block is None or sharding.engine.entry.one_process is not False:
        return
    unknown = unknown_part(sharding)
    if unknown is not None:
        yield from sharding.cannot_check(unknown.because)
    levels = {part: _level(sharding, part) for part in cut_blocks(sharding)}
    cut = [part for part, level in levels.items() if level is not None]
    if cut:
        hard = Level.MANDATORY in levels.values()
        level = Level.MANDATORY if hard else Level.ADVISORY
        start = Start(sharding.engine, sharding.command)
        yield from start.refused(_describe_cuts(sharding, cut), _whole_blocks(sharding), level)


def breaks_blocks(sharding: Sharding) -> bool:
    """Return whether the rule reports a sharding."""
    if sharding.shape.fp8_block is None or sharding.engine.entry.one_process is not False:
        return False
    return any(_level(sharding, part) is not None for part in cut_blocks(sharding))


def _level(sharding: Sharding, part: Part) -> Level | None:
    """Return how a release takes uneven blocks of FP8 weights; None if it pads or accepts them."""
    command, release = sharding.command, sharding.command.release
    start = Start(sharding.engine, command)
    if release is None:
        return Level.ADVISORY
    if command.engine == "sglang":
        padded = sglang_for_amd(sharding.engine.entry) and start.since(_SGLANG_PADS) is not None
        return None if part.expert and padded else start.since(_SGLANG_SINCE)
    if not part.expert or command.engine not in VLLM:
        return start.since(_VLLM_SINCE)
    strict = start.since(_VLLM_SINCE, _REFINED_SINCE)
    if strict is not None or start.option("--moe-backend") is not None:
        return strict
    return start.since(_REFINED_SINCE) if _finest(sharding, part) < _FINEST else _older(start)


def _older(start: Start) -> Level | None:
    """Return advisory if a release older than the newest may run and rejects it."""
    release = start.command.release
    return None if release is None or release.sure else Level.ADVISORY


def _finest(sharding: Sharding, part: Part) -> int:
    """Return the smallest block to which vLLM can refine a part's scales."""
    shape = sharding.shape
    return math.gcd(shape.fp8_block or 0, part.piece, shape.hidden or 0)


def _describe_cuts(sharding: Sharding, cut: list[Part]) -> str:
    pieces = ", ".join(f"{p.what} {p.size} ÷ {p.ranks} = {p.piece}" for p in cut)
    return (
        "gives its ranks parts of FP8 blocks, but each rank needs a multiple of "
        f"{sharding.shape.fp8_block}: {pieces}"
    )


def _whole_blocks(sharding: Sharding) -> str:
    remedy = nearest_sizes(sharding, lambda other: fits(other, blocks=True))
    dense = [part for part in cut_blocks(sharding) if not part.expert]
    return remedy if dense else either(remedy, "enable expert parallelism")


def _shared_expert(sharding: Sharding) -> Iterator[Finding]:
    """Report a shared expert whose FP8 blocks the tensor group would cut."""
    start = Start(sharding.engine, sharding.command)
    level = start.since(_SHARED_SINCE, _SHARED_PADDED)
    if sharding.command.engine != "vllm" or level is None or not _cuts_shared(sharding):
        return
    size, tensor = sharding.shape.expert_ffn or 0, sharding.command.tensor
    seen = (
        f"gives its ranks parts of FP8 blocks, but each rank needs a multiple of {_SHARED_BLOCK}: "
        f"shared expert {size} ÷ {tensor} = {size // tensor if isinstance(tensor, int) else 0}"
    )
    smaller = nearest_sizes(
        sharding, lambda other: fits(other, blocks=True) and not _cuts_shared(other)
    )
    yield from start.refused(seen, either(smaller, "use vLLM 0.24 or later"), level)


def _cuts_shared(sharding: Sharding) -> bool:
    shape, tensor = sharding.shape, sharding.command.tensor
    if shape.dtype != "fp8" or shape.expert_ffn is None or not _SHARED.search(shape.name):
        return False
    return isinstance(tensor, int) and shape.expert_ffn // tensor % _SHARED_BLOCK != 0


GROUPS = "quantization-groups"


def quantization_groups(facts: ServingFacts) -> Iterator[Finding]:
    """Each rank has whole groups of the inputs that share a scale in weights of AWQ or GPTQ.

    Tensor parallelism splits the inputs of a layer's two last products: the inner width of its
    feed-forward part, and all attention heads. AWQ does not start with parts of groups. vLLM takes
    ExLlama's kernel for GPTQ in float16 then, which computes with wrong scales, and no kernel in
    bfloat16. Widths that fill no tile of Marlin's kernels, 64 outputs and 128 inputs, are no
    finding: another kernel takes them, and vLLM pads them since 0.24. The rule does not check
    experts, whose kernels pad.

    Pass: an inner width of 13824 over tensor 4, 3456 for each, in groups of 128; 29696 over 8.
    Fail: an inner width of 13824 over tensor 8, 1728 for each, in groups of 128; 29696 over 16.
    Level: mandatory.
    Source: vllm/model_executor/layers/quantization/auto_awq.py, auto_gptq.py and the kernels in
    vllm/model_executor/kernels/linear/mixed_precision (marlin.py, exllama.py, triton_w4a16.py);
    sglang/srt/layers/quantization/awq and gptq, awq_linear.py and gptq_linear.py.
    """
    for sharding in shardings(facts):
        entry = sharding.engine.entry
        if entry.one_process is not False or entry.on_cpus is not False:
            continue
        if sharding.command.engine not in {"vllm", "sglang"}:
            continue
        cut = [part for part in _parts(sharding) if _is_cut(sharding, part)]
        if cut:
            pieces = ", ".join(f"{p.what} {p.size} ÷ {p.ranks} = {p.piece}" for p in cut)
            seen = (
                f"splits quantization groups ({sharding.shape.group} inputs with one scale) "
                f"between its ranks, but each rank needs whole groups: {pieces}"
            )
            start = Start(sharding.engine, sharding.command)
            # The GPUs change with it, so there is no fix.
            yield from start.refused(seen, plain(nearest_sizes(sharding, _whole)))


def _parts(sharding: Sharding) -> list[Part]:
    """Return the widths of inputs that the ranks share."""
    shape = sharding.shape
    parts = [part for part in sharding.feed_forward if not part.expert]
    if shape.hidden is not None:
        width = shape.heads * (shape.head_dim or shape.hidden // shape.heads)
        parts.append(Part("attention output", width, sharding.attention))
    return parts


def _is_cut(sharding: Sharding, part: Part) -> bool:
    group = sharding.shape.group
    several = isinstance(part.ranks, int) and part.ranks > 1
    return group is not None and several and not part.rest and part.piece % group != 0


def _whole(sharding: Sharding) -> bool:
    """Return whether an engine of another size has whole groups."""
    return fits(sharding) and not any(_is_cut(sharding, part) for part in _parts(sharding))
