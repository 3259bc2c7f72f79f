"""Bytes of a token in the KV cache, by data type (`--kv-cache-dtype`).

Sources: vllm/config/cache.py for the names; vllm/v1/attention/backends/{triton_attn,flashinfer,
turboquant_attn,ultraquant_attn}.py customize_spec and vllm/model_executor/layers/{quantization/
turboquant/config.py,attention/mla_attention.py} for the bytes; sglang/srt/model_executor/
pool_configurator.py _compute_cell_size, and sglang 0.5.9 for fp4_e2m1.
"""

from collections.abc import Mapping
from types import MappingProxyType

from kthena_components.core.values.dataclass import dataclass
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
