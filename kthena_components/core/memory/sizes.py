"""Weights, KV cache and overhead of one GPU. Sizes in GiB, those of the cache in bytes.

Bytes of a token in the KV cache, by data type (`--kv-cache-dtype`).

Sources: vllm/config/cache.py for the names; vllm/v1/attention/backends/{triton_attn,flashinfer,
turboquant_attn,ultraquant_attn}.py customize_spec and vllm/model_executor/layers/{quantization/
turboquant/config.py,attention/mla_attention.py} for the bytes; sglang/srt/model_executor/
pool_configurator.py _compute_cell_size, and sglang 0.5.9 for fp4_e2m1.

Weights, KV cache and overhead of one GPU. Sizes in GiB, those of the cache in bytes.

Sources: vllm/v1/kv_cache_interface.py and sglang/srt/configs/model_config.py for a token's size;
llm-d-benchmark config_explorer capacity_planner.py, KAITO's pkg/workspace/estimator/nodesestimator
and AIConfigurator's sdk/memory.py for the overhead, which they measure or estimate differently: the
numbers here are between them.
"""

import math
from collections.abc import Collection, Mapping
from types import MappingProxyType

from kthena_components.core.models import ModelShape
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import Version
from kthena_components.core.values.unknown import Unknown

_LONGEST = 40
"""Maximum length of a name in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheType:
    """How the keys and values of a token are stored."""

    keys: int = 16
    """Bits per number of the keys, or of the latent."""
    values: int = 16
    """Bits per number of the values."""
    block: int = 0
    """Numbers that share a scale of one byte. 0: no scales."""
    key_scale: int = 0
    """Additional bytes per head for keys, or per latent."""
    value_scale: int = 0
    """Additional bytes per head for values, or once more per latent."""
    packed: bool = False
    """Whether keys and values share one slot, of an even size. vLLM then keeps the layers at both
    ends of the model in 16 bits, and has no such slot for a latent.
    """
    heads_only: bool = False
    """Whether it only supports attention with KV heads."""
    latent_bytes: int | None = None
    """Bytes of the latent of one layer, in a type for latent attention only."""

    def of_head(self, width: int) -> int | None:
        """Return the bytes of the keys and values of one head; None without support for heads."""
        if self.latent_bytes is not None:
            return None
        keys = _packed(width, self.keys, self.block) + self.key_scale
        values = _packed(width, self.values, self.block) + self.value_scale
        odd = (keys + values) % 2 if self.packed else 0
        return keys + values + odd

    def of_latent(self, width: int) -> int | None:
        """Return the bytes of a latent in one layer; None without support for latent attention."""
        if self.packed or self.heads_only:
            return None
        if self.latent_bytes is not None:
            return self.latent_bytes
        return _packed(width, self.keys, self.block) + self.key_scale + self.value_scale


def _packed(width: int, bits: int, block: int) -> int:
    return -(-width * bits // 8) + (width // block if block else 0)


NATIVE = CacheType()
"""16 bits per number."""
_FP8 = CacheType(keys=8, values=8)
_HEAD8 = CacheType(keys=8, values=8, key_scale=4, value_scale=4)
_FP4 = CacheType(keys=4, values=4, block=16)
_TYPES: Mapping[str, CacheType] = MappingProxyType(
    {
        "auto": NATIVE,
        "float16": NATIVE,
        "bfloat16": NATIVE,
        "bf16": NATIVE,
        "fp8": _FP8,
        "fp8_e4m3": _FP8,
        "fp8_e5m2": _FP8,
        "fp8_inc": _FP8,
        "fp8_ds_mla": CacheType(latent_bytes=656),
        "nvfp4_ds_mla": CacheType(latent_bytes=352),
        "fp8_per_token_head": _HEAD8,
        "int8_per_token_head": _HEAD8,
        "int4_per_token_head": CacheType(keys=4, values=4, key_scale=4, value_scale=4),
        "nvfp4": _FP4,
        "nvfp4_4over6": _FP4,
        "fp4_e2m1": _FP4,
        "fp4_mx_block16": _FP4,
        "mxfp8": CacheType(keys=8, values=8, block=32, heads_only=True),
        "turboquant_k8v4": CacheType(keys=8, values=4, value_scale=4, packed=True),
        "turboquant_4bit_nc": CacheType(keys=4, values=4, key_scale=2, value_scale=4, packed=True),
        "turboquant_k3v4_nc": CacheType(keys=3, values=4, key_scale=2, value_scale=4, packed=True),
        "turboquant_3bit_nc": CacheType(keys=3, values=3, key_scale=2, value_scale=4, packed=True),
        "ultraquant_4bit": CacheType(keys=4, values=4, block=32, packed=True),
    }
)
"""Types by the names that vLLM and SGLang give them. vLLM's octave types are left out: their size
depends on the rotated part of a head, which the table of models does not have."""


def cache_type(name: str | None) -> CacheType | Unknown:
    """Find a type by its name; None means the engine's default."""
    found = NATIVE if name is None else _TYPES.get(name)
    return found or Unknown(f"the size of a KV cache of '{str(name)[:_LONGEST]}' is not known")


