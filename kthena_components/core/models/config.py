"""A model's shape, read from its config.json as Hugging Face writes it.

A reader never raises: whatever the file holds, the answer is a shape, or unknown with a reason.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.known import Unknown
from kthena_components.core.models.shape import ModelShape

_MOST = 2**31 - 1
_EXPERTS = ("num_experts", "n_routed_experts", "num_local_experts")
_SOURCE = "config.json"


def shape_from_config(config: Mapping[str, Any]) -> ModelShape | Unknown:
    """Read the shape of the language model that a config.json describes.

    A model that sees or hears keeps its language model's sizes in `text_config`; those of
    `vision_config` are about something else and never read.
    """
    text = _map(config.get("text_config")) or config
    sizes = {key: _size(text.get(key)) for key in ("num_attention_heads", "num_hidden_layers")}
    missing = next((key for key, size in sizes.items() if size is None), None)
    heads, layers = sizes.values()
    if missing is not None or heads is None or layers is None:
        return Unknown(f"its {_SOURCE} states no {missing}")
    experts = next((n for n in (_size(text.get(key)) for key in _EXPERTS) if n is not None), 0)
    wide, narrow = _size(text.get("intermediate_size")), _size(text.get("moe_intermediate_size"))
    if narrow is None:
        expert_ffn, ffn = wide, None  # Mixtral, gpt-oss and MiniMax-M2 have no dense layers
    else:
        expert_ffn, ffn = narrow, wide if _has_dense_layers(text) else None
    name = config.get("_name_or_path")
    return ModelShape(
        name=name if isinstance(name, str) and name else _SOURCE,
        heads=heads,
        kv_heads=_kv_heads(text, heads),
        layers=layers,
        hidden=_size(text.get("hidden_size")),
        ffn=ffn if experts else wide,
        experts=experts,
        expert_ffn=expert_ffn if experts else None,
        fp8_block=_block(config) or _block(text),
        vocab=_size(text.get("vocab_size")),
        head_dim=_size(text.get("head_dim")),
        latent=_latent(text),
        context=_size(text.get("max_position_embeddings")),
        source=_SOURCE,
    )


def _kv_heads(text: Mapping[str, Any], heads: int) -> int | None:
    """Count the heads of keys and values; as many as of queries where it is not said.

    A list of counts, one for each layer, is more than one number can say, and is not judged.
    """
    if _size(text.get("kv_lora_rank")) is not None:
        return None
    stated = text.get("num_key_value_heads")
    return heads if stated is None else _size(stated)


def _latent(text: Mapping[str, Any]) -> int | None:
    """Count what a layer of latent attention keeps of a token; both parts must be stated."""
    rank, rope = _size(text.get("kv_lora_rank")), _size(text.get("qk_rope_head_dim"))
    return None if rank is None or rope is None else rank + rope


def _has_dense_layers(text: Mapping[str, Any]) -> bool:
    """Tell whether some layers of a model with experts have none."""
    first = _size(text.get("first_k_dense_replace"))
    only = text.get("mlp_only_layers")
    step = _size(text.get("decoder_sparse_step")) or 1
    return first is not None or (isinstance(only, list | tuple) and bool(only)) or step > 1


def _block(config: Mapping[str, Any]) -> int | None:
    """Give the edge of FP8 blocks, the larger one of two."""
    quantised = _map(config.get("quantization_config"))
    if quantised.get("quant_method", "fp8") != "fp8":
        return None
    edges = quantised.get("weight_block_size")
    sizes = [_size(edge) for edge in edges] if isinstance(edges, list | tuple) else []
    return max((size for size in sizes if size is not None), default=None)


def _size(value: object) -> int | None:
    """Give a count above zero, None for whatever is not one. 8.0 is how policies see 8."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 1 <= value <= _MOST and value == int(value) else None


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
