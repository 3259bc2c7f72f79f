"""Sparse and compressed attention: DeepSeek-V3.2, GLM-5 and DeepSeek-V4.

The indexers of sparse attention (DSA: DeepSeek-V3.2, GLM-5), and how SGLang stores its cache.

An indexer chooses the tokens that a layer attends to. Each rank has all of its weights, and for
each token and layer a key in FP8 with a scale of 4 bytes for 128 numbers:
vllm/model_executor/models/deepseek_v2.py Indexer and DeepseekV32IndexerCache, since vLLM 0.11;
sglang/srt/layers/attention/nsa/nsa_indexer.py, since SGLang 0.5.3.

SGLang divides its memory by the bytes that it counts for a token, and may allocate more:
sglang/srt/mem_cache/memory_pool.py NSATokenToKVPool, and profile_max_num_token or
get_cell_size_per_token of sglang/srt/model_executor, as the wheels of 0.5.3 to 0.5.23 have them.

Compressed attention (DeepSeek-V4): what it needs while vLLM starts, and what a request needs.

A layer keeps a latent for each 4 tokens, with a key of an indexer, or one for each 128 tokens, and
the states of its compressor for the last 8 or 128 tokens. Each layer also keeps the last 128
tokens. vLLM gives each of these groups blocks of its own from one pool, whose blocks are as large
as the first group needs: vllm/v1/core/kv_cache_utils.py _get_kv_cache_groups_uniform_groups and
_max_memory_usage_bytes_from_groups, vllm/v1/kv_cache_interface.py SlidingWindowSpec, and
vllm/models/deepseek_v4/{attention,compressor}.py of 0.20.2, 0.22.0, 0.24.0, 0.26.0, 0.28.0, 0.31.0.
"""

import math
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from kthena_components.core.memory.sizes import GIB, CacheType, Split, cache_type
from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version
from kthena_components.core.values.unknown import Unknown

_BLOCK, _SCALE = 128, 4
"""Numbers of an indexer's key that share a scale, and its bytes."""
_FP8, _SCALED = "fp8_e4m3", "fp8_ds_mla"
"""The type by which SGLang counts a latent, and the one with scales and a rotated part in 16 bits
by which it stores it."""
_HOPPER = ("NVIDIA H", "NVIDIA GH")
_BLACKWELL = ("NVIDIA B", "NVIDIA GB", "NVIDIA RTX PRO 6000", "NVIDIA GeForce RTX 50")
"""GPUs on which FP8 is SGLang's default, by the starts of their names."""
_COUNTS_INDEX, _COUNTS_SCALES = (0, 5, 4), (0, 5, 17)
"""The first releases of SGLang that count the indexer's key, and all that they allocate."""
_UNSCALED_SINCE, _UNSCALED_DEFAULT = (0, 5, 9), (0, 5, 10)
"""The first releases with backends that need no scales, and with one of them as the default on
Blackwell and AMD."""
_SHARED_SINCE = (0, 24)
"""The first release of vLLM without indexers in layers that use another layer's."""
_EXPANDED, _LATENTS_SINCE = 5, (0, 13)
"""Latents in 16 bits that vLLM reserves with a cache in FP8 for each token of the longest request,
and the first release that does: get_prefill_workspace_size in vllm/v1/attention/backends/mla/
flashmla_sparse.py, which runs on Hopper."""
_GATHERED = 8
"""Keys that it reserves for each such latent: get_max_prefill_buffer_size in indexer.py there."""
_FEWER, _FEWER_SINCE, _LONG = 2, (0, 32), 2**18
"""The same as _EXPANDED for requests above _LONG tokens, and the first release with fewer:
sparse_mla_prefill_workspace_factor in vllm/config/vllm.py of 0.32.0, not of 0.31.0. Since then it
reserves pools in place of keys where keys are pooled: glm5next/common/attention.py."""
_PHASES = 2
"""Prefill and decode have a backend each."""
_UNSCALED, _UNSCALED_AMD = ("trtllm",), ("trtllm", "tilelang", "aiter")


def indexer_numbers(shape: ModelShape) -> int:
    """Count the numbers of one layer's indexer: its queries, its key and the weights of heads."""
    if shape.index_heads is None or shape.index_dim is None:
        return 0
    queries = (shape.query_latent or 0) * shape.index_heads * shape.index_dim
    return queries + (shape.hidden or 0) * (shape.index_dim + shape.index_heads)