def resolved_type(
    name: str | Unknown | None, shape: ModelShape, release: Version | None
) -> str | Unknown | None:
    """Return the type of vLLM's cache; the default is what NVIDIA's checkpoints state.

    Their `kv_cache_quant_algo` is FP8: resolve_kv_cache_dtype_string in vllm/utils/torch_utils.py
    of 0.14.1 to 0.33.0, not of 0.13.0.
    """
    older = release is not None and release < _BY_CHECKPOINT_SINCE
    states = is_of_modelopt(shape) and not older
    return "fp8" if states and name in (None, "auto") else name


def is_of_modelopt(shape: ModelShape) -> bool:
    """Return whether NVIDIA has quantised the checkpoint, which it does with ModelOpt."""
    return shape.name.startswith(_STATES_TYPE) and shape.dtype in _MODELOPT


_BY_CHECKPOINT_SINCE, _STATES_TYPE = (0, 14), "nvidia/"
"""The first release that reads the cache's type from a checkpoint, and whose checkpoints state it:
those that ModelOpt has quantised, as their maker writes them."""
GIB = 2**30
_BITS = {
    "bf16": 16.0,
    "fp8": 8.0,
    "int8": 8.0,
    "mxfp8": 8.25,
    "nvfp4": 4.5,
    "mxfp4": 4.25,
    "int4": 4.5,
}
"""Bits of one weight with its share of the scales: 8 bits per 32 numbers in the mx formats and per
16 in nvfp4, 16 bits per 32 in int4; negligible in fp8 and int8.
"""
_ENDS = 2
"""Layers at each end of a model that vLLM does not pack."""
_BASE, _SHARE, _LEAST, _EXPERTS = 2.3, 0.05, 3.5, 8.0
"""Overhead in GiB: a base and a share of the weights, not below the least; more with experts."""
_INT, _MODELOPT = ("int4", "int8"), ("fp8", "nvfp4")
_FORMS: Mapping[str, Collection[str]] = MappingProxyType(
    {
        "fp8": ("fp8",),
        "fbgemm_fp8": ("fp8",),
        "w8a8_fp8": ("fp8",),
        "deepseek_v4_fp8": ("fp8",),
        "mxfp8": ("mxfp8",),
        "mxfp4": ("mxfp4",),
        "gpt_oss_mxfp4": ("mxfp4",),
        "w8a8_int8": ("int8",),
        "blockwise_int8": ("int8",),
        **dict.fromkeys(("awq", "awq_marlin", "auto_awq"), ("int4",)),
        **dict.fromkeys(("gptq", "gptq_marlin", "auto_gptq", "marlin", "moe_wna16"), _INT),
        **dict.fromkeys(("auto-round", "auto_round", "inc"), _INT),
        "modelopt": (*_MODELOPT, "mxfp8"),
        "modelopt_mixed": _MODELOPT,
        "modelopt_fp8": ("fp8",),
        "modelopt_fp4": ("nvfp4",),
        "modelopt_mxfp8": ("mxfp8",),
        "petit_nvfp4": ("nvfp4",),
        "minimax_m3_nvfp4": ("nvfp4",),
        "compressed-tensors": ("fp8", "mxfp8", "nvfp4", "mxfp4", *_INT),
        "quark": ("fp8", "mxfp8", "mxfp4", *_INT),
        "quark_mxfp4": ("mxfp4",),
        "ascend": _INT,
    }
)
"""Formats of a checkpoint that a method loads without conversion. The table of models states the
format, not the method that made it: if they do not match, the engine reports it. SGLang's
modelopt_fp4 quantises the experts of an FP8 checkpoint again, so FP8 is not in its list. Sources:
vllm/model_executor/layers/quantization, get_name and override_quantization_method of each, and
vllm/config/model.py _verify_quantization (a checkpoint of AutoRound is loaded by `inc`, whatever
method is named: override_quantization_method of inc.py in 0.19 and 0.22); sglang/srt/layers/
quantization, and sglang/srt/configs/model_config.py _verify_quantization."""
_HALF, _QUARTER = 0.5, 0.25
_ONLINE: Mapping[str, float] = MappingProxyType(
    {
        **dict.fromkeys(("fp8", "ptpc_fp8", "w8a8_fp8", "mxfp8", "experts_int8"), _HALF),
        **dict.fromkeys(("fp8_per_tensor", "fp8_per_block", "fp8_per_channel"), _HALF),
        "int8_per_channel_weight_only": _HALF,
        **dict.fromkeys(("bitsandbytes", "rtn", "mxfp4", "quark_mxfp4"), _QUARTER),
        **dict.fromkeys(("nvfp4_per_token", "nvfp4_online", "quark_int4fp8_moe"), _QUARTER),
        "ascend": _QUARTER,
    }
)
"""Minimum remaining share of bf16 weights that are quantised while loading: embeddings stay in 16
bits, and scales are not counted. `ascend` loads a copy of the model in 8 or 4 bits, often under its
name. Sources: vllm/config/quantization.py _ONLINE_SHORTHANDS;
vllm/model_executor/layers/quantization/online; sglang/srt/layers/quantization; vllm-ascend's
quantization guide."""
_EXPERTS_ONLY = ("experts_int8", "int8_per_channel_weight_only", "nvfp4_per_token", "nvfp4_online")
"""Methods that only quantise experts."""
_REFUSED: Mapping[str, tuple[int, ...]] = MappingProxyType(
    {"rtn": (0, 15), "ptpc_fp8": (0, 19), "bitsandbytes": (0, 28), "fp8": (0, 31)}
)
"""The first releases of vLLM that no longer quantise by a method while loading, and reject it: fp8
for a checkpoint that is not in FP8. Source: its wheels from 0.6.0 to 0.33.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """How many ranks share the parts of a model."""

    tensor: int = 1
    pipeline: int = 1
    experts: int | None = None
    """Ranks that share the experts of one layer. None: those of the tensor group."""
    attention: int | None = None
    """Ranks that share the KV heads. None: those of the tensor group."""
    decode_context: int = 1
    """Ranks of the tensor group that share the tokens of the cache."""


def part_left(method: str, shape: ModelShape, vllm: tuple[int, ...] | None) -> float | Unknown:
    """Return the minimum share of a model's weights that remains after quantisation.

    Args:
        method: The method's name, in any case.
        shape: The model.
        vllm: The release of vLLM; None for another engine or an unknown release.
    """
    name = method.lower()
    if shape.dtype in _FORMS.get(name, ()):
        return 1.0
    part = _ONLINE.get(name) if shape.dtype == "bf16" else None
    if part is None:
        return Unknown(
            f"the table of models has no weights of {shape.name} in '{method[:_LONGEST]}'"
        )
    refused = _REFUSED.get(name)
    if vllm is not None and refused is not None and vllm >= refused:
        release = ".".join(map(str, vllm))
        return Unknown(f"vLLM {release} does not quantise by '{name}' while it loads")
    return 1.0 if name in _EXPERTS_ONLY and shape.experts == 0 else part


def weights_on_gpu(shape: ModelShape, split: Split, gib: float) -> float:
    """Return the GiB of weights per GPU: the mean, so the fullest GPU has at least as many.

    Args:
        shape: The model.
        split: How it is split.
        gib: All its weights.
    """
    return _of_a_stage(shape, split, gib) / split.pipeline


def fullest_weights(shape: ModelShape, split: Split, gib: float) -> float:
    """Return the weights of a GPU in the fullest stage: layers are not split between stages."""
    return _of_a_stage(shape, split, gib) * stage_layers(shape, split) / shape.layers


def _of_a_stage(shape: ModelShape, split: Split, gib: float) -> float:
    """Return the weights of one GPU if there were only one stage."""
    experts = min(expert_weights(shape), gib)
    return (gib - experts) / split.tensor + experts / (split.experts or split.tensor)


def bytes_of(dtype: str) -> float:
    """Return the bytes of one weight in a format of the table of models."""
    return _BITS[dtype] / 8


def expert_weights(shape: ModelShape) -> float:
    """Return the GiB of all experts; 0 if a size is not given."""
    sizes = (shape.experts, shape.expert_state, shape.expert_ffn)
    bits = _BITS.get(shape.dtype or "")
    if bits is None or not all(sizes):
        return 0.0
    numbers = (size or 0 for size in sizes)
    layers = max(shape.layers - shape.dense_layers + shape.draft_layers, 0)
    return layers * shape.expert_matrices * math.prod(numbers) * bits / 8 / GIB


def spreads_unknown_experts(shape: ModelShape, split: Split) -> bool:
    """Return whether more ranks share the experts than the rest, and no size of theirs is known."""
    spread = split.experts not in {None, split.tensor}
    return spread and shape.experts != 0 and not expert_weights(shape)


def stage_layers(shape: ModelShape, split: Split) -> int:
    """Count the layers of the fullest stage."""
    return -(-shape.layers // split.pipeline)


def cache_per_token(shape: ModelShape, kind: CacheType = NATIVE) -> int | None:
    """Return the bytes of a token in the cache of one whole model, None if unknown.

    Args:
        shape: The model. Layers with a sliding window count like the others.
        kind: How its numbers are stored.
    """
    return cache_per_token_on_gpu(shape, Split(), kind)


def cache_per_token_on_gpu(shape: ModelShape, split: Split, kind: CacheType = NATIVE) -> int | None:
    """Return the bytes of a token on a GPU of the fullest stage, None if unknown.

    The ranks of the attention share the KV heads, at least one for each. Every rank has a full copy
    of what latent attention stores.
    """
    each, whole = _of_a_layer(shape, split, kind), _of_a_layer(shape, split, NATIVE)
    if each is None or whole is None:
        return None
    total = stage_layers(shape, split) * each
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
    """Return the bytes of the first stage, whose first layers keep 16 bits.

    The last stage has as many of them, and no more layers: vLLM adds the remainder to the stages
    before it. Source: vllm/distributed/utils.py get_pp_indices.
    """
    ends = min(_ENDS, shape.layers // 2) * (2 if split.pipeline == 1 else 1)
    layers = shape.layers if split.pipeline == 1 else (shape.layers + 1) // split.pipeline
    ends = min(ends, layers)
    return (layers - ends) * each + ends * whole


def overhead(shape: ModelShape, weights: float) -> float:
    """Estimate other memory on a GPU: activations, CUDA graphs and library buffers.

    Args:
        shape: The model.
        weights: GiB of weights on the same GPU.

    A model that may have experts counts as one with experts.
    """
    return max(_BASE + _SHARE * weights, _LEAST) if shape.experts == 0 else _EXPERTS


def captured_sizes(largest: int, listed: Collection[int] = ()) -> int:
    """Count the batch sizes that are captured: 1, 2, 4, each 8th to 256, each 16th beyond it.

    A list of sizes, each of them once, replaces these: vllm/config/vllm.py _set_cudagraph_sizes.
    """
    if listed:
        return sum(size <= largest for size in set(listed))
    small = sum(size <= largest for size in (1, 2, 4))
    return small + min(largest, 256) // 8 + max(largest - 256, 0) // 16


def captured_exchanges(shape: ModelShape, split: Split, graphs: int) -> float:
    """Return GiB that NCCL takes for the exchanges of data-parallel copies in graphs.

    Experts gather states, weights, numbers of the chosen experts and, of weights in 8 and 4 bits,
    scales of all copies, and scatter a sum: dispatch and combine in vllm/distributed/
    device_communicators/all2all.py, prepare_finalize/naive_dp_ep.py. With several tensor ranks,
    parts of a sequence are gathered as well. NCCL registers each buffer of a captured exchange,
    and takes a page for it: ncclIpcGraphRegisterBuffer and ncclCudaCallocAsync in its
    transport/p2p.cc and include/alloc.h (vllm#5091). vLLM measures the two largest graphs only,
    whose pages smaller graphs may not need.
    """
    each = _EXCHANGES + (shape.dtype in _SCALED) + (split.tensor > 1)
    return graphs * (shape.layers - (shape.dense_layers or 0)) / split.pipeline * each * _PAGE


_EXCHANGES, _SCALED, _PAGE = 4, ("fp8", "nvfp4"), 2 / 1024
"""Exchanges of a layer between data-parallel copies, formats with one more, and GiB of a page."""
