"""Weights as an engine holds them, where its kernels need larger matrices than the checkpoint has.

Source: vllm/model_executor/layers/fused_moe/oracle/mxfp4.py
mxfp4_round_up_hidden_size_and_intermediate_size, and sglang/srt/layers/quantization/mxfp4.py: with
Marlin, which both take on most GPUs, widths are filled up to 128 and hidden sizes to 256.

vllm/model_executor/layers/fused_moe/unquantized_fused_moe_method.py _maybe_pad_weight: with ROCm,
rows of experts in 16 bits get 256 bytes more if they are multiples of 512 bytes. Each matrix of a
layer is copied: gate and up first. The copy of down then lies in the memory of the old gate and up,
whose rest stays unused: c10/cuda/CUDACachingAllocator.cpp splits a freed block, and a block that is
used in part cannot be returned.

vllm/model_executor/layers/quantization/fp8.py process_weights_after_loading: with ROCm, experts in
FP8 are copied layer by layer in the order that AITER needs. The memory of the last layer's old
weights stays reserved, and counts as weights: vllm/platforms/rocm.py get_current_memory_usage.
"""

from kthena_components.core.memory.copies import copied_weights
from kthena_components.core.memory.sizes import GIB, Split, expert_weights, fullest_weights
from kthena_components.core.models import ModelShape

_INNER, _HIDDEN = 128, 256
"""Multiples of an expert's inner width on one rank, and of the hidden size."""
_ROW, _MORE = 256, 128
"""With ROCm: the multiple of a row that is lengthened, and by how many numbers of 16 bits."""
_UNQUANTISED, _SHUFFLED = "bf16", "fp8"
_GATE_AND_UP, _DOWN = 2 / 3, 1 / 3
"""Shares of an expert's weights."""


def loaded_weights(
    shape: ModelShape, split: Split, gib: float, rocm_width: int | None = None
) -> float:
    """Return the GiB of weights on a GPU of the fullest stage as the engine holds them.

    Args:
        shape: The model.
        split: Its ranks.
        gib: All weights.
        rocm_width: The inner width of an expert on one rank, if vLLM runs on a GPU of AMD.
    """
    whole = fullest_weights(shape, split, gib) + _embeddings_kept(shape, split, gib)
    whole += copied_weights(shape, split)
    if not shape.hidden or not shape.expert_ffn:
        return whole
    ranks = split.experts or split.tensor
    experts = min(expert_weights(shape), gib) / ranks / split.pipeline
    if shape.dtype == "mxfp4":
        inner = -(-shape.expert_ffn // ranks)
        larger = _filled(inner, _INNER) * _filled(shape.hidden, _HIDDEN) / (inner * shape.hidden)
        return whole + experts * (larger - 1)
    if rocm_width and shape.dtype == _UNQUANTISED and gib == shape.weights_gib:
        return whole + experts * _lengthened(shape.hidden, rocm_width)
    if rocm_width and shape.dtype == _SHUFFLED:
        layers = max(shape.layers - shape.dense_layers + shape.draft_layers, 1)
        return whole + experts * split.pipeline / layers
    return whole


def _lengthened(hidden: int, inner: int) -> float:
    """Return by which share experts grow where their rows are lengthened, with what stays unused.

    Rows of gate and up are as long as the hidden size, those of down as the inner width.
    """
    gate_and_up = _GATE_AND_UP * (_MORE / hidden if hidden % _ROW == 0 else 0)
    if inner % _ROW:
        return gate_and_up
    down = _DOWN * _MORE / inner
    unused = max(_GATE_AND_UP - _DOWN - down, 0.0) if gate_and_up else 0.0
    return gate_and_up + down + unused


def _embeddings_kept(shape: ModelShape, split: Split, gib: float) -> float:
    """Return by how much embeddings exceed their share of weights quantised while loading."""
    if not shape.weights_gib or not shape.vocab or not shape.hidden:
        return 0.0
    kept = 2 * shape.vocab * shape.hidden * 2 / GIB
    return max(1 - gib / shape.weights_gib, 0.0) * kept / split.tensor


def _filled(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