def with_loaded_indexers(shape: ModelShape, vllm: bool, release: Version | None) -> ModelShape:
    """Return a model with the indexers that an engine loads: an older vLLM has one in each layer.

    Source: vllm/model_executor/models/deepseek_v2.py, `_skip_topk`.
    """
    older = vllm and release is not None and release < _SHARED_SINCE
    return replace(shape, index_layers=None) if older and shape.index_layers else shape


def indexers_of(shape: ModelShape) -> int:
    """Count the indexers of a model."""
    return shape.layers if shape.index_layers is None else shape.index_layers


def prefill_workspace(
    shape: ModelShape, gpu: str, length: int | None, *, fp8: bool, release: Version | None
) -> float:
    """Return the GiB that vLLM reserves for prefills of sparse attention.

    It grows with the longest request. The workspace of experts lies in the same memory.
    """
    if shape.index_dim is None or shape.latent is None or length is None:
        return 0.0
    factor = _expanded(length, release)
    pooled = shape.state_layers and (release is None or release >= _FEWER_SINCE)
    keys = factor * _GATHERED * index_bytes(shape) // (_POOL if pooled else 1)
    older = release is not None and release < _LATENTS_SINCE
    latents = factor * shape.latent * 2 if fp8 and not older and gpu.startswith(_HOPPER) else 0
    return length * max(keys, latents) / GIB


def _expanded(length: int, release: Version | None) -> int:
    """Return the latents for each token of the longest request that vLLM reserves."""
    newer = release is None or release >= _FEWER_SINCE
    return _FEWER if newer and length > _LONG else _EXPANDED


def index_bytes(shape: ModelShape) -> int:
    """Return the bytes of an indexer's key of a token in one layer."""
    return 0 if shape.index_dim is None else shape.index_dim + shape.index_dim // _BLOCK * _SCALE


