"""Reads the parts of a config.json: its counts, kinds of layers, format and longest request.

Sources: transformers 5.23.0, configuration_*.py of qwen3_next, qwen3_5, gemma3, gpt_oss, mimo_v2,
llama4, deepseek_v3, glm_moe_dsa, nemotron_h; vllm/model_executor/models of the same names;
vllm/model_executor/layers/quantization (fp8.py, modelopt.py, mxfp4.py, awq.py, gptq.py,
compressed_tensors/compressed_tensors.py); compressed-tensors, CompressionFormat.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kthena_components.core.values.read import mapping, sequence

_MOST = 2**31 - 1


def size_of(value: object) -> int | None:
    """Return a count above zero, else None. Policies see 8 as 8.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 1 <= value <= _MOST and value == int(value) else None


def first_size(text: Mapping[str, Any], keys: Iterable[str]) -> int | None:
    """Return the first count among some keys; of ERNIE's list of counts, the first."""
    values = (text.get(key) for key in keys)
    firsts = (value[0] if isinstance(value, list | tuple) and value else value for value in values)
    return next((size for size in map(size_of, firsts) if size is not None), None)


def layers_of(text: Mapping[str, Any]) -> int | None:
    """Count the layers; Nemotron's newer files list them instead."""
    return size_of(text.get("num_hidden_layers")) or size_of(
        len(sequence(text.get("layers_block_type")))
    )


_FULL = frozenset({"full_attention", "deepseek_sparse_attention"})
_STATE = "linear_attention"
FULL_HEADS, FULL_WIDTH = "num_global_key_value_heads", "global_head_dim"
"""Keys for the KV heads of layers with all tokens and their width, where others have others."""
_UNEVEN = (
    "attention_other_setting", "num_kv_shared_layers", "swa_num_key_value_heads", "swa_head_dim",
)  # fmt: skip
"""Keys of models whose layers with all tokens have other heads than `num_key_value_heads` says, or
share what they store."""
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
    *_FIRST, *_STEPS, *_UNEVEN, *_MIXED, FULL_HEADS, FULL_WIDTH,
)  # fmt: skip
"""The keys about layers."""
STATE_KEYS = (
    "linear_conv_kernel_dim", "linear_key_head_dim", "linear_num_key_heads",
    "linear_num_value_heads", "linear_value_head_dim", "mamba_ssm_dtype",
)  # fmt: skip
"""The keys about states of linear attention."""
MAMBA_KEYS = (
    "conv_kernel", "ssm_state_size", "n_groups", "mamba_num_heads", "mamba_head_dim",
    "mamba_ssm_cache_dtype",
)  # fmt: skip
"""The same of Mamba 2, in the same order: Nemotron-H."""
_ROTATED, _SHARE = "rotary_dim", "partial_rotary_factor"
_OTHER_BASES = ("rope_local_base_freq", "swa_rope_theta")
"""Keys for the rotated part of a head, as a width and as a share, and for the base of rotations in
layers with a window, which then have their own table: Gemma 3 and MiMo-V2."""
ROTATED_KEYS = (_ROTATED, _SHARE, *_OTHER_BASES)
_LINEAR, _KINDS = "linear_attn_config", ("full_attn_layers", "kda_layers")
_OF_KDA = ("short_conv_kernel_size", "head_dim", "num_heads")
"""Where Kimi-Linear and Kimi-K3 list their layers, and the sizes of Kimi Delta Attention."""
_BLOCKS = {"*": "full_attention", "M": _STATE, "attention": "full_attention", "mamba": _STATE}
"""Layers of Nemotron-H in `hybrid_override_pattern`, and by the names of its newer files."""
_SSM, _HALVES, _CONVOLVED = 4, ("bfloat16", "float16"), 2
"""Bytes of a number of a state, the types with half of them, and bytes of a convolution's."""


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
    types = (_texts(text.get("layer_types")) or _blocks(text) or _kinds(text))[:layers]
    one_of_two = (text.get(FULL_HEADS) is None) != (text.get(FULL_WIDTH) is None)
    uneven = one_of_two or any(text.get(key) not in (None, 0) for key in _UNEVEN)
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


