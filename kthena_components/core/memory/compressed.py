"""Compressed attention (DeepSeek-V4): what it needs while vLLM starts, and what a request needs.

A layer keeps a latent for each 4 tokens, with a key of an indexer, or one for each 128 tokens, and
the states of its compressor for the last 8 or 128 tokens. Each layer also keeps the last 128
tokens. vLLM gives each of these groups blocks of its own from one pool, whose blocks are as large
as the first group needs: vllm/v1/core/kv_cache_utils.py _get_kv_cache_groups_uniform_groups and
_max_memory_usage_bytes_from_groups, vllm/v1/kv_cache_interface.py SlidingWindowSpec, and
vllm/models/deepseek_v4/{attention,compressor}.py of 0.20.2, 0.22.0, 0.24.0, 0.26.0, 0.28.0, 0.31.0.
"""

from typing import NamedTuple

from kthena_components.core.memory.sizes import GIB
from kthena_components.core.models import ModelShape
from kthena_components.core.values.images import Version

_HEAD, _FEW_HEADS, _MANY_HEADS = 512, 64, 128
"""Width of a head, and to how many FlashMLA fills them up."""
_SM120, _POWERS = ("NVIDIA RTX PRO", "NVIDIA GeForce RTX 50", "NVIDIA GB10"), (8, 16, 32, 64, 128)
"""GPUs that run FlashInfer's kernel there, and the heads to which that fills up."""
_FILLED_SINCE = (0, 22)
"""The first release that fills up the queries while it measures, not their result alone."""
_INDEX_QUERIES, _LOGITS = 64 * 128 * 3 // 2, 2**28
"""Numbers of a token's queries in an indexer, in 16 bits and in FP8, and those of
VLLM_SPARSE_INDEXER_MAX_LOGITS_MB."""
_REQUESTS, _RATIO, _WINDOW = 4, 4, 128
"""Requests of a part of a prefill, tokens that one latent stands for, and tokens of the window."""
_GATHERED = 40
"""Keys for each token of the longest request: get_max_prefill_buffer_size."""
_LATENT, _KEY, _ALIGNED = 584, 132, 576
"""Bytes of a latent and of a key of an indexer, and those to which a page is filled up."""
BLOCK, _FAR = 256, 128
"""Tokens of a block, and the larger number of tokens that one latent stands for."""
_KEPT_BLOCKS = ((_WINDOW, 64), (2 * _RATIO, 4), (_FAR, 8))
"""Tokens that windows and the states of both compressors keep, and those of one of their blocks."""
_IN_FLIGHT_SINCE, _IN_FLIGHT = (0, 26), 2
"""The first release that was read which keeps the tokens of two batches with async scheduling."""
_DENSE_SINCE = (0, 29)
"""The first release that may have blocks as large as the largest group, without gaps: 0.28 counts
gaps, 0.31 does not."""


class Request(NamedTuple):
    """The cache of one request, in bytes."""

    each: int
    """For each of its tokens."""
    fixed: int
    """What windows and states need beside that: with the tokens of a batch, as far as the request
    has so many."""


def compressed_workspace(length: int | None, tokens: int) -> float:
    """Return the GiB that vLLM reserves for prefills.

    Either the latents of four requests, or the keys of the indexer, are in it: forward_mqa in
    vllm/models/deepseek_v4/nvidia/flashmla.py, and DeepseekV4Indexer; before 0.22
    vllm/model_executor/layers/deepseek_v4_attention.py.
    """
    kept = -(-(length or 0) // _RATIO)
    latents = _REQUESTS * (kept + _WINDOW + tokens) * _HEAD * 2
    return max(latents, _GATHERED * kept * _KEY) / GIB


def compressed_attention(
    shape: ModelShape, ranks: int, gpu: str, tokens: int, release: Version | None
) -> int:
    """Count the numbers of a layer while vLLM measures its peak.

    Queries and their result are filled up to the heads of the kernel, and the logits of the
    indexer are as large as they may get: attn_impl in vllm/models/deepseek_v4/attention.py, and
    sparse_attn_indexer in vllm/model_executor/layers/sparse_attn_indexer.py.
    """
    heads = -(-shape.heads // ranks)
    sizes = _POWERS if gpu.startswith(_SM120) else (_FEW_HEADS, _MANY_HEADS)
    filled = next((size for size in sizes if heads <= size), heads)
    older = release is not None and release < _FILLED_SINCE
    queries = (heads if older else filled) * (shape.head_dim or _HEAD)
    result = filled * (shape.head_dim or _HEAD)
    streams = (shape.streams + 2) * (shape.hidden or 0)
    return tokens * (streams + queries + result + _INDEX_QUERIES) + _LOGITS


def request_cache(
    shape: ModelShape, length: int, tokens: int, release: Version | None, *, drafts: bool
) -> Request | None:
    """Return what one request needs; None if the model's layers are not known, or others.

    Args:
        shape: The model.
        length: Tokens of the request.
        tokens: Tokens of a batch.
        release: The release of vLLM. None: the newest.
        drafts: Whether a layer for drafts is loaded, which keeps a window only.
    """
    near = shape.quarter_layers
    if near is None:
        return None
    far = shape.layers - near - shape.window_layers
    windows = shape.layers + drafts
    layers = _layers_of_a_block(near, far, windows)
    groups = [-(-count // layers) for count in (windows, near, far)]
    newer = release is None or release >= _IN_FLIGHT_SINCE
    in_flight = tokens * (_IN_FLIGHT if newer else 1)
    blocks = sum(
        group * (-(-min(kept - 1 + in_flight, length) // size) + 1)
        for group, (kept, size) in zip(groups, _KEPT_BLOCKS, strict=True)
    )
    block = _block(near, far, max(layers, near, far), release)
    return Request(-(-block // BLOCK), blocks * block)


def _layers_of_a_block(near: int, far: int, windows: int) -> int:
    """Return into how many layers vLLM splits its groups: those that leave the fewest gaps.

    Source: _approximate_gcd in vllm/v1/core/kv_cache_utils.py.
    """
    counts = [max(near, far), windows, near, far]
    sizes = range(counts[0], max(counts) + 1)
    return min(sizes, key=lambda size: (sum(-count % size for count in counts), -size))


def _block(near: int, far: int, layers: int, release: Version | None) -> int:
    """Return the bytes of a block: a page of latents and of keys for each layer."""
    latents, keys, few = (
        -(-size // _ALIGNED) * _ALIGNED
        for size in (BLOCK // _RATIO * _LATENT, BLOCK // _RATIO * _KEY, BLOCK // _FAR * _LATENT)
    )
    if release is None or release >= _DENSE_SINCE:
        return near * (latents + keys) + far * few
    return layers * (latents + keys + few)
