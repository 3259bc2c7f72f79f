"""Sizes of weights, caches and overhead, and KAITO's arithmetic, against published figures."""

from dataclasses import replace

import pytest

from kthena_components.core.hardware import Instance, find_instance
from kthena_components.core.memory import (
    GIB,
    Split,
    cache_per_token,
    cache_per_token_on_gpu,
    fullest_weights,
    overhead,
    weights_on_gpu,
)
from kthena_components.core.models import ModelShape, find_model, known_models
from kthena_components.systems.kaito.estimator import Deployment, TooSmall, derive, minimum_gpus
from tests.support.for_each import for_each

LLAMA, LARGE = "meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.1-405B-Instruct"
DEEPSEEK, KIMI = "deepseek-ai/DeepSeek-V3", "moonshotai/Kimi-K2-Instruct"
MISTRAL = "mistralai/Mistral-Large-3-675B-Instruct-2512"


def shape_of(name: str) -> ModelShape:
    shape = find_model(name)
    assert isinstance(shape, ModelShape), name
    return shape


def weights_of(name: str) -> float:
    weights = shape_of(name).weights_gib
    assert weights is not None
    return weights


# Model, tensor, pipeline, memory of a GPU: weights on a GPU, and what 0.92 of it leaves.
FITS = [
    (LARGE, 8, 2, 80, 47.2, 26.4),
    (LARGE, 8, 1, 80, 94.5, -20.9),
    (LLAMA, 4, 1, 80, 32.9, 40.7),
    (LLAMA, 2, 1, 80, 65.7, 7.9),
    (DEEPSEEK, 8, 1, 80, 79.7, -6.1),
    (DEEPSEEK, 8, 1, 141, 79.7, 50.1),
    (DEEPSEEK, 8, 2, 80, 39.9, 33.7),
    (KIMI, 8, 1, 141, 119.9, 9.8),
    (KIMI, 8, 2, 80, 59.9, 13.7),
    (KIMI, 8, 2, 141, 59.9, 69.8),
    ("Qwen/Qwen3-235B-A22B", 8, 1, 80, 54.7, 18.9),
    ("Qwen/Qwen2.5-72B-Instruct", 4, 1, 80, 33.9, 39.7),
    ("mistralai/Mixtral-8x22B-Instruct-v0.1", 8, 1, 80, 32.7, 40.9),
    ("openai/gpt-oss-120b", 1, 1, 80, 60.8, 12.8),
]


@pytest.mark.parametrize("row", FITS, ids=str)
def test_weights_on_a_gpu_and_what_they_leave(
    row: tuple[str, int, int, float, float, float],
) -> None:
    name, tensor, pipeline, memory, each, left = row
    split = Split(tensor=tensor, pipeline=pipeline)
    weights = weights_on_gpu(shape_of(name), split, weights_of(name))
    # The figures are rounded twice, and Kimi-K2's is computed from 958 or 959 GiB.
    assert weights == pytest.approx(each, abs=0.12)
    assert 0.92 * memory - weights == pytest.approx(left, abs=0.12)


CACHE = {
    "meta-llama/Llama-3.1-8B": 131_072,
    LLAMA: 327_680,
    LARGE: 516_096,
    "Qwen/Qwen2.5-72B-Instruct": 327_680,
    "Qwen/Qwen3-32B": 262_144,
    "Qwen/Qwen3-235B-A22B": 192_512,
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": 253_952,
    "mistralai/Mixtral-8x22B-v0.1": 229_376,
    "mistralai/Mixtral-8x7B-v0.1": 131_072,
    "openai/gpt-oss-20b": 49_152,
    "openai/gpt-oss-120b": 73_728,
    DEEPSEEK: 70_272,
    "deepseek-ai/DeepSeek-V3.2": 70_272,
    KIMI: 70_272,
    "moonshotai/Kimi-K2.5": 70_272,
    "zai-org/GLM-5": 89_856,
    "MiniMaxAI/MiniMax-M2.7": 253_952,
    MISTRAL: 70_272,
    "microsoft/phi-4": 204_800,
    "Qwen/Qwen2.5-Coder-32B-Instruct": 262_144,
}


@for_each("name", CACHE)
def test_a_token_takes_its_bytes_in_the_cache(name: str) -> None:
    assert cache_per_token(shape_of(name)) == CACHE[name]


