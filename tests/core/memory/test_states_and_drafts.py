"""What SGLang leaves for the KV cache beside states and drafts, and keeps beside weights."""

from dataclasses import replace

import pytest

from kthena_components.core.engines import CommandFacts
from kthena_components.core.memory import Split
from kthena_components.core.memory.sizes import GIB
from kthena_components.core.memory.states_and_drafts import (
    States,
    cache_beside_states,
    drafted_tokens,
    kept_in_sglang,
    left_in_sglang,
    of_descriptors,
    without_draft,
)
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.images import Version
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each

FEW: dict[str, object] = {"--max-running-requests": 4}
NO_RADIX: dict[str, object] = {"--disable-radix-cache": True}
SLOTS: dict[str, object] = {"--max-mamba-cache-size": 10}

# Options, release, whether drafts are verified: what is left of 38 GiB with states of 0.5.
LEFT: list[tuple[dict[str, object], Version | None, bool, float]] = [
    ({}, None, False, 20.0),
    ({"--mamba-full-memory-ratio": 1}, None, False, 19.0),
    ({"--mamba-full-memory-ratio": 0.0}, None, False, 20.0),
    # Without the radix cache, as many as requests, and one more since 0.5.20.
    ({**FEW, **NO_RADIX}, None, False, 35.5),
    ({**FEW, **NO_RADIX}, (0, 5, 16), False, 36.0),
    (FEW, (0, 5, 16), False, 20.0),
    (FEW, (0, 5, 3), False, 36.0),
    (NO_RADIX, (0, 5, 16), False, 20.0),
    (NO_RADIX, (0, 5, 8), False, 38 - 256),
    ({}, (0, 5, 3), False, 38 - 256),
    (SLOTS, (0, 5, 16), False, 33.0),
    # Drafts of four tokens: four states more for each.
    ({**FEW, **NO_RADIX}, (0, 5, 16), True, 28.0),
    ({**FEW, **NO_RADIX}, (0, 5, 8), True, 28.0),
    ({**SLOTS, **FEW}, (0, 5, 16), True, 38 - 5 - 8),
    ({**SLOTS, **FEW}, (0, 5, 8), True, 38 - 25),
    (FEW, (0, 5, 8), True, 20.0),
    (FEW, (0, 5, 12), True, 30 / 1.9),
    # 18 GiB for n states and for n/5 × 4: 20 states and four drafts of four tokens.
    (FEW, (0, 5, 16), True, 38 - 10 - 8),
    # Half of 36 states are for drafts, which leaves room for three requests with five states each.
    ({**FEW, "--speculative-num-draft-tokens": 5}, (0, 5, 16), True, 38 - 9 - 7.5),
    ({**FEW, "--mamba-radix-cache-strategy": "no_buffer"}, (0, 5, 16), True, 38 - 54 / 7 - 8),
]


@for_each(("options", "release", "drafts", "left"), LEFT)
def test_states_take_their_part(
    options: dict[str, object], release: Version | None, drafts: bool, left: float
) -> None:
    states = States(state_gib=0.5, options=options, release=release, copies=1, drafts=drafts)

    assert cache_beside_states(38.0, states) == pytest.approx(left, abs=0.01)


def test_without_their_size_states_take_their_ratio() -> None:
    states = States(
        state_gib=None, options={**FEW, **NO_RADIX}, release=None, copies=1, drafts=True
    )

    assert cache_beside_states(38.0, states) == pytest.approx(20.0)


def test_copies_of_the_attention_share_the_requests() -> None:
    options = {"--max-running-requests": 8, **NO_RADIX}
    states = States(state_gib=0.5, options=options, release=(0, 5, 16), copies=4, drafts=False)

    assert cache_beside_states(38.0, states) == pytest.approx(37.0)


def shape_of(model: str) -> ModelShape:
    shape = find_model(model)
    assert isinstance(shape, ModelShape), model
    return shape


def test_ranks_share_the_states_of_a_request() -> None:
    shape = replace(shape_of("Qwen/Qwen3.6-27B"), draft_layers=0)
    each = (shape.state_bytes or 0) / GIB
    options = {"--max-running-requests": 32, **NO_RADIX}

    for split, ranks in ((Split(), 1), (Split(tensor=2, pipeline=2), 4)):
        left = left_in_sglang(38.0, shape, split, options, (0, 5, 16))
        assert left == pytest.approx(38 - 32 * each / ranks)


def test_tokens_take_memory_in_the_layers_for_drafts() -> None:
    shape = replace(shape_of("Qwen/Qwen3-8B"), layers=36, draft_layers=1)

    assert left_in_sglang(37.0, shape, Split(), {}, None) == pytest.approx(36.0)
    assert left_in_sglang(37.0, shape, Split(), {}, (0, 5, 13)) == 37.0