def state_bytes(text: Mapping[str, Any], layers: int) -> int | None:
    """Return the bytes of the states of one request in gated delta nets; None if not given.

    A head of Kimi Delta Attention keeps the square of its width: kda_state_shape in the same file.
    Each value head keeps a matrix of its width times the width of a key head, and the convolution
    its last inputs: gated_delta_net_state_shape in vllm/model_executor/layers/mamba/mamba_utils.py,
    Mamba2StateShape in sglang/srt/configs/mamba_utils.py, both of 16 bits with states of 32. A
    head of Mamba 2 keeps its width for each number of the state: mamba2_state_shape there.
    """
    for keys in (STATE_KEYS, MAMBA_KEYS):
        kernel, width, heads, values, wide = (size_of(text.get(key)) for key in keys[:5])
        if layers and kernel and width and heads and values and wide:
            each = _SSM // 2 if text.get(keys[5]) in _HALVES else _SSM
            convolved = (2 * heads * width + values * wide) * (kernel - 1) * _CONVOLVED
            return layers * (values * width * wide * each + convolved)
    kernel, width, heads = (size_of(mapping(text.get(_LINEAR)).get(key)) for key in _OF_KDA)
    if layers and kernel and width and heads:
        return layers * heads * width * (width * _SSM + 3 * (kernel - 1) * _CONVOLVED)
    return None


def _blocks(text: Mapping[str, Any]) -> list[str]:
    """Return the types of Nemotron-H's layers; none of other models."""
    pattern = text.get("hybrid_override_pattern")
    blocks = list(pattern) if isinstance(pattern, str) else _texts(text.get("layers_block_type"))
    return [_BLOCKS.get(block, block) for block in blocks]


def _kinds(text: Mapping[str, Any]) -> list[str]:
    """Return the types of the layers of Kimi-Linear and Kimi-K3, in any order; none of others."""
    linear = mapping(text.get(_LINEAR))
    full, states = (len(sequence(linear.get(key))) for key in _KINDS)
    return ["full_attention"] * full + [_STATE] * states


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
    """Return the listed layers with experts; Step's files list them in one string."""
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


_PLAIN = {"bfloat16": "bf16", "float16": "bf16", "half": "bf16"}
_ALGORITHMS = {"fp8": "fp8", "fp8_pb_wo": "fp8", "nvfp4": "nvfp4", "mxfp8": "mxfp8"}
"""Names of NVIDIA ModelOpt."""
_COMPRESSED = {
    "float-quantized": "fp8",
    "int-quantized": "int8",
    "nvfp4-pack-quantized": "nvfp4",
    "mxfp4-pack-quantized": "mxfp4",
}
"""Names of compressed-tensors. `pack-quantized` has its number of bits elsewhere."""
_BY_BITS = {4: "int4", 8: "int8"}
_PACKED = "pack-quantized"


def weights_format(config: Mapping[str, Any], text: Mapping[str, Any]) -> str | None:
    """Return the format of most weights: bf16, fp8, mxfp8, int8, nvfp4, mxfp4 or int4.

    None if the file does not say, or says one of which the table of models has no weights.
    """
    both = (mapping(each.get("quantization_config")) for each in (config, text))
    quantised = next(filter(None, both), None)
    if quantised is None:
        stated = (each.get(key) for each in (config, text) for key in ("torch_dtype", "dtype"))
        return _PLAIN.get(str(next(filter(None, stated), "")))
    method = str(quantised.get("quant_method", "modelopt")).casefold()
    algorithm = quantised.get("quant_algo")
    if algorithm is not None:
        return _ALGORITHMS.get(str(algorithm).casefold())
    if method in {"fp8", "mxfp4"}:
        return method
    if method in {"awq", "gptq"}:
        return _int_of(quantised.get("bits", 4))
    if method == "compressed-tensors":
        return _compressed(quantised)
    return None


def _compressed(quantised: Mapping[str, Any]) -> str | None:
    written = str(quantised.get("format", ""))
    if written != _PACKED:
        return _COMPRESSED.get(written)
    groups = [mapping(each) for each in mapping(quantised.get("config_groups")).values()]
    bits = [mapping(each.get("weights")).get("num_bits") for each in groups]
    return _int_of(bits[0]) if bits and bits.count(bits[0]) == len(bits) else None


def _int_of(bits: object) -> str | None:
    return next((name for number, name in _BY_BITS.items() if bits == number), None)


def fp8_block(config: Mapping[str, Any]) -> int | None:
    """Return the edge of FP8 blocks, the larger of two."""
    quantised = mapping(config.get("quantization_config"))
    if quantised.get("quant_method", "fp8") != "fp8":
        return None
    edges = quantised.get("weight_block_size")
    sizes = [size_of(edge) for edge in edges] if isinstance(edges, list | tuple) else []
    return max((size for size in sizes if size is not None), default=None)


