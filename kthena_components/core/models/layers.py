"""Which layers of a model store every token, and which have experts, read from config.json.

Sources: transformers 5.23.0, configuration_*.py of qwen3_next, qwen3_5, gemma3, gpt_oss, mimo_v2,
llama4, deepseek_v3, glm_moe_dsa, nemotron_h; vllm/model_executor/models of the same names.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

_FULL = frozenset({"full_attention", "deepseek_sparse_attention"})
_STATE = "linear_attention"
_MOST = 2**31
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
LAYER_KEYS = (
    "full_attention_interval", "hybrid_override_pattern", "layer_types", "layers_block_type",
    "max_window_layers", "sliding_window", "sliding_window_pattern", "use_sliding_window",
    *_UNEVEN, *_MIXED,
)  # fmt: skip
"""The keys that this module reads beside those of `config`."""


class Stored(NamedTuple):
    """How the layers of a model store tokens."""

    every_layer: bool = True
    """Whether each one stores every token."""
    full: int | None = None
    """Layers that do, if not all. None: not known, or their heads differ from those of others."""
    states: int = 0
    """Layers with a state of fixed size."""


def stored(text: Mapping[str, Any], layers: int) -> Stored:
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
    every = _number(text.get("full_attention_interval"))
    if not types and every > 1:
        return Stored(False, layers // every, layers - layers // every)
    if not types and _has_window(text, layers):
        every = _number(text.get("sliding_window_pattern"))
        return Stored(False, layers // every if every > 1 else None)
    return Stored()


def _has_window(text: Mapping[str, Any], layers: int) -> bool:
    kind, used = str(text.get("model_type", "")), text.get("use_sliding_window")
    if used is False or (used is None and kind.startswith(_OFF_BY_DEFAULT)):
        return False
    window, length = (_number(text.get(k)) for k in ("sliding_window", "max_position_embeddings"))
    all_full = used is True and _number(text.get("max_window_layers")) >= layers
    return 0 < window < (length or window + 1) and not all_full


def dense_layers(
    text: Mapping[str, Any], layers: int, sparse: set[int], first: int, step: int
) -> int:
    """Count the layers without experts, in a model with experts.

    Args:
        text: The config.json, or its `text_config`.
        layers: The number of layers.
        sparse: The layers with experts, if the file lists them.
        first: Dense layers at the start.
        step: Each such layer after them has experts.
    """
    types, by_layer = _texts(text.get("mlp_layer_types")), text.get("moe_layer_freq")
    pattern, blocks = text.get("hybrid_override_pattern"), _texts(text.get("layers_block_type"))
    if isinstance(pattern, str):
        return layers - pattern[:layers].count("E")
    if blocks:
        return layers - blocks[:layers].count("moe")
    if types:
        return types[:layers].count("dense")
    if isinstance(by_layer, list | tuple):
        return sum(not each for each in by_layer[:layers])
    if sparse:
        return layers - sum(layer < layers for layer in sparse)
    listed = text.get("mlp_only_layers")
    dense = first + (len(listed) if isinstance(listed, list | tuple) else 0)
    rest = max(layers - first, 0)
    return min(dense + rest - rest // max(step, 1), layers)


def _texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list | tuple) else []


def _number(value: object) -> int:
    """Return a count above zero, else 0. Policies see 8 as 8.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if 1 <= value < _MOST else 0