def test_states_may_have_half_of_their_bits() -> None:
    shape = replace(shape_of("Qwen/Qwen3.6-27B"), draft_layers=0)
    few: dict[str, object] = {"--max-mamba-cache-size": 10}

    def states(kind: str) -> float:
        options = {**few, "--mamba-ssm-dtype": kind}
        return 38.0 - left_in_sglang(38.0, shape, Split(), options, (0, 5, 16))

    assert states("float32") == 38.0 - left_in_sglang(38.0, shape, Split(), few, (0, 5, 16))
    for kind in ("bfloat16", "float16"):
        assert states(kind) == pytest.approx(states("float32") / 2)


@for_each("release", [(0, 5, 14), (0, 5, 17), None])
def test_drafts_have_embeddings_and_a_head_while_the_cache_is_sized(
    release: Version | None,
) -> None:
    shape = shape_of("Qwen/Qwen3.8-27B")
    own = 2 * 248320 * 5120 * 2 / GIB

    for split, ranks in ((Split(), 1), (Split(tensor=2, pipeline=2), 4)):
        kept = kept_in_sglang(shape, split, 52.0, "NVIDIA H200", release)
        assert kept == pytest.approx(own / ranks)
    alone = without_draft(shape)
    assert kept_in_sglang(alone, Split(), 52.0, "NVIDIA H200", release) == 0.0


def test_drafts_are_loaded_after_the_cache_is_sized_before_0_5_14() -> None:
    shape = shape_of("Qwen/Qwen3.8-27B")
    layer = (shape.weights_gib or 0.0) - (without_draft(shape).weights_gib or 0.0)

    kept = kept_in_sglang(shape, Split(tensor=2), 52.0, "NVIDIA H200", (0, 5, 13))
    assert layer > 0.5
    assert kept == pytest.approx(-layer / 2)


TOKENS: list[tuple[dict[str, object], int]] = [
    ({}, 0),
    ({"--num-speculative-tokens": 5}, 0),  # Without a method or a model, nothing is drafted.
    ({"--speculative-model": "m", "--num-speculative-tokens": 5}, 5),
    ({"--speculative-config": {"method": "mtp", "num_speculative_tokens": 3}}, 3),
    ({"--speculative-config": {"method": "mtp"}}, 1),
    ({"--speculative-config": {"method": "mtp", "num_speculative_tokens": 0}}, 1),
    ({"--speculative-config": {"method": "mtp", "num_speculative_tokens": "3"}}, 1),
    ({"--speculative-config": Unknown("late")}, 1),
]


@for_each(("options", "tokens"), TOKENS)
def test_vllm_verifies_the_tokens_of_a_draft_at_once(
    options: dict[str, object], tokens: int
) -> None:
    assert drafted_tokens(CommandFacts(engine="vllm", options=options)) == tokens


# Model, GPU, release of vLLM: MiB that CUDA's driver keeps for descriptors of tensors.
DESCRIPTORS: list[tuple[str, str, Version | None, int]] = [
    ("Qwen/Qwen3.5-35B-A3B-GPTQ-Int4", "NVIDIA GeForce RTX 5090", (0, 17, 1), 0),
    ("Qwen/Qwen3.5-35B-A3B-GPTQ-Int4", "NVIDIA GeForce RTX 5090", (0, 18, 0), 3740),
    ("Qwen/Qwen3.8-27B-FP8", "NVIDIA RTX PRO 6000", (0, 19, 0), 4136),
    ("Qwen/Qwen3.5-35B-A3B-FP8", "NVIDIA GB10", (0, 19, 1), 1056),
    ("Qwen/Qwen3.5-35B-A3B-FP8", "NVIDIA GB10", (0, 20, 0), 0),
    ("Qwen/Qwen3.5-35B-A3B-FP8", "NVIDIA GB10", None, 0),
    ("Qwen/Qwen3.5-35B-A3B-FP8", "NVIDIA H200", (0, 18, 0), 0),
    ("Qwen/Qwen3-8B", "NVIDIA GB10", (0, 19, 0), 0),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "NVIDIA GB10", (0, 19, 0), 0),
    ("Qwen/Qwen3.8-27B-FP8", "NVIDIA GeForce RTX 5080", (0, 19, 0), 84 * 22),
    ("Qwen/Qwen3.8-27B-FP8", "NVIDIA RTX PRO 5000", (0, 19, 0), 110 * 22),
]


@for_each(("model", "gpu", "release", "mib"), DESCRIPTORS)
def test_descriptors_of_gated_delta_nets_take_memory_of_each_multiprocessor(
    model: str, gpu: str, release: Version | None, mib: int
) -> None:
    shape = find_model(model)
    assert isinstance(shape, ModelShape)

    assert of_descriptors(shape, gpu, release) * 1024 == pytest.approx(mib)


