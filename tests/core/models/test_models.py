"""The table of models and config.json: what is found, and that everything else is unknown."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.models import (
    ModelShape,
    all_names,
    find_model,
    known_models,
    shape_from_config,
)
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each
from tests.support.strategies import json_trees, law

EACH = [pytest.param(shape, id=shape.name) for shape in known_models()]
DENSE = {
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_hidden_layers": 64,
    "hidden_size": 5120,
    "intermediate_size": 25600,
    "vocab_size": 151936,
}
MLA = {
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "kv_lora_rank": 512,
    "num_hidden_layers": 61,
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "first_k_dense_replace": 3,
    "vocab_size": 129280,
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}


def found(name: str) -> ModelShape:
    shape = find_model(name)
    assert isinstance(shape, ModelShape), name
    return shape


def sizes(shape: ModelShape | Unknown) -> tuple[int | None, ...]:
    assert isinstance(shape, ModelShape)
    return (
        shape.heads, shape.kv_heads, shape.layers, shape.hidden, shape.ffn, shape.experts,
        shape.expert_ffn, shape.fp8_block, shape.vocab,
    )  # fmt: skip


@for_each("shape", EACH)
def test_a_row_says_where_it_is_from(shape: ModelShape) -> None:
    assert "/" in shape.source


@for_each("shape", EACH)
def test_the_sizes_of_a_row_agree_with_each_other(shape: ModelShape) -> None:
    assert shape.kv_heads is None or shape.heads % shape.kv_heads == 0
    assert shape.experts or shape.expert_ffn is None
    assert all(size is None or size >= 0 for size in sizes(shape))
    assert shape.fp8_block is None or shape.ffn or shape.expert_ffn


def test_no_name_stands_in_two_rows() -> None:
    folded = Counter(name.casefold() for name in all_names())
    assert [name for name, times in folded.items() if times > 1] == []


@for_each("name", all_names())
def test_a_name_is_found_in_any_case_and_without_its_organisation(name: str) -> None:
    assert found(name) is found(name.upper()) is found(name.lower())
    short = found(name.rpartition("/")[2])
    assert (*sizes(short)[:-2], short.context) == (*sizes(found(name))[:-2], found(name).context)


SHAPES = {
    "meta-llama/Llama-3.1-8B": (32, 8, 32, 4096, 14336, 0, None, None, 128256),
    "meta-llama/Llama-3.1-70B": (64, 8, 80, 8192, 28672, 0, None, None, 128256),
    "meta-llama/Llama-3.3-70B-Instruct": (64, 8, 80, 8192, 28672, 0, None, None, 128256),
    "meta-llama/Llama-3.1-405B": (128, 8, 126, 16384, 53248, 0, None, None, 128256),
    "Qwen/Qwen2.5-72B-Instruct": (64, 8, 80, 8192, 29568, 0, None, None, 152064),
    "Qwen/Qwen3-32B": (64, 8, 64, 5120, 25600, 0, None, None, 151936),
    "Qwen/Qwen3-235B-A22B": (64, 4, 94, 4096, None, 128, 1536, None, 151936),
    "Qwen/Qwen3-235B-A22B-FP8": (64, 4, 94, 4096, None, 128, 1536, 128, 151936),
    "Qwen3-Coder-480B-A35B-Instruct": (96, 8, 62, 6144, None, 160, 2560, None, 151936),
    "Qwen3-Coder-480B-A35B-Instruct-FP8": (96, 8, 62, 6144, None, 160, 2560, 128, 151936),
    "mistralai/Mixtral-8x22B-v0.1": (48, 8, 56, 6144, None, 8, 16384, None, 32000),
    "mistralai/Mixtral-8x7B-v0.1": (32, 8, 32, 4096, None, 8, 14336, None, 32000),
    "openai/gpt-oss-20b": (64, 8, 24, 2880, None, 32, 2880, None, 201088),
    "openai/gpt-oss-120b": (64, 8, 36, 2880, None, 128, 2880, None, 201088),
    "deepseek-ai/DeepSeek-V3": (128, None, 61, 7168, 18432, 256, 2048, 128, 129280),
    "deepseek-ai/DeepSeek-R1": (128, None, 61, 7168, 18432, 256, 2048, 128, 129280),
    "deepseek-ai/DeepSeek-V3.2": (128, None, 61, 7168, 18432, 256, 2048, 128, 129280),
    "deepseek-ai/DeepSeek-V4-Pro": (128, 1, 61, 7168, None, 384, 3072, None, 129280),
    "deepseek-ai/DeepSeek-V4-Flash": (64, 1, 43, 4096, None, 256, 2048, None, 129280),
    "moonshotai/Kimi-K2-Instruct": (64, None, 61, 7168, 18432, 384, 2048, 128, 163840),
    "moonshotai/Kimi-K2.5": (64, None, 61, 7168, 18432, 384, 2048, None, 163840),
    "zai-org/GLM-5": (64, None, 78, 6144, 12288, 256, 2048, None, 154880),
    "MiniMaxAI/MiniMax-M2.7": (48, 8, 62, 3072, None, 256, 1536, 128, 200064),
    "Qwen/Qwen3.5-397B-A17B": (32, 2, 60, 4096, None, 512, 1024, None, 248320),
    "Mistral-Large-3-675B-Instruct-2512": (128, None, 61, 7168, 16384, 128, 4096, None, 131072),
    "microsoft/phi-4": (40, 10, 40, 5120, 17920, 0, None, None, 100352),
    "Qwen/Qwen2.5-Coder-32B-Instruct": (40, 8, 64, 5120, 27648, 0, None, None, 152064),
    "Qwen/Qwen3-Next-80B-A3B-Instruct": (16, 2, 48, 2048, None, 512, 512, None, 151936),
    "Qwen/Qwen3-VL-30B-A3B-Instruct": (32, 4, 48, 2048, None, 128, 768, None, 151936),
    "Qwen/Qwen3.6-27B": (24, 4, 64, 5120, 17408, 0, None, None, 248320),
    "Qwen/Qwen3.5-122B-A10B-FP8": (32, 2, 48, 3072, None, 256, 1024, None, 248320),
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": (40, 8, 48, 5120, None, 16, 8192, None, 202048),
    "Llama-4-Maverick-17B-128E-Instruct-FP8": (40, 8, 48, 5120, 16384, 128, 8192, None, 202048),
    "RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic": (64, 8, 80, 8192, 28672, 0, None, None, 128256),
    "nvidia/Llama-3.3-70B-Instruct-NVFP4": (64, 8, 80, 8192, 28672, 0, None, None, 128256),
    "zai-org/GLM-4.5": (96, 8, 92, 5120, 12288, 160, 1536, None, 151552),
    "zai-org/GLM-4.5-Air": (96, 8, 46, 4096, 10944, 128, 1408, None, 151552),
    "zai-org/GLM-4.7-Flash": (20, None, 47, 2048, 10240, 64, 1536, None, 154880),
    "zai-org/GLM-5.2-FP8": (64, None, 78, 6144, 12288, 256, 2048, 128, 154880),
    "zai-org/GLM-5.3-Flash": (64, None, 45, 4096, 12288, 288, 2048, None, 154880),
    "moonshotai/Kimi-K2-Thinking": (64, None, 61, 7168, 18432, 384, 2048, None, 163840),
    "moonshotai/Kimi-K3": (96, None, 93, 7168, 33792, 896, 3072, None, 163840),
    "deepseek-ai/DeepSeek-V3.1-Terminus": (128, None, 61, 7168, 18432, 256, 2048, 128, 129280),
    "nvidia/DeepSeek-V3.1-NVFP4": (128, None, 61, 7168, 18432, 256, 2048, None, 129280),
    "MiniMaxAI/MiniMax-M3": (64, 4, 60, 6144, 12288, 128, 3072, None, 200064),
    "NVIDIA-Nemotron-3-Super-120B-A12B-FP8": (32, 2, 88, 4096, None, 512, 2688, None, 131072),
    "mistralai/Mistral-Small-4-119B-2603": (32, None, 36, 4096, None, 128, 2048, None, 131072),
    "google/gemma-4-31B-it": (32, 16, 60, 5376, 21504, 0, None, None, 262144),
    "google/gemma-4-26B-A4B-it": (16, 8, 30, 2816, 2112, 128, 704, None, 262144),
    "XiaomiMiMo/MiMo-V2-Flash": (64, 4, 48, 4096, 16384, 256, 2048, 128, 152576),
    "stepfun-ai/Step-3.5-Flash-FP8": (64, 8, 45, 4096, 11264, 288, 1280, 128, 128896),
}
CONTEXTS = {
    "Qwen/Qwen2.5-72B-Instruct": 32768,
    "Qwen/Qwen2.5-72B": 131072,
    "Qwen/Qwen2-72B": 131072,
    "Qwen/Qwen3-235B-A22B": 40960,
    "Qwen/Qwen3-235B-A22B-Instruct-2507": 262144,
    "Qwen/Qwen3-235B-A22B-Thinking-2507-FP8": 262144,
    "Qwen/Qwen3-30B-A3B-Instruct-2507": 262144,
    "moonshotai/Kimi-K2-Instruct": 131072,
    "moonshotai/Kimi-K2-Instruct-0905": 262144,
    "MiniMaxAI/MiniMax-M2": 196608,
    "MiniMaxAI/MiniMax-M2.5": 196608,
    "MiniMaxAI/MiniMax-M2.7": 204800,
    "zai-org/GLM-5.1": 202752,
    "zai-org/GLM-5.2-FP8": 1048576,
    "zai-org/GLM-4.6": 202752,
}


@for_each("name", SHAPES)
def test_a_well_known_model_has_its_published_shape(name: str) -> None:
    assert sizes(found(name)) == SHAPES[name]


@pytest.mark.parametrize("name", CONTEXTS)
def test_another_model_of_the_same_shape_has_a_context_of_its_own(name: str) -> None:
    assert found(name).context == CONTEXTS[name]


@pytest.mark.parametrize(
    "name",
    [
        "m/m",
        "",
        "/",
        "/models/Qwen3-32B",
        "./Qwen3-32B",
        "someone/Qwen3-32B",
        "Qwen/Qwen3-32B-GGUF",
        "RedHatAI/Qwen3-32B",
        "nvidia/Qwen3-32B-FP8-dynamic",
        "Qwen/",
        "s3://bucket/Qwen/Qwen3-32B",
    ],
)
def test_what_may_hold_anything_is_unknown(name: str) -> None:
    assert find_model(name) == Unknown(f"'{name}' is not in the table of models")


def test_a_long_name_is_cut_in_the_message() -> None:
    assert find_model("m" * 5_000_000) == Unknown(f"'{'m' * 60}' is not in the table of models")


@pytest.mark.property
@law
@given(st.text())
def test_any_name_gives_a_shape_or_a_reason(name: str) -> None:
    assert isinstance(find_model(name), ModelShape | Unknown)


def test_a_dense_models_config_is_read() -> None:
    assert sizes(shape_from_config(DENSE)) == sizes(found("Qwen/Qwen3-32B"))


def test_latent_attention_and_fp8_blocks_are_read() -> None:
    assert sizes(shape_from_config(MLA)) == sizes(found("deepseek-ai/DeepSeek-V3"))


READ: dict[str, tuple[dict[str, Any], dict[str, int | None]]] = {
    "experts-without-a-width-of-their-own": (
        {"num_local_experts": 8},
        {"experts": 8, "expert_ffn": 25600, "ffn": None},
    ),
    "experts-in-every-layer": (
        {"num_experts": 128, "moe_intermediate_size": 1536, "mlp_only_layers": []},
        {"experts": 128, "expert_ffn": 1536, "ffn": None},
    ),
    "experts-in-every-other-layer": (
        {"num_experts": 128, "moe_intermediate_size": 1536, "decoder_sparse_step": 2},
        {"ffn": 25600},
    ),
    "no-heads-for-keys": ({"num_key_value_heads": None}, {"kv_heads": 64}),
    "heads-for-keys-by-layer": ({"num_key_value_heads": [8, 4]}, {"kv_heads": None}),
    "numbers-as-policies-see-them": ({"num_attention_heads": 64.0}, {"heads": 64}),
    "uneven-blocks": (
        {"quantization_config": {"weight_block_size": [64, 128]}},
        {"fp8_block": 128},
    ),
    "other-quantisation": (
        {"quantization_config": {"quant_method": "gptq", "weight_block_size": [128, 128]}},
        {"fp8_block": None},
    ),
    "no-blocks": ({"quantization_config": {"quant_method": "fp8"}}, {"fp8_block": None}),
}


@pytest.mark.parametrize("case", READ)
def test_a_config_is_read_as_hugging_face_writes_it(case: str) -> None:
    changes, wanted = READ[case]
    shape = shape_from_config({**DENSE, **changes})
    assert {field: getattr(shape, field) for field in wanted} == wanted


def test_the_language_model_of_a_model_that_sees_is_read() -> None:
    eyes = {"num_attention_heads": 16, "num_hidden_layers": 27}
    block = {"quantization_config": MLA["quantization_config"]}
    shape = shape_from_config({"vision_config": eyes, "text_config": DENSE, **block})
    assert sizes(shape)[:3] == (64, 8, 64)
    assert sizes(shape)[7] == 128


@pytest.mark.parametrize(
    ("config", "missing"),
    [
        ({}, "num_attention_heads"),
        ({"vision_config": DENSE}, "num_attention_heads"),
        ({**DENSE, "num_attention_heads": [64]}, "num_attention_heads"),
        ({**DENSE, "num_attention_heads": True}, "num_attention_heads"),
        ({**DENSE, "num_hidden_layers": 0}, "num_hidden_layers"),
        ({**DENSE, "num_hidden_layers": 2**31}, "num_hidden_layers"),
    ],
)
def test_a_config_without_its_sizes_is_unknown(config: dict[str, Any], missing: str) -> None:
    assert shape_from_config(config) == Unknown(f"its config.json states no {missing}")


@pytest.mark.property
@law
@given(json_trees(), st.sampled_from([*DENSE, *MLA, "text_config", "_name_or_path"]))
def test_any_config_gives_a_shape_or_a_reason(tree: Any, key: str) -> None:
    for config in ({"text_config": tree}, {**MLA, key: tree}, tree):
        if isinstance(config, dict):
            assert isinstance(shape_from_config(config), ModelShape | Unknown)


def test_infinities_are_no_sizes() -> None:
    config = json.loads('{"num_attention_heads": Infinity, "num_hidden_layers": NaN}')
    assert isinstance(shape_from_config(config), Unknown)
