"""Bytes of a token in the KV cache, by the type of its numbers, as the engines allocate them."""

import pytest

from kthena_components.core.memory import CacheType, Split, cache_per_token_on_gpu, cache_type
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.unknown import Unknown

LLAMA, DEEPSEEK = "meta-llama/Llama-3.3-70B-Instruct", "deepseek-ai/DeepSeek-V3"


def type_of(name: str | None) -> CacheType:
    found = cache_type(name)
    assert isinstance(found, CacheType), name
    return found


def shape_of(name: str) -> ModelShape:
    shape = find_model(name)
    assert isinstance(shape, ModelShape), name
    return shape


# Bytes of keys and values of 128 numbers each, one head in one layer.
OF_A_HEAD = {
    None: 512,
    "auto": 512,
    "float16": 512,
    "bfloat16": 512,
    "bf16": 512,
    "fp8": 256,
    "fp8_e4m3": 256,
    "fp8_e5m2": 256,
    "fp8_inc": 256,
    # A scale of 4 bytes for keys, and one for values.
    "int8_per_token_head": 264,
    "fp8_per_token_head": 264,
    "int4_per_token_head": 136,
    # A scale of a byte for 16 numbers, or for 32.
    "nvfp4": 144,
    "nvfp4_4over6": 144,
    "fp4_e2m1": 144,
    "fp4_mx_block16": 144,
    "mxfp8": 264,
}


@pytest.mark.parametrize("name", OF_A_HEAD, ids=str)
def test_a_head_takes_its_bytes_with_its_scales(name: str | None) -> None:
    shape, split = shape_of(LLAMA), Split(tensor=8)
    assert cache_per_token_on_gpu(shape, split, type_of(name)) == 80 * OF_A_HEAD[name]


# The first two and the last two layers keep 16 bits.
PACKED = {
    "turboquant_k8v4": 196,
    "turboquant_4bit_nc": 134,
    "turboquant_k3v4_nc": 118,
    "turboquant_3bit_nc": 102,
    "ultraquant_4bit": 136,
}


@pytest.mark.parametrize("name", PACKED)
def test_packed_types_leave_the_layers_at_both_ends_alone(name: str) -> None:
    shape, kind, each = shape_of(LLAMA), type_of(name), PACKED[name]
    assert cache_per_token_on_gpu(shape, Split(tensor=8), kind) == 76 * each + 4 * 512
    halves = Split(tensor=8, pipeline=2)
    assert cache_per_token_on_gpu(shape, halves, kind) == 38 * each + 2 * 512
    # 27, 27 and 26 layers, and 11, 12, 12, 12, 12, 12 and 11.
    thirds, sevenths = Split(tensor=8, pipeline=3), Split(tensor=8, pipeline=7)
    assert cache_per_token_on_gpu(shape, thirds, kind) == 25 * each + 2 * 512
    first = 9 * each + 2 * 512
    assert cache_per_token_on_gpu(shape, sevenths, kind) == max(first, 12 * each)


def test_packed_keys_and_values_begin_at_even_bytes() -> None:
    # 27 + 2 of keys, 36 + 4 of values.
    assert type_of("turboquant_k3v4_nc").of_head(72) == 70


OF_A_LATENT = {
    None: 1152,
    "fp8": 576,
    "fp8_per_token_head": 584,
    "int8_per_token_head": 584,
    "int4_per_token_head": 296,
    "nvfp4": 324,
    "fp4_e2m1": 324,
    "fp8_ds_mla": 656,
    "nvfp4_ds_mla": 352,
}


@pytest.mark.parametrize("name", OF_A_LATENT, ids=str)
def test_latent_attention_takes_its_bytes(name: str | None) -> None:
    shape, kind = shape_of(DEEPSEEK), type_of(name)
    assert cache_per_token_on_gpu(shape, Split(tensor=8), kind) == 61 * OF_A_LATENT[name]
    spread = Split(tensor=8, decode_context=8)
    assert cache_per_token_on_gpu(shape, spread, kind) == -(-61 * OF_A_LATENT[name] // 8)


@pytest.mark.parametrize("name", ["turboquant_4bit_nc", "ultraquant_4bit", "mxfp8"])
def test_a_type_for_heads_has_no_latent(name: str) -> None:
    assert cache_per_token_on_gpu(shape_of(DEEPSEEK), Split(), type_of(name)) is None


@pytest.mark.parametrize("name", ["fp8_ds_mla", "nvfp4_ds_mla"])
def test_a_type_for_latent_attention_has_no_heads(name: str) -> None:
    assert cache_per_token_on_gpu(shape_of(LLAMA), Split(), type_of(name)) is None


@pytest.mark.parametrize("name", ["int4", "int8", "octave_k3v4", "fp6", "FP8", "", "q" * 99])
def test_another_type_is_not_known_and_never_two_bytes(name: str) -> None:
    assert cache_type(name) == Unknown(f"the size of a KV cache of '{name[:40]}' is not known")