GLM, KIMI, DENSE = "nvidia/GLM-5-NVFP4", "moonshotai/Kimi-K2.5", "nvidia/Qwen3-32B-NVFP4"
SCALES = 75 * 256 * 3 * 6144 * 2048 / 16 / 8 / GIB
"""Scales of all experts of GLM-5 on one of eight ranks."""
ENCODER = 27 * 8 * 1152**2 * 2 * 7 / 8 / GIB
"""Feed-forward layers of Kimi's encoder, beyond a rank's share of eight."""
INDEXES = 60 * 384 * (7168 + 256) * 2 * 4 / GIB

# Model, GPU, release, ranks: GiB that SGLang keeps beside the weights of a rank.
KEPT: list[tuple[str, str, Version | None, int, float]] = [
    (GLM, "NVIDIA B200", (0, 4, 9), 8, SCALES),
    (GLM, "NVIDIA B200", (0, 5, 9), 8, SCALES / 3),
    (GLM, "NVIDIA B200", (0, 5, 10), 8, SCALES),
    (GLM, "NVIDIA B200", (0, 5, 12), 8, 0.0),
    (GLM, "NVIDIA B200", None, 8, 0.0),
    ("zai-org/GLM-5-FP8", "NVIDIA B200", (0, 5, 9), 8, 0.0),
    ("RedHatAI/Kimi-K2.6-NVFP4", "NVIDIA B200", (0, 5, 9), 8, ENCODER),
    (KIMI, "NVIDIA H20", (0, 5, 12), 8, ENCODER),
    (KIMI, "AMD Instinct MI355X", (0, 5, 9), 8, ENCODER + INDEXES),
    (DENSE, "NVIDIA B200", (0, 5, 9), 1, 1.816),
    (DENSE, "NVIDIA B200", (0, 5, 12), 1, 0.0),
    (GLM, "NVIDIA B200", (0, 5, 1), 8, SCALES),
    (GLM, "NVIDIA B200", (0, 5, 2), 8, SCALES / 3),
    (GLM, "NVIDIA B200", (0, 5, 11), 8, SCALES),
    (DENSE, "NVIDIA B200", (0, 5, 9), 2, 1.816 / 2),
    ("nvidia/Llama-4-Scout-17B-16E-Instruct-FP8", "NVIDIA B200", (0, 5, 9), 1, 0.0),
    ("zai-org/GLM-5-FP8", "AMD Instinct MI355X", (0, 5, 9), 8, 0.0),
    ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "NVIDIA H200", (0, 5, 9), 8, 0.0),
]


@for_each(("model", "gpu", "version", "ranks", "gib"), KEPT)
def test_sglang_keeps_scales_and_indexes(
    model: str, gpu: str, version: Version | None, ranks: int, gib: float
) -> None:
    shape = replace(shape_of(model), draft_layers=0)
    weights = shape.weights_gib or 0.0
    for stages in (1, 2):
        split = Split(tensor=ranks, pipeline=stages)
        kept = kept_in_sglang(shape, split, weights, gpu, version)
        whole = ENCODER if shape.latent and shape.vision_layers else 0.0  # in the first stage only
        assert kept == pytest.approx((gib - whole) / stages + whole, abs=0.001)


def test_sglang_keeps_scales_of_the_experts_that_a_rank_has() -> None:
    """With attention on each rank whole, 16 ranks share the experts."""
    shape = replace(shape_of(GLM), draft_layers=0)
    split = Split(tensor=8, pipeline=1, experts=16)
    kept = kept_in_sglang(shape, split, shape.weights_gib or 0.0, "NVIDIA B200", (0, 5, 10))

    assert kept == pytest.approx(SCALES / 2, abs=0.001)


# Model: GiB of its layers for drafts. Their experts have 4.25 bits, with 8 in the rest.
DRAFTS = [
    ("deepseek-ai/DeepSeek-V4-Flash", 1 * 256 * 3 * 4096 * 2048 * 4.25 / 8 / GIB),
    ("deepseek-ai/DeepSeek-V4-Flash-0731", 3 * 256 * 3 * 4096 * 2048 * 4.25 / 8 / GIB),
    ("deepseek-ai/DeepSeek-V4-Pro", 1 * 384 * 3 * 7168 * 3072 * 4.25 / 8 / GIB),
]


@for_each(("model", "experts"), DRAFTS)
def test_layers_for_drafts_of_deepseek_v4_are_apart(model: str, experts: float) -> None:
    """Both checkpoints of Flash have the same layers beside them, within 0.2 GiB."""
    shape = shape_of(model)
    rest = without_draft(shape)

    assert rest.draft_layers == 0
    loss = (shape.weights_gib or 0.0) - (rest.weights_gib or 0.0)
    assert experts <= loss <= 1.04 * experts
    if "Flash" in model:
        assert rest.weights_gib == pytest.approx(145.65, abs=0.1)