def index_cache_on_gpu(shape: ModelShape, split: Split) -> int:
    """Return the bytes of the indexers' keys of a token on a GPU of the fullest stage."""
    layers = -(-indexers_of(shape) // split.pipeline)
    return -(-layers * index_bytes(shape) // split.decode_context)


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangCell:
    """A token of sparse attention in SGLang's cache."""

    kind: CacheType
    """How its latent is stored."""
    growth: float
    """The bytes that are allocated for each one that is counted."""


def sglang_cell(
    shape: ModelShape,
    stated: str | None,
    gpu: str,
    release: Version | None,
    backends: Collection[object],
) -> SglangCell | None:
    """Return how SGLang stores a token; None without sparse attention, or in an unknown type.

    Args:
        shape: The model.
        stated: The type of the cache, if stated.
        gpu: Name of the GPU.
        release: The release. None: the newest.
        backends: The backends of its attention that are stated.
    """
    if shape.index_dim is None or shape.latent is None:
        return None
    by_default = stated is None or stated == "auto"
    name = (_FP8 if gpu.startswith(_BLACKWELL) else None) if by_default else stated
    scaled = name == _FP8 and _is_scaled(gpu, release, backends)
    counts, stores = cache_type(name), cache_type(_SCALED if scaled else name)
    if isinstance(counts, Unknown) or isinstance(stores, Unknown):
        return None
    index = index_bytes(shape)
    allocated = (stores.of_latent(shape.latent) or 0) + index
    counted = counts.of_latent(shape.latent) or 0
    if release is None or release >= _COUNTS_SCALES:
        counted = allocated
    elif release >= _COUNTS_INDEX:
        counted += index
    return SglangCell(kind=stores, growth=allocated / counted if counted else 1.0)


def _is_scaled(gpu: str, release: Version | None, backends: Collection[object]) -> bool:
    """Return whether a latent in FP8 is stored with scales."""
    if release is not None and release < _UNSCALED_SINCE:
        return True
    amd = gpu.startswith("AMD")
    if any(name in (_UNSCALED_AMD if amd else _UNSCALED) for name in backends):
        return False
    if release is not None and release < _UNSCALED_DEFAULT:
        return True
    by_default = not backends if amd else gpu.startswith(_BLACKWELL) and len(backends) < _PHASES
    return not by_default


_OF_A_HEAD, _ROTATED = 128, 64
"""Width of a head of latent attention where the table has none, and numbers that are rotated."""
_HEAD, _FEW_HEADS, _MANY_HEADS = 512, 64, 128
"""Width of a head, and to how many FlashMLA fills them up."""
_SM120, _POWERS = ("NVIDIA RTX PRO", "NVIDIA GeForce RTX 50", "NVIDIA GB10"), (8, 16, 32, 64, 128)
"""GPUs that run FlashInfer's kernel there, and the heads to which that fills up."""
_FILLED_SINCE = (0, 22)
"""The first release that fills up the queries while it measures, not their result alone."""
_EAGER_SINCE, _SCRATCH = (0, 23), ((0, 27), (0, 31))
"""The first release that was read which does not compile the model, and the first ones with and
without kept queries: eager_scratch.py is in 0.27.0 and 0.28.0, not in 0.26.0 and 0.31.0."""
_SCORES, _OF_SCRATCH = 2 * 4 * (512 + 128), 64 * (64 + 4 + 4) // 2
"""Scores of both compressors, which have 32 bits, and what is kept for an indexer, of a token."""
_INDEX_HEADS, _INDEX_QUERIES, LOGITS = 64, 64 * 128 * 3 // 2, 2**28
"""Heads of an indexer, numbers of a token's queries there, in 16 bits and in FP8, and those of
VLLM_SPARSE_INDEXER_MAX_LOGITS_MB."""
_OF_A_LOGIT, _POOL = 4, 4
"""Bytes of a logit of the indexer in a decode, and the tokens of one key where other layers have
states: index_kpool in vllm/models/glm5next/nvidia/sparse_indexer.py of 0.33.0."""
_REQUESTS, _RATIO, _WINDOW = 4, 4, 128
"""Requests of a part of a prefill, tokens that one latent stands for, and tokens of the window."""
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


_LATENT_TOKENS = 65536
"""Tokens of latents that are expanded at once: mla_attention.py, the workspace of prefills."""
_SPARSE_EXPANDS, _LOGITS_SINCE = (0, 17), (0, 19)
"""The first releases that were read which expand them for sparse attention, and which allocate the
logits of its indexer while they measure: not 0.15.1, and not 0.18.1."""
_LATENT_BLOCK, _BLOCKS_UNTIL = 128, (0, 28)
"""Tokens of which blocks are multiples where layers have states, and the first release that
expands no block of each request: 0.28.0, not 0.27.1."""


def compressed_copies(shape: ModelShape) -> int:
    """Return the bytes of weights of compressed attention that each rank has whole.

    What makes latents of queries and of tokens, and the queries of indexers, has one byte for each
    number, compressors and the weights of an indexer's heads two: fused_wqa_wkv with disable_tp in
    vllm/models/deepseek_v4/nvidia/model.py, fused_wkv_wgate in compressor.py, and ReplicatedLinear
    in attention.py there, of 0.22.0 to 0.31.0.
    """
    if not shape.compresses:
        return 0
    hidden, queries, near = shape.hidden or 0, shape.query_latent or 0, shape.quarter_layers or 0
    far = shape.layers - near - shape.window_layers
    index = queries * _INDEX_HEADS * _BLOCK + 2 * hidden * (_INDEX_HEADS + 4 * _BLOCK)
    compressors = 2 * hidden * _HEAD * (4 * near + 2 * far)
    return shape.layers * hidden * (queries + _HEAD) + near * index + compressors


def compressed_rotations(shape: ModelShape) -> int:
    """Count the numbers of 16 bits in its tables of rotations; layers with windows have another.

    DeepseekV4ScalingRotaryEmbedding in vllm/model_executor/layers/rotary_embedding/
    deepseek_scaling_rope.py; compress_rope_theta in vllm/models/deepseek_v4, of 0.22.0 to 0.31.0.
    """
    if not shape.compresses:
        return 0
    windows = shape.window_layers or shape.draft_layers
    return (2 if windows else 1) * (shape.context or 0) * _ROTATED * 2


class Request(NamedTuple):
    """The cache of one request, in bytes."""

    token_bytes: int
    """For each of its tokens."""
    request_bytes: int
    """What windows and states need beside that: with the tokens of a batch, as far as the request
    has so many."""


def compressed_workspace(length: int | None, tokens: int, release: Version | None) -> float:
    """Return the GiB that vLLM reserves for prefills.

    Either the latents of four requests, or the keys of the indexer, are in it: forward_mqa in
    vllm/models/deepseek_v4/nvidia/flashmla.py, and DeepseekV4Indexer. Experts use the same buffer,
    which stays while attention runs: vllm/v1/worker/workspace.py.
    """
    kept = -(-(length or 0) // _RATIO)
    latents = _REQUESTS * (kept + _WINDOW + tokens) * _HEAD * 2
    return max(latents, _expanded(length or 0, release) * _GATHERED * kept * _KEY) / GIB


def compressed_attention(
    shape: ModelShape, ranks: int, gpu: str, tokens: int, release: Version | None
) -> int:
    """Count the numbers of a layer while vLLM measures its peak.

    Queries and their result are filled up to the heads of the kernel, and the logits of the
    indexer are as large as they may get: attention.py in vllm/models/deepseek_v4, and vllm/
    model_executor/layers/sparse_attn_indexer.py. Where vLLM does not compile the model, its loop
    over layers holds the streams that a layer has got, and the indexer ends before there are
    queries: execute_in_parallel in vllm/utils/multi_stream_utils.py.
    """
    heads, width, hidden = -(-shape.heads // ranks), shape.head_dim or _HEAD, shape.hidden or 0
    sizes = _POWERS if gpu.startswith(_SM120) else (_FEW_HEADS, _MANY_HEADS)
    filled = next((size for size in sizes if heads <= size), heads)
    if release is not None and release < _EAGER_SINCE:
        both = filled + (heads if release < _FILLED_SINCE else filled)
        return tokens * ((shape.streams + 2) * hidden + both * width + _INDEX_QUERIES) + LOGITS
    queries = tokens * (filled + heads * (heads < filled)) * width
    held = 2 * (shape.streams + 1) * hidden + filled * width
    held += 2 * ((shape.query_latent or 0) + _HEAD) + _SCORES
    if release is not None and _SCRATCH[0] <= release < _SCRATCH[1]:
        held += filled * width + _OF_SCRATCH
    return tokens * held + max(queries, tokens * _INDEX_QUERIES + LOGITS)


def expanded_latents(
    shape: ModelShape, split: Split, release: Version | None, sequences: int
) -> int:
    """Count the numbers of latents that are expanded to heads of keys and values.

    vLLM allocates them while it measures, since 0.17 also for sparse attention, which expands none:
    forward_impl in vllm/model_executor/layers/attention/mla_attention.py. Sparse attention has the
    logits of its indexer in the same memory before: sparse_attn_indexer.py.
    """
    older = release is not None and release < _SPARSE_EXPANDS
    if shape.latent is None or (shape.index_dim is not None and older):
        return 0
    heads = -(-shape.heads // (split.attention or split.tensor))
    tokens = max(_LATENT_TOKENS, _tokens_of_blocks(shape, split, release, sequences))
    expanded = tokens * heads * sum(latent_widths(shape))
    unmeasured = release is not None and release < _LOGITS_SINCE
    return max(expanded, 0 if shape.index_dim is None or unmeasured else LOGITS)


def decode_logits(shape: ModelShape, gpu: str, length: int | None, rows: int) -> float:
    """Return the GiB of an indexer's logits while a batch of decodes runs; 0 without indexers.

    They have a column for each key of the longest request, however short the requests are:
    fp8_fp4_paged_mqa_logits in vllm/utils/deep_gemm.py, and in csrc/apis/attention.hpp of DeepGEMM;
    sparse_attn_indexer.py of 0.19.1 to 0.33.0. In compressed attention and with pools one key
    stands for 4 tokens. Kernels for GPUs of AMD were not read.
    """
    if length is None or gpu.startswith("AMD") or not (shape.compresses or shape.index_dim):
        return 0.0
    pooled = shape.compresses or shape.state_layers
    return rows * -(-length // (_POOL if pooled else 1)) * _OF_A_LOGIT / GIB


def latent_widths(shape: ModelShape) -> tuple[int, int]:
    """Return the widths of a head's keys without positions, and of its values."""
    width = shape.head_dim or _OF_A_HEAD
    return shape.key_dim or width, shape.value_dim or width


def _tokens_of_blocks(
    shape: ModelShape, split: Split, release: Version | None, sequences: int
) -> int:
    """Count the tokens of a block for each request, where states make blocks large.

    determine_chunked_prefill_workspace_size in mla_attention.py of 0.17.0 to 0.27.1. A block of
    latents in 16 bits is at least as large as the states of a layer: vllm/platforms/interface.py.
    """
    until = release is None or release >= _BLOCKS_UNTIL
    if not shape.latent or not shape.state_bytes or until:
        return 0
    states = shape.state_bytes / (shape.state_layers * split.tensor)
    block = math.ceil(states / (_LATENT_BLOCK * shape.latent * 2)) * _LATENT_BLOCK
    return sequences * block


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
