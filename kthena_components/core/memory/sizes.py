"""Weights, KV cache and overhead of one GPU. Sizes are GiB, those of the cache are bytes.

Sources: vllm/v1/kv_cache_interface.py and sglang/srt/configs/model_config.py for what a token
takes; llm-d-benchmark config_explorer capacity_planner.py, KAITO's
pkg/workspace/estimator/nodesestimator and AIConfigurator's sdk/memory.py for the overhead, which
they measure or estimate differently: the numbers here are between them.
"""

import math
from dataclasses import dataclass

from kthena_components.core.memory.cache_types import NATIVE, CacheType
from kthena_components.core.models import ModelShape

GIB = 2**30
_BITS = {"bf16": 16.0, "fp8": 8.0, "mxfp4": 4.25, "int4": 4.5}
"""Bits of one weight with its share of the scales: blocks of 32 with a scale of 8 or 16 bits."""
_MATRICES = 3
"""Matrices of one feed-forward layer or expert: gate, up and down."""
_ENDS = 2
"""Layers at each end of a model that vLLM does not pack."""
_BASE, _SHARE, _LEAST, _EXPERTS = 2.3, 0.05, 3.5, 8.0
"""Overhead in GiB: a base and a share of the weights, not below the least; more with experts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Over how many ranks the parts of a model are split."""

    tensor: int = 1
    pipeline: int = 1
    experts: int | None = None
    """Ranks that hold the experts of one layer together. None: those of the tensor group."""
    attention: int | None = None
    """Ranks that share the KV heads. None: those of the tensor group."""
    decode_context: int = 1
    """Ranks of the tensor group that share the tokens of the cache."""


def weights_on_gpu(shape: ModelShape, split: Split, gib: float) -> float:
    """Give the weights of one GPU: the mean over all, so that the fullest has at least as many.

    Args:
        shape: the model.
        split: how it is split.
        gib: all its weights.
    """
    return _of_a_stage(shape, split, gib) / split.pipeline


def fullest_weights(shape: ModelShape, split: Split, gib: float) -> float:
    """Give the weights of a GPU in the fullest stage: layers are not cut."""
    return _of_a_stage(shape, split, gib) * _stage(shape, split) / shape.layers


def _of_a_stage(shape: ModelShape, split: Split, gib: float) -> float:
    """Give the weights of one GPU if there were one stage only."""
    experts = min(_expert_weights(shape), gib)
    return (gib - experts) / split.tensor + experts / (split.experts or split.tensor)


def _expert_weights(shape: ModelShape) -> float:
    sizes = (shape.experts, shape.hidden, shape.expert_ffn)
    bits = _BITS.get(shape.dtype or "")
    if bits is None or not all(sizes):
        return 0.0
    numbers = (size or 0 for size in sizes)
    layers = max(shape.layers - shape.dense_layers + shape.draft_layers, 0)
    return layers * _MATRICES * math.prod(numbers) * bits / 8 / GIB


def _stage(shape: ModelShape, split: Split) -> int:
    """Count the layers of the fullest stage."""
    return -(-shape.layers // split.pipeline)


def cache_per_token(shape: ModelShape, kind: CacheType = NATIVE) -> int | None:
    """Give the bytes that a token takes in the cache of one whole model, None if not known.

    Args:
        shape: the model. Layers that look back over a window count like the others.
        kind: how its numbers are stored.
    """
    return cache_per_token_on_gpu(shape, Split(), kind)


def cache_per_token_on_gpu(shape: ModelShape, split: Split, kind: CacheType = NATIVE) -> int | None:
    """Give the bytes that a token takes on a GPU of the fullest stage, None if not known.

    KV heads are shared by the ranks of the attention, at least one for each. What latent
    attention keeps stands whole on every rank.
    """
    each, whole = _of_a_layer(shape, split, kind), _of_a_layer(shape, split, NATIVE)
    if each is None or whole is None:
        return None
    total = _stage(shape, split) * each
    if kind.packed:
        total = max(total, _with_ends(shape, split, each, whole))
    return -(-total // split.decode_context)


def _of_a_layer(shape: ModelShape, split: Split, kind: CacheType) -> int | None:
    if shape.latent is not None:
        return kind.of_latent(shape.latent)
    if shape.kv_heads is None or shape.head_dim is None:
        return None
    each = kind.of_head(shape.head_dim)
    heads = -(-shape.kv_heads // (split.attention or split.tensor))
    return None if each is None else heads * each


def _with_ends(shape: ModelShape, split: Split, each: int, whole: int) -> int:
    """Give the bytes of the first stage, whose first layers keep 16 bits.

    The last stage has as many of them, and no more layers: vLLM gives what is left over to the
    stages before it. Source: vllm/distributed/utils.py get_pp_indices.
    """
    ends = min(_ENDS, shape.layers // 2) * (2 if split.pipeline == 1 else 1)
    layers = shape.layers if split.pipeline == 1 else (shape.layers + 1) // split.pipeline
    ends = min(ends, layers)
    return (layers - ends) * each + ends * whole


def overhead(shape: ModelShape, weights: float) -> float:
    """Estimate what else a GPU holds: activations, CUDA graphs and the libraries' buffers.

    Args:
        shape: the model.
        weights: GiB of weights on the same GPU.

    A model of which it is not known whether it has experts counts as one with them.
    """
    return max(_BASE + _SHARE * weights, _LEAST) if shape.experts == 0 else _EXPERTS
