"""Which layers of a model store every token, and which have experts, read from config.json.

Sources: transformers 5.23.0, configuration_*.py of qwen3_next, qwen3_5, gemma3, gpt_oss, mimo_v2,
llama4, deepseek_v3, glm_moe_dsa, nemotron_h; vllm/model_executor/models of the same names.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kthena_components.core.models.counts import first_size, size_of
from kthena_components.core.values.read import sequence

_FULL = frozenset({"full_attention", "deepseek_sparse_attention"})
_STATE = "linear_attention"
_UNEVEN = (
    "attention_other_setting", "global_head_dim", "num_global_key_value_heads",
    "swa_num_key_value_heads", "swa_head_dim",
)  # fmt: skip
"""Keys of models whose layers with all tokens have other heads than `num_key_value_heads` says."""
_MIXED = (
    "attention_chunk_size", "block_configs", "compress_ratios", "hybrid_layer_pattern",
    "hybrid_override_pattern", "layers_block_type", "linear_attn_config",
)  # fmt: skip
"""Keys of models whose layers differ, in another way than `layer_types` states."""
_OFF_BY_DEFAULT = ("qwen2", "qwen3")
"""Types of models that use their window only if `use_sliding_window` says so."""
_FIRST = ("first_k_dense_replace", "moe_layer_start_index")
"""Keys for the number of dense layers at the start."""
_STEPS = (
    "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_freq", "moe_layer_interval",
)  # fmt: skip
"""Every n-th layer has experts, as Qwen, Llama 4, DeepSeek and ERNIE call it."""
_DIGITS = 4
"""Maximum digits of a layer's index."""
LAYER_KEYS = (
    "full_attention_interval", "layer_types", "max_window_layers", "mlp_layer_types",
    "mlp_only_layers", "moe_layers", "moe_layers_enum", "sliding_window",
    "sliding_window_pattern", "use_sliding_window",
    *_FIRST, *_STEPS, *_UNEVEN, *_MIXED,
)  # fmt: skip
"""The keys that this module reads."""


class Stored(NamedTuple):
    """How the layers of a model store tokens."""

    every_layer: bool = True
    """Whether each one stores every token."""
    full: int | None = None
    """Layers that do, if not all. None: not known, or their heads differ from those of others."""
    states: int = 0
    """Layers with a state of fixed size."""


def stored_tokens(text: Mapping[str, Any], layers: int) -> Stored:
    """Read how the layers of a model store tokens.

    Args:
        text: The config.json, or its `text_config`.
        layers: The number of layers.
    """
    types = _texts(text.get("layer_types"))[:layers]
    uneven = any(text.get(key) is not None for key in _UNEVEN)
    if types and not _FULL.issuperset(types):
        full = sum(each in _FULL for each in types)
        return Stored(False, None if uneven else full, types.count(_STATE))
    if uneven or any(text.get(key) is not None for key in _MIXED):
        return Stored(False)
    if types:
        return Stored()
    every = size_of(text.get("full_attention_interval")) or 1
    if every > 1:
        return Stored(False, layers // every, layers - layers // every)
    if _has_window(text, layers):
        every = size_of(text.get("sliding_window_pattern")) or 1
        return Stored(False, layers // every if every > 1 else None)
    return Stored()


def _has_window(text: Mapping[str, Any], layers: int) -> bool:
    kind, used = str(text.get("model_type", "")), text.get("use_sliding_window")
    if used is False or (used is None and kind.startswith(_OFF_BY_DEFAULT)):
        return False
    if used is True and (size_of(text.get("max_window_layers")) or 0) >= layers:
        return False  # that many layers at the start have no window
    window, length = (size_of(text.get(k)) for k in ("sliding_window", "max_position_embeddings"))
    return window is not None and (length is None or window < length)


def layers_without_experts(text: Mapping[str, Any], layers: int) -> int:
    """Count the layers without experts in a model with experts.

    Args:
        text: The config.json, or its `text_config`.
        layers: The number of layers.
    """
    pattern, blocks = text.get("hybrid_override_pattern"), _texts(text.get("layers_block_type"))
    if isinstance(pattern, str):
        return layers - pattern[:layers].count("E")
    if blocks:
        return layers - blocks[:layers].count("moe")
    return _dense(text, layers)


def has_dense_layers(text: Mapping[str, Any], layers: int) -> bool:
    """Return whether some layers have a dense feed-forward part in place of experts."""
    return _dense(text, layers) > 0


def _dense(text: Mapping[str, Any], layers: int) -> int:
    """Count those layers.

    Lists by layer may be longer than the model: the rest is for layers that draft tokens. Sources:
    transformers 5.23.0, configuration_*.py of minimax_m3_vl, llama4, step3p7, deepseek_v3,
    ernie4_5_moe and mimo_v2_flash; vllm/model_executor/models/{step3p5,mimo_v2,deepseek_v2}.py.
    """
    types, by_layer = _texts(text.get("mlp_layer_types")), sequence(text.get("moe_layer_freq"))
    if types:
        return types[:layers].count("dense")
    if by_layer:
        return sum(not each for each in by_layer[:layers])
    if sparse := _sparse_layers(text):
        return layers - sum(layer < layers for layer in sparse)
    first = first_size(text, _FIRST) or 0
    step = max(size_of(text.get(key)) or 1 for key in _STEPS)
    rest = max(layers - first, 0)
    listed = len(sequence(text.get("mlp_only_layers")))
    return min(first + listed + rest - rest // step, layers)


def _sparse_layers(text: Mapping[str, Any]) -> set[int]:
    """Return the listed layers with experts; Step's files list them in one text."""
    stated = text.get("moe_layers") or text.get("moe_layers_enum")
    parts = stated.split(",") if isinstance(stated, str) else sequence(stated)
    return {layer for layer in map(_layer, parts) if layer is not None}


def _layer(part: object) -> int | None:
    """Read the index of a layer, from 0."""
    if isinstance(part, str):
        digits = part.strip()
        fits = digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS
        return int(digits) if fits else None
    return 0 if part == 0 else size_of(part)


def _texts(value: object) -> list[str]:
    return [str(each) for each in sequence(value)]