def scale_group(config: Mapping[str, Any]) -> int | None:
    """Return how many inputs share a scale in weights of AWQ or GPTQ."""
    quantised = mapping(config.get("quantization_config"))
    awq = quantised.get("quant_method") in ("awq", "gptq")
    return size_of(quantised.get("group_size")) if awq else None


LENGTHS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
    "max_target_positions", "max_sequence_length", "max_seq_length", "seq_len",
)  # fmt: skip
"""Keys for the length. vLLM takes the smallest."""
_UNSCALED = ("su", "longrope", "llama3")
"""RoPE scaling types by which vLLM does not multiply the length."""
_YARN = ("yarn", "deepseek_yarn", "deepseek_llama_scaling")
"""RoPE scaling types by which it multiplies up to 0.29.0."""


def longest_request(text: Mapping[str, Any]) -> int | None:
    """Return the longest request that vLLM derives; None if its releases disagree.

    Source: vllm/transformers_utils/model_arch_config_convertor.py derive_max_model_len_and_key;
    vllm/config/model.py _get_and_verify_max_len, of 0.29.0 and of 0.33.0.
    """
    lengths = [size for key in LENGTHS if (size := size_of(text.get(key))) is not None]
    length = size_of(text.get("model_max_length")) or min(lengths, default=None)
    # The length that Gemma 3 states is already multiplied.
    if length is None or _is_gemma3(text):
        return length
    derived = {_scaled(length, text, by_yarn=by_yarn) for by_yarn in (False, True)}
    return size_of(derived.pop()) if len(derived) == 1 else None


def _is_gemma3(text: Mapping[str, Any]) -> bool:
    kind = text.get("model_type")
    return isinstance(kind, str) and "gemma3" in kind


def _scaled(length: int, text: Mapping[str, Any], *, by_yarn: bool) -> int:
    """Multiply a context by the factor of its RoPE scaling; YaRN scales the original length."""
    factor = 1.0
    for rope in _ropes(text):
        kind, by = rope.get("rope_type", rope.get("type")), rope.get("factor")
        if kind in _UNSCALED or (kind in _YARN and not by_yarn):
            continue
        if isinstance(by, int | float) and 0 < by <= _MOST:
            factor = float(by)
        if kind == "yarn":
            length = size_of(rope.get("original_max_position_embeddings")) or length
    return int(length * factor)


def rotated_numbers(text: Mapping[str, Any]) -> int | None:
    """Count the numbers of a position in all tables of rotations; None: as many as a head has.

    Heads rotate in part, or have a table for each kind of layer: get_rope in vllm 0.33.0,
    vllm/model_executor/layers/rotary_embedding/__init__.py, and minimax_m2.py, gemma3.py and
    mimo_v2.py of its models. Gemma 4 has heads of two widths, which are counted by them. A linear
    factor multiplies the positions of a table once more where the length has it already:
    linear_scaling_rope.py there.
    """
    heads, part = size_of(text.get("num_attention_heads")) or 1, size_of(text.get(_ROTATED))
    width = size_of(text.get("head_dim")) or (size_of(text.get("hidden_size")) or 0) // heads
    tables = {
        repr(rope): (part or int(width * (_share(rope) or _share(text) or 1))) * _again(rope, text)
        for rope in _ropes(text) or [{}]
    }
    rotated = sum(tables.values())
    if len(tables) == 1 and any(text.get(key) is not None for key in _OTHER_BASES):
        rotated += part or int(width * (_share(text) or 1))
    return None if text.get(FULL_WIDTH) is not None or rotated == width else size_of(rotated)


def _share(rope: Mapping[str, Any]) -> float | None:
    """Return the share of a head that is rotated, if it is stated."""
    share = rope.get(_SHARE)
    return share if isinstance(share, float) and 0 < share < 1 else None


def _again(rope: Mapping[str, Any], text: Mapping[str, Any]) -> int:
    """Return the factor of a table's positions over those of the length that Gemma 3 states."""
    linear = _is_gemma3(text) and rope.get("rope_type", rope.get("type")) == "linear"
    return (size_of(rope.get("factor")) or 1) if linear else 1


def _ropes(text: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the RoPE scaling, one for each type of layers if they differ."""
    stated = mapping(text.get("rope_parameters")) or mapping(text.get("rope_scaling"))
    by_type = [mapping(rope) for rope in stated.values() if isinstance(rope, Mapping)]
    return by_type if by_type and len(by_type) == len(stated) else [stated]
