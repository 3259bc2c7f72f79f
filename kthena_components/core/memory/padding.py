"""Weights as an engine holds them, where its kernels need larger matrices than the checkpoint has.

Source: vllm/model_executor/layers/fused_moe/oracle/mxfp4.py
mxfp4_round_up_hidden_size_and_intermediate_size, and sglang/srt/layers/quantization/mxfp4.py: with
Marlin, which both take on most GPUs, widths are filled up to 128 and hidden sizes to 256.
"""

from kthena_components.core.memory.sizes import GIB, Split, expert_weights, fullest_weights
from kthena_components.core.models import ModelShape

_INNER, _HIDDEN = 128, 256
"""Multiples of an expert's inner width on one rank, and of the hidden size."""


def loaded_weights(shape: ModelShape, split: Split, gib: float) -> float:
    """Return the GiB of weights on a GPU of the fullest stage as the engine holds them."""
    whole = fullest_weights(shape, split, gib) + _embeddings_kept(shape, split, gib)
    if shape.dtype != "mxfp4" or not shape.hidden or not shape.expert_ffn:
        return whole
    ranks = split.experts or split.tensor
    inner = -(-shape.expert_ffn // ranks)
    larger = _filled(inner, _INNER) * _filled(shape.hidden, _HIDDEN) / (inner * shape.hidden)
    experts = min(expert_weights(shape), gib) / ranks / split.pipeline
    return whole + experts * (larger - 1)


def _embeddings_kept(shape: ModelShape, split: Split, gib: float) -> float:
    """Return by how much embeddings exceed their share of weights quantised while loading."""
    if not shape.weights_gib or not shape.vocab or not shape.hidden:
        return 0.0
    kept = 2 * shape.vocab * shape.hidden * 2 / GIB
    return max(1 - gib / shape.weights_gib, 0.0) * kept / split.tensor


def _filled(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple
