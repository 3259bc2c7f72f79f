"""config.json of families that name their sizes in another way, and the context that it states."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.models import ModelShape, find_model, shape_from_config, shape_keys
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each
from tests.support.strategies import json_trees, law

Config = dict[str, Any]
SIZES = ("heads", "kv_heads", "layers", "hidden", "ffn", "experts", "expert_ffn")
LLAMA4 = {
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "num_hidden_layers": 48,
    "hidden_size": 5120,
    "intermediate_size": 8192,
    "intermediate_size_mlp": 16384,
}
MINIMAX3 = {
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "num_hidden_layers": 60,
    "hidden_size": 6144,
    "intermediate_size": 3072,
    "dense_intermediate_size": 12288,
    "num_local_experts": 128,
}
STEP = {
    "num_attention_heads": 64,
    "num_attention_groups": 8,
    "num_hidden_layers": 45,
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "moe_intermediate_size": 1280,
    "moe_num_experts": 288,
}
MIMO = {
    "num_attention_heads": 64,
    "num_key_value_heads": 4,
    "num_hidden_layers": 48,
    "hidden_size": 4096,
    "intermediate_size": 16384,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
}
NEMOTRON = {
    "num_attention_heads": 64,
    "num_key_value_heads": 2,
    "hidden_size": 8192,
    "intermediate_size": 5120,
    "moe_intermediate_size": 5120,
    "n_routed_experts": 512,
    "layers_block_type": ["mamba", "moe"] * 54,
}
ULTRA = "nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"
MAVERICK, SCOUT = (
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct",
)
# Fields as the classes of transformers 5.23.0 and the code of the repositories name them.
FAMILIES: list[tuple[str, Config]] = [
    (MAVERICK, {**LLAMA4, "num_local_experts": 128, "interleave_moe_layer_step": 2}),
    (MAVERICK, {**LLAMA4, "num_local_experts": 128, "moe_layers": list(range(1, 48, 2))}),
    (SCOUT, {**LLAMA4, "num_local_experts": 16, "interleave_moe_layer_step": 1}),
    (SCOUT, {**LLAMA4, "num_local_experts": 16, "moe_layers": list(range(48))}),
    ("MiniMaxAI/MiniMax-M3", {**MINIMAX3, "moe_layer_freq": [0] * 3 + [1] * 57}),
    ("MiniMaxAI/MiniMax-M3", {**MINIMAX3, "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 57}),
    ("stepfun-ai/Step-3.5-Flash", {**STEP, "moe_layers_enum": ",".join(map(str, range(3, 45)))}),
    ("stepfun-ai/Step-3.5-Flash", {**STEP, "moe_layers_enum": [float(n) for n in range(3, 45)]}),
    ("XiaomiMiMo/MiMo-V2-Flash", {**MIMO, "moe_layer_freq": [0] + [1] * 47}),
    (ULTRA, NEMOTRON),
]


@pytest.mark.parametrize(("name", "config"), FAMILIES)
def test_a_familys_config_gives_the_sizes_of_its_row(name: str, config: Config) -> None:
    row = find_model(name)
    for stated in (config, {"text_config": config}, shape_keys(config)):
        shape = shape_from_config(stated)
        assert isinstance(shape, ModelShape)
        assert {f: getattr(shape, f) for f in SIZES} == {f: getattr(row, f) for f in SIZES}


# Changes of a config of a model with experts: width of the dense layers, None where there are none.
LAYERS: list[tuple[Config, Config, int | None]] = [
    (MINIMAX3, {}, None),
    (MINIMAX3, {"moe_layer_freq": [1] * 60}, None),
    # Three entries more than layers: those that draft tokens.
    (MINIMAX3, {"mlp_layer_types": ["sparse"] * 60 + ["dense"] * 3}, None),
    (MINIMAX3, {"moe_layer_freq": [1] * 60 + [0]}, None),
    (MIMO, {"moe_layer_freq": 1}, None),
    (MIMO, {"moe_layer_freq": 2}, 16384),
    (MIMO, {"first_k_dense_replace": 0, "moe_layer_freq": 1}, None),
    (MIMO, {"first_k_dense_replace": 3, "mlp_layer_types": ["sparse"] * 48}, None),
    (MIMO, {"moe_layer_freq": [False, *[True] * 47]}, 16384),
    (STEP, {}, None),
    (STEP, {"moe_layers_enum": ",".join(map(str, range(45)))}, None),
    (STEP, {"moe_layers_enum": "³,x,9999999"}, None),
    # ERNIE 4.5
    (STEP, {"moe_layer_start_index": 1, "moe_layer_interval": 1}, 11264),
    (STEP, {"moe_layer_start_index": 0, "moe_layer_interval": 2}, 11264),
    (STEP, {"moe_layer_start_index": [1, 1], "moe_layer_interval": 1}, 11264),
]


@pytest.mark.parametrize(("config", "changes", "ffn"), LAYERS)
def test_dense_layers_are_those_that_the_config_tells_of(
    config: Config, changes: Config, ffn: int | None
) -> None:
    shape = shape_from_config({**config, **changes})
    assert isinstance(shape, ModelShape)
    assert shape.ffn == ffn
    assert shape.experts


def test_two_sorts_of_experts_are_more_than_one_width_can_say() -> None:
    lists = {"moe_num_experts": [64, 64], "moe_intermediate_size": [1536, 512]}
    shape = shape_from_config({**STEP, **lists, "moe_layer_start_index": [1, 1]})
    assert isinstance(shape, ModelShape)
    assert (shape.experts, shape.expert_ffn, shape.ffn) == (64, None, 11264)


def test_a_dense_model_keeps_its_only_width() -> None:
    config = {k: v for k, v in MINIMAX3.items() if k != "num_local_experts"}
    shape = shape_from_config(config)
    assert isinstance(shape, ModelShape)
    assert (shape.experts, shape.expert_ffn, shape.ffn) == (0, None, 3072)


YARN = {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}
CONTEXTS: list[tuple[Config, int | None]] = [
    ({}, None),
    ({"max_position_embeddings": 40960}, 40960),
    ({"n_positions": 1024}, 1024),
    ({"max_seq_len": 2048, "max_position_embeddings": 4096}, 2048),
    ({"seq_length": 32768}, 32768),
    ({"max_position_embeddings": 8192, "model_max_length": 131072}, 131072),
    ({"max_position_embeddings": 8192, "model_max_length": 0}, 8192),
    ({"max_position_embeddings": 8192, "model_max_length": None}, 8192),
    ({"max_sequence_length": 4096, "max_seq_length": 2048, "seq_len": 1024}, 1024),
    ({"max_target_positions": 448}, 448),
    ({"max_position_embeddings": "8192"}, None),
    # What a scale does to it.
    ({"max_position_embeddings": 163840, "rope_scaling": YARN}, 163840),
    ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16384),
    ({"max_position_embeddings": 4096, "rope_scaling": {"type": "dynamic", "factor": 2}}, 8192),
    ({"max_position_embeddings": 4096, "rope_scaling": {"rope_type": "x", "factor": 1e-9}}, None),
    ({"max_position_embeddings": 131072, "rope_scaling": {"rope_type": "llama3", "factor": 8}},
     131072),
    ({"max_position_embeddings": 131072, "rope_scaling": {"type": "longrope", "factor": 32}},
     131072),
    ({"max_position_embeddings": 131072, "rope_scaling": {"type": "su"}}, 131072),
    ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": None}}, 4096),
    ({"max_position_embeddings": 4096, "rope_scaling": {"type": ["linear"], "factor": [2]}}, 4096),
    ({"max_position_embeddings": 4096, "rope_parameters": {"rope_type": "default"}}, 4096),
    ({"max_position_embeddings": 4096,
      "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0},
                          "sliding_attention": {"rope_type": "default"}}}, 32768),
    ({"model_type": "gemma3_text", "max_position_embeddings": 131072,
      "rope_scaling": {"rope_type": "linear", "factor": 8.0}}, 131072),
    # vLLM multiplies up to 0.29.0 and does not from 0.30.0 on.
    ({"max_position_embeddings": 40960, "rope_scaling": {**YARN, "factor": 4}}, None),
    ({"max_position_embeddings": 40960, "rope_scaling": {"type": "deepseek_yarn", "factor": 4}},
     None),
    ({"max_position_embeddings": 40960, "rope_scaling": {"type": "yarn"}}, 40960),
]  # fmt: skip


@for_each(("config", "context"), CONTEXTS)
def test_a_context_is_what_vllm_derives(config: Config, context: int | None) -> None:
    for stated in ({**MIMO, **config}, {"text_config": {**MIMO, **config}}):
        shape = shape_from_config(stated)
        assert not isinstance(shape, Unknown)
        assert shape.context == context


READ = (
    *("dense_intermediate_size", "intermediate_size_mlp", "num_attention_groups"),
    *("moe_num_experts", "moe_layers", "moe_layers_enum", "moe_layer_freq", "mlp_layer_types"),
    *("moe_layer_start_index", "model_max_length", "rope_scaling", "rope_parameters", "model_type"),
    *("layers_block_type", "num_hidden_layers"),
)


@pytest.mark.property
@law
@given(json_trees(), st.sampled_from(READ))
def test_any_value_gives_a_shape_or_a_reason(tree: Any, key: str) -> None:
    for config in ({**MINIMAX3, "seq_len": 8192, key: tree}, {**STEP, key: [tree]}):
        assert isinstance(shape_from_config(config), ModelShape | Unknown)


# What the files of public models say about their layers, encoder and weights.
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64}
BF16 = {"torch_dtype": "bfloat16"}
FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}, **BF16}
WEIGHTS_OF_4_BITS = {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}}
ALTERNATING = ["sliding_attention", "full_attention"]
LAYERED: dict[str, Config] = {
    "Qwen/Qwen3.5-27B": {
        "model_type": "qwen3_5",
        "text_config": {
            "num_attention_heads": 24,
            "num_hidden_layers": 64,
            "layer_types": [*["linear_attention"] * 3, "full_attention"] * 16,
            "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 128,
            "linear_num_key_heads": 16,
            "linear_num_value_heads": 48,
            "linear_value_head_dim": 128,
            "mamba_ssm_dtype": "float32",
            "dtype": "bfloat16",
        },
        "vision_config": {"depth": 27, "hidden_size": 1152},
    },
    "Qwen/Qwen3-Next-80B-A3B-Instruct": {
        "num_attention_heads": 16,
        "num_hidden_layers": 48,
        "full_attention_interval": 4,
        "num_experts": 512,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        **BF16,
    },
    "openai/gpt-oss-20b": {
        "num_attention_heads": 64,
        "num_hidden_layers": 24,
        "layer_types": ALTERNATING * 12,
        "sliding_window": 128,
        "num_local_experts": 32,
        "quantization_config": {"quant_method": "mxfp4"},
    },
    "google/gemma-4-26B-A4B": {
        "text_config": {
            "num_attention_heads": 16,
            "num_hidden_layers": 30,
            "layer_types": [*["sliding_attention"] * 5, "full_attention"] * 5,
            "num_global_key_value_heads": 2,
            "global_head_dim": 512,
            "num_experts": 128,
            **BF16,
        },
        "model_type": "gemma4",
        "vision_config": {"num_hidden_layers": 27, "hidden_size": 1152},
    },
    "deepseek-ai/DeepSeek-V3.2": {
        "num_attention_heads": 128,
        "num_hidden_layers": 61,
        "first_k_dense_replace": 3,
        "n_routed_experts": 256,
        "q_lora_rank": 1536,
        "index_n_heads": 64,
        "index_head_dim": 128,
        **LATENT,
        **FP8,
    },
    "zai-org/GLM-5.2": {
        "num_attention_heads": 64,
        "num_hidden_layers": 78,
        "layer_types": ["deepseek_sparse_attention"] * 78,
        "indexer_types": [*["full"] * 21, *["shared"] * 57],
        "mlp_layer_types": [*["dense"] * 3, *["sparse"] * 75],
        "n_routed_experts": 256,
        "q_lora_rank": 2048,
        "qk_nope_head_dim": 192,
        "v_head_dim": 256,
        "index_n_heads": 32,
        "index_head_dim": 128,
        **LATENT,
        **BF16,
    },
    "moonshotai/Kimi-K2.5": {
        "text_config": {
            "num_attention_heads": 64,
            "num_hidden_layers": 61,
            "first_k_dense_replace": 1,
            "n_routed_experts": 384,
            "q_lora_rank": 1536,
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "format": "pack-quantized",
                "config_groups": WEIGHTS_OF_4_BITS,
            },
            **LATENT,
        },
        "vision_config": {"vt_num_hidden_layers": 27, "vt_hidden_size": 1152},
        **BF16,
    },
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": {
        "num_attention_heads": 32,
        "num_hidden_layers": 52,
        "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        "n_routed_experts": 128,
        "mamba_num_heads": 64,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        "sliding_window": None,
        **BF16,
    },
    "moonshotai/Kimi-K3": {
        "model_type": "kimi_k3",
        "text_config": {
            "num_attention_heads": 96,
            "num_hidden_layers": 93,
            "kv_lora_rank": 512,
            "q_lora_rank": 1536,
            "qk_rope_head_dim": 64,
            "first_k_dense_replace": 1,
            "num_experts": 896,
            "routed_expert_hidden_size": 3584,
            "attn_res_block_size": 12,
            "linear_attn_config": {
                "full_attn_layers": [*range(4, 93, 4), 93],
                "kda_layers": [layer for layer in range(1, 93) if layer % 4],
                "head_dim": 128,
                "num_heads": 96,
                "short_conv_kernel_size": 4,
            },
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "format": "mxfp4-pack-quantized",
            },
        },
        "vision_config": {
            "vt_hidden_size": 1024,
            "vt_num_attention_heads": 12,
            "vt_num_hidden_layers": 27,
        },
    },
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16": {
        "model_type": "nemotron_h",
        "num_attention_heads": 32,
        "hybrid_override_pattern": "ME" * 40 + "*" * 8,
        "num_hidden_layers": 88,
        "n_routed_experts": 512,
        "num_experts_per_tok": 22,
        "moe_latent_size": 1024,
        "mlp_hidden_act": "relu2",
        "mamba_num_heads": 128,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        **BF16,
    },
    "Qwen/Qwen2.5-VL-7B-Instruct": {
        "model_type": "qwen2_5_vl",
        "num_attention_heads": 28,
        "num_hidden_layers": 28,
        "max_window_layers": 28,
        "use_sliding_window": False,
        "sliding_window": 32768,
        "vision_config": {"hidden_size": 1280},
        **BF16,
    },
    "mistralai/Mixtral-8x7B-v0.1": {
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_local_experts": 8,
        "sliding_window": None,
        **BF16,
    },
    "Qwen/Qwen3-32B": {
        "model_type": "qwen3",
        "num_attention_heads": 64,
        "num_hidden_layers": 64,
        "max_window_layers": 64,
        "use_sliding_window": False,
        "sliding_window": None,
        **BF16,
    },
}
OF_LAYERS = (
    *("full_cache", "full_layers", "state_layers", "state_bytes"),
    *("full_kv_heads", "full_head_dim"),
    *("dense_layers", "dtype", "latent"),
    *("query_latent", "key_dim", "value_dim", "index_heads", "index_dim"),
    *("vision_layers", "vision_hidden", "vision_heads", "vision_asked"),
    *("index_layers", "image_patches", "image_edge", "image_tokens", "image_masked"),
    *("quarter_layers", "window_layers"),
    *("expert_hidden", "expert_matrices", "block_layers"),
)


@for_each(("name", "config"), LAYERED.items(), ids=LAYERED)
def test_a_config_gives_the_layers_of_its_row(name: str, config: Config) -> None:
    row, shape = find_model(name), shape_from_config(config)
    assert {f: getattr(shape, f) for f in OF_LAYERS} == {f: getattr(row, f) for f in OF_LAYERS}


# Ratios of five layers, of which the last one only drafts: layers with 4 and with a window alone.
RATIOS: list[tuple[Any, int | None, int]] = [
    ([0, 0, 4, 128, 4], 1, 2),
    ([128, 128, 4, 128, 0], 1, 0),
    ([4, 4, 4, 4], 4, 0),
    ([0, 0, 4], None, 0),
    ([0, 0, 4, 16, 4], None, 0),
    ("4", None, 0),
    (None, None, 0),
]


@for_each(("ratios", "quarter", "windows"), RATIOS)
def test_ratios_give_the_layers_of_compressed_attention(
    ratios: Any, quarter: int | None, windows: int
) -> None:
    shape = shape_from_config(
        {"num_attention_heads": 32, "num_hidden_layers": 4, "compress_ratios": ratios}
    )
    assert isinstance(shape, ModelShape)
    assert (shape.quarter_layers, shape.window_layers) == (quarter, windows)


WINDOWS: list[tuple[Config, bool, int | None]] = [
    ({"sliding_window": 4096, "max_position_embeddings": 32768}, False, None),
    ({"sliding_window": 4096, "max_position_embeddings": 4096}, True, None),
    ({"sliding_window": 4096, "use_sliding_window": False}, True, None),
    ({"sliding_window": 4096, "model_type": "qwen2"}, True, None),
    ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 32}, True, None),
    ({"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 16}, False, None),
    ({"sliding_window": 1024, "sliding_window_pattern": 8}, False, 4),
    ({"attention_chunk_size": 8192}, False, None),
    ({"layer_types": ["full_attention"] * 32}, True, None),
    ({"layer_types": ALTERNATING * 16, "swa_head_dim": 64}, False, None),
    ({"layer_types": ALTERNATING * 16, "global_head_dim": 512}, False, None),
    ({"layer_types": ALTERNATING * 16, "num_kv_shared_layers": 4}, False, None),
    ({"layer_types": ALTERNATING * 16, "num_kv_shared_layers": 0}, False, 16),
]


@for_each(("more", "every", "full"), WINDOWS)
def test_a_window_is_used_as_the_engine_does(more: Config, every: bool, full: int | None) -> None:
    shape = shape_from_config({"num_attention_heads": 32, "num_hidden_layers": 32, **more})
    assert isinstance(shape, ModelShape)
    assert (shape.full_cache, shape.full_layers) == (every, full)


FORMATS: list[tuple[Config, str | None]] = [
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
    ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, None),
    ({"quant_method": "fp8", "quant_algo": "MIXED_PRECISION"}, None),
    ({"quant_method": "awq", "bits": 4}, "int4"),
    ({"quant_method": "gptq", "bits": 8}, "int8"),
    ({"quant_method": "gptq", "bits": 3}, None),
    ({"quant_method": "compressed-tensors", "format": "float-quantized"}, "fp8"),
    ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "nvfp4"),
    ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, None),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True}, None),
]


@for_each(("quantised", "wanted"), FORMATS)
def test_the_format_of_weights_is_what_quantises_them(
    quantised: Config, wanted: str | None
) -> None:
    shape = shape_from_config({**LLAMA4, **BF16, "quantization_config": quantised})
    assert isinstance(shape, ModelShape)
    assert shape.dtype == wanted


@for_each("config", [*LAYERED.values(), *(config for _, config in FAMILIES)])
def test_the_part_that_is_read_gives_the_same_shape(config: Config) -> None:
    assert shape_from_config(shape_keys(config)) == shape_from_config(config)


def test_a_config_gives_whether_sglang_is_asked_for_the_encoder() -> None:
    text = {"num_attention_heads": 8, "num_hidden_layers": 34}
    eyes = {"num_hidden_layers": 27, "hidden_size": 1152}
    for kind, asked in (("gemma3", True), ("gemma4", False)):
        shape = shape_from_config({"model_type": kind, "text_config": text, "vision_config": eyes})
        assert isinstance(shape, ModelShape)
        assert (shape.vision_hidden, shape.vision_asked) == (1152, asked)
    blind = shape_from_config({"model_type": "gemma3", **text})
    assert isinstance(blind, ModelShape)
    assert not blind.vision_asked


def test_a_config_gives_the_patches_of_mistral_and_what_does_not_rotate() -> None:
    text = {"num_attention_heads": 32, "num_hidden_layers": 40}
    shape = shape_from_config(
        {"model_type": "mistral3", "text_config": text, "vision_config": {"hidden_size": 1024}}
    )
    assert isinstance(shape, ModelShape)
    assert (shape.image_patches, shape.image_edge, shape.image_masked) == (12100, 14, True)
    assert shape.rotates

    for kind in ("inkling", "kimi_linear", "kimi_k3"):
        unrotated = shape_from_config({"model_type": kind, **text})
        assert isinstance(unrotated, ModelShape)
        assert not unrotated.rotates


LINEAR = {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0}
LOCAL = {"rope_type": "default", "rope_theta": 10000.0}
GEMMA = {"model_type": "gemma3_text", "head_dim": 256}
HALF = {"rotary_dim": 64, "partial_rotary_factor": 0.5}
# The other keys of a config with 24 heads of 128, and the numbers of a position that are rotated.
ROTATED: list[tuple[Config, int | None]] = [
    ({}, None),
    ({"partial_rotary_factor": 1.0}, None),
    ({"partial_rotary_factor": 0.75}, 96),
    ({"rope_parameters": {"rope_theta": 10000000, "partial_rotary_factor": 0.25}}, 32),
    (HALF, 64),
    ({"head_dim": 192, "partial_rotary_factor": 0.334, "swa_rope_theta": 10000}, 128),
    ({**GEMMA, "rope_local_base_freq": 10000, "rope_scaling": None}, 512),
    ({**GEMMA, "rope_local_base_freq": 10000, "rope_scaling": LINEAR}, 2304),
    ({**GEMMA, "rope_parameters": {"full_attention": LINEAR, "sliding_attention": LOCAL}}, 2304),
    ({"rope_scaling": LINEAR}, None),  # The context has the factor.
    ({"rope_parameters": {"full_attention": LOCAL, "sliding_attention": LOCAL}}, None),
    ({"rope_parameters": {"rope_theta": [10000.0, 5000000.0]}}, None),
    ({"head_dim": 256, "global_head_dim": 512, "partial_rotary_factor": 0.25}, None),
]


@for_each(("more", "numbers"), ROTATED)
def test_heads_rotate_in_part_or_have_several_tables(more: Config, numbers: int | None) -> None:
    config = {"num_attention_heads": 24, "num_hidden_layers": 32, "hidden_size": 3072, **more}
    for read in (config, shape_keys(config)):
        shape = shape_from_config(read)
        assert isinstance(shape, ModelShape)
        assert shape.rotated == numbers


def test_images_of_gemma_3_have_256_tokens() -> None:
    """4,096 patches, of which 16 become one token; Gemma 3n has another encoder."""
    text: dict[str, object] = {"num_attention_heads": 32, "num_hidden_layers": 62}
    found = [
        shape_from_config({"model_type": kind, "text_config": text, "vision_config": vision})
        for kind, vision in (
            ("gemma3", {"hidden_size": 1152}),
            ("gemma3", {}),
            ("gemma3n", {"a": 1}),
        )
    ]

    shapes = [shape for shape in found if isinstance(shape, ModelShape)]
    images = [(shape.image_patches, shape.image_edge, shape.image_tokens) for shape in shapes]
    assert images == [(4096, 14, 256), (None, 16, None), (None, 16, None)]
