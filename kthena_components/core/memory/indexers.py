"""The indexers of sparse attention (DSA: DeepSeek-V3.2, GLM-5), and how SGLang stores its cache.

An indexer chooses the tokens that a layer attends to. Each rank has all of its weights, and for
each token and layer a key in FP8 with a scale of 4 bytes for 128 numbers:
vllm/model_executor/models/deepseek_v2.py Indexer and DeepseekV32IndexerCache, since vLLM 0.11;
sglang/srt/layers/attention/nsa/nsa_indexer.py, since SGLang 0.5.3.

SGLang divides its memory by the bytes that it counts for a token, and may allocate more:
sglang/srt/mem_cache/memory_pool.py NSATokenToKVPool, and profile_max_num_token or
get_cell_size_per_token of sglang/srt/model_executor, as the wheels of 0.5.3 to 0.5.23 have them.
"""

from collections.abc import Collection
from dataclasses import replace

from kthena_components.core.memory.cache_types import CacheType, cache_type
from kthena_components.core.memory.sizes import GIB, Split
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
_GATHERED, _LATENTS_SINCE = 40, (0, 13)
"""Keys for each token of the longest request that vLLM reserves, as get_max_prefill_buffer_size of
vllm/v1/attention/backends/mla/indexer.py has them, and the first release that reserves latents."""
_EXPANDED = 5
"""Latents in 16 bits for each such token with a cache in FP8: get_prefill_workspace_size of
vllm/v1/attention/backends/mla/flashmla_sparse.py, which runs on Hopper."""
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
    keys = _GATHERED * index_bytes(shape)
    older = release is not None and release < _LATENTS_SINCE
    latents = _EXPANDED * shape.latent * 2 if fp8 and not older and gpu.startswith(_HOPPER) else 0
    return length * max(keys, latents) / GIB


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