WEIGHTS = {
    "meta-llama/Llama-3.1-8B": 14.96,
    LLAMA: 131.42,
    LARGE: 755.96,
    "Qwen/Qwen2.5-72B-Instruct": 135.43,
    "Qwen/Qwen3-32B": 61.02,
    "Qwen/Qwen3-235B-A22B": 437.90,
    "Qwen/Qwen3-Coder-480B-A35B-Instruct": 894.4,
    "mistralai/Mixtral-8x22B-v0.1": 261.93,
    "openai/gpt-oss-20b": 12.82,
    "openai/gpt-oss-120b": 60.77,
    DEEPSEEK: 637.85,
    "deepseek-ai/DeepSeek-V3.2": 638.69,
    "deepseek-ai/DeepSeek-V4-Pro": 805.34,
    "deepseek-ai/DeepSeek-V4-Flash": 149.0,
    "deepseek-ai/DeepSeek-V4-Flash-0731": 155.43,
    "moonshotai/Kimi-K2.5": 554.32,
    "zai-org/GLM-5.2-FP8": 703.75,
    "MiniMaxAI/MiniMax-M2.7": 214.34,
    "Qwen/Qwen3.5-397B-A17B-GPTQ-Int4": 219.56,
    MISTRAL: 634.70,
    "microsoft/phi-4": 27.31,
}


@for_each("name", WEIGHTS)
def test_a_model_has_its_weights(name: str) -> None:
    assert weights_of(name) == pytest.approx(WEIGHTS[name], abs=0.05)


COUNTED = frozenset({"bf16", "fp8", "mxfp8", "int8", "nvfp4", "mxfp4", "int4"})
"""Forms of weights of which the part of the experts is counted."""


@for_each("shape", known_models(), ids=lambda shape: shape.name)
def test_a_row_with_weights_says_their_form_and_source(shape: ModelShape) -> None:
    assert (shape.weights_gib is None) == (shape.weights_source is None)
    if shape.weights_gib is not None:
        assert shape.dtype is not None
        rest = weights_on_gpu(shape, Split(experts=10**9), shape.weights_gib)
        assert 0 <= rest <= shape.weights_gib
        assert shape.dtype in COUNTED
        assert bool(shape.experts and shape.expert_ffn) == (rest < shape.weights_gib)


@for_each("shape", known_models(), ids=lambda shape: shape.name)
def test_every_form_of_the_table_has_its_bits(shape: ModelShape) -> None:
    """A row that gets its weights later must not count its experts as shared by tensor only."""
    sized = replace(shape, weights_gib=1e6, experts=8, expert_ffn=1024, hidden=1024)
    rest = weights_on_gpu(sized, Split(experts=10**9), 1e6)
    assert shape.dtype is None or (shape.dtype in COUNTED and rest < 1e6)


def test_experts_of_nvfp4_spread_over_their_own_ranks() -> None:
    """58 layers of 256 experts, 4 bits of a number and a scale of 8 bits for each 16 of them."""
    name = "nvidia/DeepSeek-V3.1-NVFP4"
    experts = 58 * 256 * 3 * 7168 * 2048 * 4.5 / 8 / GIB
    assert weights_on_gpu(shape_of(name), Split(experts=10**9), 359.84) == pytest.approx(
        359.84 - experts, abs=0.01
    )
    spread = weights_on_gpu(shape_of(name), Split(experts=8), 359.84)
    assert spread == pytest.approx(359.84 - experts * 7 / 8, abs=0.01)


def test_experts_are_most_of_a_model_and_spread_over_their_own_ranks() -> None:
    rest = weights_on_gpu(shape_of("openai/gpt-oss-120b"), Split(experts=10**9), 60.77)
    assert rest == pytest.approx(4.04, abs=0.01)
    spread = weights_on_gpu(shape_of(DEEPSEEK), Split(tensor=8, experts=16), 641.30)
    assert 40.1 < spread < 80.2


def test_layers_are_not_cut_so_one_stage_is_the_fullest() -> None:
    split = Split(tensor=8, pipeline=2)
    assert fullest_weights(shape_of(DEEPSEEK), split, 641.30) == pytest.approx(641.30 / 8 * 31 / 61)
    assert fullest_weights(shape_of(LARGE), split, 755.96) == pytest.approx(755.96 / 16)


# Model, split: bytes of a token on a GPU.
ON_A_GPU = [
    (LLAMA, Split(tensor=8), 327_680 // 8),
    (LLAMA, Split(tensor=16), 327_680 // 8),
    (LARGE, Split(tensor=8, pipeline=2), 516_096 // 16),
    ("Qwen/Qwen3-235B-A22B", Split(tensor=8), 192_512 // 4),
    (DEEPSEEK, Split(tensor=8), 70_272),
    (DEEPSEEK, Split(tensor=8, pipeline=2), 31 * 576 * 2),
    (DEEPSEEK, Split(tensor=8, decode_context=8), 70_272 // 8),
    (LLAMA, Split(tensor=8, attention=2), 327_680 // 2),
]


@pytest.mark.parametrize(("name", "split", "wanted"), ON_A_GPU)
def test_heads_are_shared_and_latent_attention_is_not(name: str, split: Split, wanted: int) -> None:
    assert cache_per_token_on_gpu(shape_of(name), split) == wanted


def test_a_cache_of_another_kind_is_not_known() -> None:
    assert cache_per_token(shape_of("deepseek-ai/DeepSeek-V4-Pro")) is None


@pytest.mark.parametrize(
    ("name", "weights", "wanted"),
    [(LLAMA, 32.9, 3.945), (LLAMA, 2.0, 3.5), (DEEPSEEK, 40.1, 8.0), (MISTRAL, 40.0, 8.0)],
)
def test_overhead_grows_with_weights_and_with_experts(
    name: str, weights: float, wanted: float
) -> None:
    assert overhead(shape_of(name), weights) == pytest.approx(wanted)


# Model, instance type: GPUs, nodes, and the parallelism that follows.
ESTIMATES = [
    (LARGE, "Standard_ND96isr_H100_v5", 13, 2, (8, 2, 1)),
    (LARGE, "Standard_ND96isr_H200_v5", 7, 1, (8, 1, 1)),
    ("deepseek-ai/DeepSeek-R1", "Standard_ND96isr_H100_v5", 11, 2, (8, 2, 1)),
    ("deepseek-ai/DeepSeek-R1", "Standard_NC80adis_H100_v5", 9, 5, (2, 5, 1)),
    (LLAMA, "Standard_ND96isr_H100_v5", 3, 1, (8, 1, 1)),
    (LLAMA, "Standard_NV36ads_A10_v5", 9, 9, (1, 9, 1)),
    (MISTRAL, "Standard_NC80adis_H100_v5", 9, 5, (2, 5, 1)),
    ("meta-llama/Llama-3.1-8B-Instruct", "Standard_NC96ads_A100_v4", 1, 1, (1, 1, 4)),
    ("openai/gpt-oss-120b", "Standard_NC24ads_A100_v4", 3, 3, (1, 3, 1)),
]


@pytest.mark.parametrize(("name", "kind", "gpus", "nodes", "sizes"), ESTIMATES)
def test_kaito_counts_gpus_and_nodes(
    name: str, kind: str, gpus: int, nodes: int, sizes: tuple[int, int, int]
) -> None:
    shape, instance = shape_of(name), find_instance(kind)
    files, each = shape.files_gib or shape.weights_gib, cache_per_token(shape)
    assert isinstance(instance, Instance)
    assert files is not None
    assert each is not None
    counted = minimum_gpus(instance, files, each)
    assert counted == gpus
    tensor, pipeline, data = sizes
    assert derive(instance, gpus, files) == Deployment(
        gpus=gpus, nodes=nodes, tensor=tensor, pipeline=pipeline, data=data
    )


def test_a_long_request_takes_more_gpus_and_a_longer_one_has_no_room() -> None:
    instance = find_instance("Standard_NV36ads_A10_v5")
    assert isinstance(instance, Instance)
    assert minimum_gpus(instance, 14.96, 131_072) == 1
    assert minimum_gpus(instance, 14.96, 131_072, 131_072) == 9
    assert minimum_gpus(instance, 14.96, 131_072, 262_144) == TooSmall(
        available=pytest.approx(20.16),  # type: ignore[arg-type]
        needed=pytest.approx(2.3 + 262_144 * 131_072 / GIB),  # type: ignore[arg-type]
    )
