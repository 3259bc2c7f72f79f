"""Tests of the weights that ranks hold beside their part of the checkpoint."""

from dataclasses import replace
from typing import Any

import pytest

from kthena_components.core.engines.vllm import runs_encoder
from kthena_components.core.findings import Level
from kthena_components.core.memory import GIB
from kthena_components.core.memory.engine import EngineOnGpu, engines_on_gpu, has_whole_encoder
from kthena_components.core.memory.estimate import Estimate
from kthena_components.core.memory.held_weights import (
    copied_weights,
    encoder_copies,
    encoder_left_out,
    expanding_copies,
    inner_multiple,
    kept_buffers,
    loaded_weights,
)
from kthena_components.core.memory.sizes import Split, expert_weights, fullest_weights
from kthena_components.core.memory.states_and_drafts import head_weights, without_draft
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.images import Version
from tests.core.memory.start_ups import Measured, start_ups
from tests.support.for_each import for_each

MTP = ("--speculative-config", '{"method":"mtp","num_speculative_tokens":1}')
R1, KIMI, QWEN = (
    "deepseek-ai/DeepSeek-R1-0528",
    "moonshotai/Kimi-K2.5",
    "RedHatAI/Qwen3-235B-A22B-FP8-dynamic",
)
H200, MI300X = "NVIDIA-H200", "AMD_Instinct_MI300X"


def shape_of(model: str) -> ModelShape:
    shape = find_model(model)
    assert isinstance(shape, ModelShape), model
    return shape


# Model, ranks: what start-ups state as weights.
FILLED = [
    ("openai/gpt-oss-20b", 1, 13.72),
    ("openai/gpt-oss-120b", 1, 65.97),
    ("openai/gpt-oss-120b", 4, 17.22),
]


@for_each(("model", "tensor", "gib"), FILLED)
def test_experts_in_mxfp4_are_filled_up(model: str, tensor: int, gib: float) -> None:
    shape = shape_of(model)
    assert shape.weights_gib is not None

    loaded = loaded_weights(shape, Split(tensor=tensor), shape.weights_gib)

    assert loaded == pytest.approx(gib, abs=0.1)
    assert loaded > 1.05 * shape.weights_gib / tensor


# Model, GPU, ranks: what start-ups state as weights, and how close it has to be.
STATED = [
    (R1, H200, 8, (79.58, 0.1)),
    (R1, MI300X, 8, (81.31, 0.5)),
    (QWEN, MI300X, 4, (55.92, 0.4)),
    (QWEN, MI300X, 8, (28.04, 0.3)),
    (KIMI, H200, 8, (72.02, 1.0)),
    ("moonshotai/Kimi-K3", "AMD_Instinct_MI355X_VF", 8, (192.29, 1.5)),
    ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", H200, 2, (59.91, 1.6)),
    ("Qwen/Qwen3.8-27B", H200, 1, (51.1, 0.2)),
    ("Qwen/Qwen3.8-27B-FP8", H200, 1, (28.51, 0.2)),
    ("Qwen/Qwen3.5-9B", H200, 1, (17.66, 0.2)),
    ("Qwen/Qwen3.5-4B", H200, 1, (8.61, 0.2)),
    ("Qwen/Qwen3.5-122B-A10B-GPTQ-Int4", H200, 1, (68.36, 0.6)),
]


@for_each(("model", "gpu", "tensor", "stated"), STATED)
def test_weights_are_those_that_start_ups_state(
    model: str, gpu: str, tensor: int, stated: tuple[float, float]
) -> None:
    gib, by = stated
    args = ("--enable-expert-parallel",) if model == QWEN else ()

    assert weights("vllm", model, gpu, tensor, args) == pytest.approx(gib, abs=by)


def weights(
    engine: str, model: str, gpu: str, tensor: int, args: tuple[str, ...], *, sglang: str = "0.5.8"
) -> float:
    start = Measured(
        id="", source="", engine=engine, version="0.14.1" if engine == "vllm" else sglang,
        gpu=gpu, tensor=tensor, model=model, args=args, started=True,
    )  # fmt: skip
    return float(getattr(start.estimate, "weights", 0))


# Model, tokens of a batch, release: GiB beside the weights. 262,144 positions, four times, of 64 or
# 128 numbers; three buffers for a batch; 262,144 positions of 256 and 512 numbers; positions of one
# width; four streams for drafts, and 1,048,576 positions of 64 numbers in 32 bits, twice.
BUFFERS = [
    ("Qwen/Qwen3.5-9B", 8192, None, 0.125),
    ("Qwen/Qwen3-VL-30B-A3B-Instruct", 8192, None, 0.25 + 3 * 8192 * 2048 * 2 / GIB),
    ("google/gemma-4-26B-A4B-it", 8192, None, 0.375),
    ("google/gemma-4-E4B-it", 8192, None, 131072 * 256 * 2 / GIB),
    ("Qwen/Qwen3-8B", 8192, None, 40960 * 128 * 2 / GIB),
    # Tables of 262,144 and 1,048,576 positions: heads of 128, a quarter of 256, a latent's 64.
    ("Qwen/Qwen3-30B-A3B-Instruct-2507", 8192, None, 0.0625),
    ("mistralai/Ministral-3-14B-Instruct-2512", 8192, None, 0.0625),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", 8192, None, 0.03125),
    ("nvidia/GLM-5.2-NVFP4", 8192, None, 0.125),
    ("zai-org/GLM-5-FP8", 8192, None, 202752 * 64 * 2 / GIB),
    ("poolside/Laguna-S-2.1-INT4", 8192, None, 0.25),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8", 8192, None, 0.0),  # It rotates nothing.
    ("deepseek-ai/DeepSeek-V4-Flash", 16384, (0, 23, 0), 0.5 + 0.5),
    ("deepseek-ai/DeepSeek-V4-Flash", 16384, (0, 31, 0), 0.5 + 0.5),
    # One table without layers with windows, another one for a layer that drafts.
    ("nvidia/DeepSeek-V4-Pro-NVFP4", 8192, None, 0.25),
    ("deepseek-ai/DeepSeek-V4-Pro", 8192, None, 0.5 + 0.4375),
    ("zai-org/GLM-5.3-Flash", 8192, None, 0.125),  # Not a quarter of 64 beside its states.
    # Half of a head, three quarters of one, a third of one in two tables.
    ("MiniMaxAI/MiniMax-M3", 8192, None, 0.125),
    ("zai-org/GLM-4.5-Air", 8192, None, 131072 * 64 * 2 / GIB),
    ("microsoft/Phi-4-mini-instruct", 8192, None, 131072 * 96 * 2 / GIB),
    ("XiaomiMiMo/MiMo-V2.5", 8192, None, 0.25),
    # Two tables, one of them of eight times the length, except in the smallest model.
    ("google/gemma-3-4b-it", 8192, None, 0.5 + 0.0625),
    ("google/gemma-3-1b-it", 8192, None, 32768 * 512 * 2 / GIB),
    # They rotate nothing: distances or states stand for positions.
    ("thinkingmachines/Inkling", 8192, None, 0.0),
    ("thinkingmachines/Inkling-Small-NVFP4", 8192, None, 0.0),
    ("moonshotai/Kimi-Linear-48B-A3B-Instruct", 8192, None, 0.0),
    ("moonshotai/Kimi-K3", 8192, None, 0.0),
]


@for_each(("model", "tokens", "version", "gib"), BUFFERS)
def test_buffers_are_allocated_with_the_weights(
    model: str, tokens: int, version: Version | None, gib: float
) -> None:
    assert kept_buffers(shape_of(model), tokens, version) == pytest.approx(gib)


# Release: streams of a batch of DeepSeek-V4 without drafts.
STREAMS = [((0, 23, 0), 0.5), ((0, 26, 0), 0.5), ((0, 27, 0), 0.0), ((0, 31, 0), 0.0), (None, 0.0)]


@for_each(("version", "gib"), STREAMS)
def test_streams_are_kept_without_drafts_by_older_releases_only(
    version: Version | None, gib: float
) -> None:
    shape = without_draft(shape_of("deepseek-ai/DeepSeek-V4-Flash"))

    assert kept_buffers(shape, 16384, version) == pytest.approx(0.5 + gib)


LIMIT = "--limit-mm-per-prompt"
# Release, options: whether the encoder runs for images or films, and for films.
LIMITS = [
    ("0.27.0", (LIMIT, '{"image": 0, "video": 0}'), False, False),
    ("0.27.0", (LIMIT, '{"video": 0}'), True, False),
    ("0.27.0", (LIMIT, '{"image": {"count": 0}, "video": {"count": 1}}'), True, True),
    ("0.27.0", (f"{LIMIT}.image", "0", f"{LIMIT}.video", "0"), False, False),
    ("0.27.0", (f"{LIMIT}.image.count", "0", f"{LIMIT}.video", "1"), True, True),
    ("0.27.0", (f"{LIMIT}.image.count", "1", f"{LIMIT}.video.count", "0"), True, False),
    ("0.9.2", (LIMIT, "image=0,video=0"), False, False),
    ("0.9.2", (LIMIT, "image=1,video=0"), True, False),
]


@for_each(("release", "args", "runs", "films"), LIMITS)
def test_limits_of_a_command_line_leave_the_encoder_out(
    release: str, args: tuple[str, ...], runs: bool, films: bool
) -> None:
    measured = Measured(
        id="", source="", engine="vllm", version=release, gpu=H200, tensor=1, model=QWEN, args=args,
        started=True,
    )  # fmt: skip
    command = measured.serving.engines[0].entry.command

    assert command is not None
    assert runs_encoder(command.options) == runs
    assert runs_encoder(command.options, ("video",)) == films


@for_each("start", [s for s in start_ups() if s.id in {"m07", "z08", "z10", "o04"}])
def test_an_encoder_without_inputs_is_not_loaded(start: Measured) -> None:
    """The logs of these start-ups state the weights; with the encoder they are 0.8 GiB more."""
    ((_, placed),) = engines_on_gpu(start.serving)

    assert isinstance(placed, EngineOnGpu)
    assert placed.loaded == pytest.approx(start.weights_gib, abs=0.08)


# Release, model, options: GiB of an encoder on each of two ranks that is not loaded.
LEFT_OUT: list[tuple[Version | None, str, dict[str, object], float]] = [
    ((0, 19, 1), "google/gemma-3-27b-it", {LIMIT: {"image": 0, "video": 0}}, 0.4),
    (None, "google/gemma-3-27b-it", {"--language-model-only": True}, 0.4),
    ((0, 13, 0), "google/gemma-3-27b-it", {"--language-model-only": True}, 0.0),
    (None, "google/gemma-3-27b-it", {LIMIT: {"image": 0}}, 0.0),
    (None, "google/gemma-3-27b-it", {"--skip-mm-profiling": True}, 0.0),
    (None, "Qwen/Qwen3-32B", {"--language-model-only": True}, 0.0),
]


@for_each(("release", "model", "options", "gib"), LEFT_OUT)
def test_what_a_rank_does_not_load_of_an_encoder(
    release: Version | None, model: str, options: dict[str, object], gib: float
) -> None:
    found = encoder_left_out(shape_of(model), Split(tensor=2), options, release)

    assert found == pytest.approx(gib, abs=0.005)


# GPU, release: the multiple of an expert's inner width in MXFP4.
MULTIPLES = [
    ("NVIDIA B200", (0, 10, 1), 128),
    ("NVIDIA B200", (0, 11, 0), 256),
    ("NVIDIA GB200", (0, 26, 0), 256),
    ("NVIDIA B200", (0, 27, 0), 128),
    ("NVIDIA B200", None, 128),
    ("NVIDIA H100 80GB", (0, 13, 0), 128),
    ("NVIDIA GB10", (0, 13, 0), 128),
    ("", (0, 13, 0), 128),
]


@for_each(("gpu", "version", "multiple"), MULTIPLES)
def test_experts_in_mxfp4_are_filled_up_as_their_kernel_needs_it(
    gpu: str, version: Version | None, multiple: int
) -> None:
    assert inner_multiple(gpu, version) == multiple


def test_wider_experts_take_more() -> None:
    """Eight ranks have 360 numbers of 2,880 each, which become 384 or 512."""
    shape = shape_of("openai/gpt-oss-120b")
    wide, narrow = (
        loaded_weights(shape, Split(tensor=8), 0.0 + (shape.weights_gib or 0), None, multiple)
        for multiple in (256, 128)
    )

    assert wide - narrow == pytest.approx(2.7, abs=0.1)


def test_only_vllm_has_these_buffers() -> None:
    """SGLang's table of rotations has the positions of the longest request alone."""
    model = "Qwen/Qwen3.5-9B"
    more = weights("vllm", model, H200, 1, ()) - weights("sglang", model, H200, 1, ())

    assert more == pytest.approx(0.125)


EAGLE_OF_SGLANG = ("--speculative-algorithm", "EAGLE", "--speculative-draft-model-path")
# Engine, options: whether the layers for drafts are loaded.
DRAFTS = [
    ("vllm", (), False),
    ("vllm", ("--max-model-len", "8192"), False),
    ("vllm", MTP, True),
    ("sglang", (), False),
    ("sglang", ("--speculative-algorithm", "EAGLE"), True),
    ("sglang", ("--speculative-algorithm", "NEXTN"), True),
    ("sglang", ("--speculative-algorithm", "NGRAM"), False),
    ("sglang", (*EAGLE_OF_SGLANG, "some/head"), False),
    ("vllm", ("--speculative-config", '{"method":"ngram","num_speculative_tokens":3}'), False),
    ("vllm", ("--speculative-config", '{"model":"some/draft","num_speculative_tokens":3}'), False),
    ("vllm", ("--speculative-config", '{"num_speculative_tokens":1}'), True),
    ("vllm", ("--speculative-model", "some/draft", "--num-speculative-tokens", "3"), False),
]


@for_each(("engine", "args", "loaded"), DRAFTS)
def test_layers_for_drafts_are_loaded_by_speculative_decoding(
    engine: str, args: tuple[str, ...], loaded: bool
) -> None:
    experts, attention, projection = 3 * 256 * 7168 * 2048, 187_107_328, 2 * 7168**2
    layer = (experts + attention + projection) / GIB / 8
    if engine == "sglang":
        layer += 2 * 129280 * 7168 * 2 / GIB / 8  # The draft's own embeddings and head.

    with_drafts, without = (
        weights(engine, R1, H200, 8, options, sglang="0.5.14") for options in (args, ())
    )
    more = with_drafts - without

    assert more == pytest.approx(layer if loaded else 0, abs=0.01)


def test_a_model_without_layers_for_drafts_stays_as_it_is() -> None:
    shape = shape_of("Qwen/Qwen3-8B")

    assert without_draft(shape) is shape


def test_a_layer_for_drafts_without_sizes_takes_nothing() -> None:
    shape = replace(shape_of(R1), expert_ffn=None)

    assert without_draft(shape).weights_gib == shape.weights_gib


# Model, ranks, ranks of the attention: GiB that other ranks hold as well. Attention of DeepSeek has
# 11.4 billion parameters, 0.9 billion of which compress; that of Qwen3-8B has 1.5 billion. The
# gates of 58 layers have 256 x 7168 numbers of 16 bits each: 0.2 GiB. Embeddings, of 1.73 and 1.16
# GiB, are as whole as the attention.
COPIED = [
    (R1, 1, 1, 0),
    (R1, 8, 8, (0.86 + 0.2) * 7 / 8),
    (R1, 8, 1, (10.63 + 0.2 + 1.73) * 7 / 8),
    ("Qwen/Qwen3-8B", 8, 8, 0),
    ("Qwen/Qwen3-8B", 8, 2, (2.81 + 1.16) * (1 / 2 - 1 / 8)),
]


@for_each(("model", "tensor", "attention", "gib"), COPIED)
def test_attention_is_copied_as_far_as_it_is_not_split(
    model: str, tensor: int, attention: int, gib: float
) -> None:
    found = copied_weights(shape_of(model), Split(tensor=tensor, attention=attention))

    assert found == pytest.approx(gib, abs=0.02)


@for_each(
    ("model", "bits"),
    [
        ({"dtype": "int4"}, 4.5),
        ({"dtype": "nvfp4"}, 4.5),
        ({"dtype": "int4", "experts": 8}, 16),
        ({}, 16),
    ],
)
def test_attention_has_few_bits_in_dense_models_only(model: dict[str, Any], bits: float) -> None:
    shape, split = shape_of("Qwen/Qwen3-8B"), Split(tensor=8, attention=2)
    shape = replace(shape, vocab=None)

    found = copied_weights(replace(shape, **model), split)

    assert found == pytest.approx(copied_weights(shape, split) * bits / 16, abs=0.003)


# Release, options: GiB of Qwen2.5-72B on one of two GPUs while it is quantised.
QUANTISED = [
    ("0.12.0", ("--quantization", "fp8"), 67.7),
    ("0.13.0", ("--quantization", "fp8"), 101.6),
    ("0.15.1", ("--quantization", "fp8"), 101.6),
    ("0.16.0", ("--quantization", "fp8"), 0),
    ("0.15.1", (), 0),
]


@for_each(("version", "args", "gib"), QUANTISED)
def test_weights_are_in_16_bits_before_they_are_quantised(
    version: str, args: tuple[str, ...], gib: float
) -> None:
    start = Measured(
        id="", source="", engine="vllm", version=version, gpu="NVIDIA-H100-80GB-HBM3", tensor=2,
        model="Qwen/Qwen2.5-72B-Instruct", args=(*args, "--max-model-len", "8192"), started=True,
    )  # fmt: skip
    estimate = start.estimate

    assert isinstance(estimate, Estimate)
    assert estimate.loading == pytest.approx(gib, abs=0.5)
    assert estimate.is_full_while_loading == (gib > 76)
    assert any("while it quantises them" in found.seen for found in start.findings) == (gib > 76)


# Model, options, release: GiB on a GPU while experts are packed again for sleep mode.
ASLEEP = [
    ("openai/gpt-oss-120b", ("--enable-sleep-mode",), "0.17.0", 121.5),
    ("openai/gpt-oss-120b", (), "0.17.0", 0),
    ("Qwen/Qwen3-32B", ("--enable-sleep-mode",), "0.17.0", 0),
    ("openai/gpt-oss-120b", ("--enable-sleep-mode",), "0.16.0", 0),
    ("openai/gpt-oss-120b", ("--enable-sleep-mode",), "0.13.0", 121.5),
    ("openai/gpt-oss-120b", ("--enable-sleep-mode",), "0.33.0", 121.5),
]


@for_each(("model", "args", "version", "gib"), ASLEEP)
def test_sleep_mode_keeps_experts_while_they_are_packed_again(
    model: str, args: tuple[str, ...], version: str, gib: float
) -> None:
    """vllm#34877: the same engine starts without the option. 0.14 to 0.16 do not use the pool."""
    start = Measured(
        id="", source="", engine="vllm", version=version, gpu="NVIDIA-H100-NVL", tensor=1,
        model=model, args=(*args, "--max-model-len", "8192", "--enforce-eager"), started=not args,
    )  # fmt: skip
    estimate = start.estimate

    assert isinstance(estimate, Estimate)
    assert estimate.loading == pytest.approx(gib, abs=0.5)
    seen = [(found.level, found.remedy) for found in start.findings]
    assert [level for level, _ in seen] == ([Level.ADVISORY] if gib else [])
    assert all("leave out --enable-sleep-mode" in str(remedy) for _, remedy in seen)


# Model, release: whether sleep mode may size the cache too large.
PACKED = [
    ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "0.26.0", True),
    ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "0.27.0", False),
    ("nvidia/Llama-3.3-70B-Instruct-FP8", "0.26.0", False),
]


@for_each(("model", "version", "tight"), PACKED)
def test_sleep_mode_may_size_the_cache_too_large(model: str, version: str, tight: bool) -> None:
    """vllm#40256: what is unmapped in its pool counts as given back by others, up to 0.26."""
    start = Measured(
        id="", source="", engine="vllm", version=version, gpu="NVIDIA-H100-80GB-HBM3", tensor=2,
        model=model, args=("--enable-sleep-mode", "--max-model-len", "8192"), started=True,
    )  # fmt: skip
    awake = replace(start, args=start.args[1:])

    assert not awake.findings
    assert any("leave out --enable-sleep-mode" in str(f.remedy) for f in start.findings) == tight
    assert all(f.level is Level.ADVISORY for f in start.findings)


# Model, ranks of the attention, whether 16 bits are copied: GiB of copies that expand latents.
EXPANDED = [
    (R1, 8, False, 61 * 128 * 512 * 256 * 2 / 8 / GIB),
    (R1, 1, False, 61 * 128 * 512 * 256 * 2 / GIB),
    (KIMI, 8, False, 0),
    (KIMI, 8, True, 61 * 64 * 512 * 256 * 2 / 8 / GIB),
    ("Qwen/Qwen3-8B", 8, True, 0),
]


@for_each(("model", "attention", "always", "gib"), EXPANDED)
def test_projections_that_expand_latents_are_copied_in_16_bits(
    model: str, attention: int, always: bool, gib: float
) -> None:
    split = Split(tensor=8, attention=attention)

    assert expanding_copies(shape_of(model), split, always=always) == pytest.approx(gib)


# Options: weights of Kimi-K2.5 on a rank of eight, which a start-up states with the first one.
ENCODERS = [(("--mm-encoder-tp-mode", "data"), 72.02), (("--mm-encoder-tp-mode", "weights"), 71.3)]


@for_each(("args", "gib"), ENCODERS)
def test_an_encoder_is_whole_on_each_rank_if_it_is_not_split(
    args: tuple[str, ...], gib: float
) -> None:
    assert weights("vllm", KIMI, H200, 8, args) == pytest.approx(gib, abs=0.3)


MISTRAL = "mistralai/Mistral-Small-3.2-24B-Instruct-2506"
# Maker, format of the config, release of vLLM: whether each rank has the whole encoder of images.
MISTRALS: list[tuple[str, str | None, Version | None, bool]] = [
    ("mistralai", "mistral", (0, 19, 1), True),
    ("mistralai", "hf", (0, 19, 1), False),
    ("mistralai", "auto", (0, 19, 1), True),
    ("mistralai", None, (0, 12, 0), True),
    ("mistralai", None, (0, 11, 0), False),
    ("mistralai", "mistral", (0, 11, 0), True),
    ("mistralai", None, (0, 20, 0), False),
    ("mistralai", "mistral", None, False),
    ("unsloth", None, (0, 19, 1), False),
]


@for_each(("maker", "form", "release", "whole"), MISTRALS)
def test_the_encoder_of_mistral_is_whole_with_its_own_config(
    maker: str, form: str | None, release: Version | None, whole: bool
) -> None:
    """VisionTransformer of pixtral.py has plain layers before 0.20."""
    shape = shape_of(MISTRAL.replace("mistralai", maker))

    options = {} if form is None else {"--config-format": form}
    assert has_whole_encoder(shape, options, release) == whole


@for_each(("ranks", "whole"), [(1, False), (4, False), (6, False), (8, True), (16, True)])
def test_the_encoder_of_kimi_is_whole_if_ranks_do_not_share_its_heads(
    ranks: int, whole: bool
) -> None:
    """Kimi-K3's encoder has 12 heads."""
    assert has_whole_encoder(shape_of("moonshotai/Kimi-K3"), {}, None, ranks) == whole


# Engine, model, GPU: the share of weights by which they may grow as they are packed again.
REPACKED = [
    ("sglang", "moonshotai/Kimi-K2.5", "AMD_Instinct_MI355_OAM", 0.0),  # int4: Triton packs nothing
    ("sglang", "zai-org/GLM-5-FP8", "AMD_Instinct_MI355_OAM", 0.4),
    ("sglang", "Qwen/Qwen3-32B", "AMD_Instinct_MI355_OAM", 0.0),
    ("sglang", "openai/gpt-oss-120b", "NVIDIA-H200", 0.4),
    ("sglang", "moonshotai/Kimi-K2.5", "NVIDIA-H200", 0.0),
    ("vllm", "moonshotai/Kimi-K2.5", "AMD_Instinct_MI355_OAM", 0.05),
    ("vllm", "Qwen/Qwen3-32B", "AMD_Instinct_MI355_OAM", 0.0),
]


@for_each(("engine", "model", "gpu", "share"), REPACKED)
def test_the_band_has_weights_that_are_packed_again(
    engine: str, model: str, gpu: str, share: float
) -> None:
    version = "0.5.9" if engine == "sglang" else "0.24.0"
    estimate = Measured(
        id="", source="", engine=engine, version=version, gpu=gpu, tensor=8, model=model, args=(),
        started=True,
    ).estimate  # fmt: skip

    assert isinstance(estimate, Estimate)
    assert estimate.band == pytest.approx(2.5 + share * estimate.weights)


def test_a_whole_encoder_of_mistral_has_layers_with_a_gate() -> None:
    """0.75 of 24 layers with 16 × 1024² numbers in 16 bits."""
    split = weights("vllm", MISTRAL, H200, 4, ("--config-format", "hf"))

    assert weights("vllm", MISTRAL, H200, 4, ()) - split == pytest.approx(0.5625)


def test_an_encoder_without_sizes_adds_nothing() -> None:
    assert encoder_copies(shape_of("Qwen/Qwen3-8B"), Split(tensor=8)) == 0.0


# Model whose config.json leaves the layer for drafts out of 4 bits: GiB of that layer in 16 bits.
DRAFTED = [("nvidia/Qwen3.6-35B-A3B-NVFP4", 1.55), ("nvidia/Qwen3.6-27B-NVFP4", 0.73)]


@for_each(("model", "gib"), DRAFTED)
def test_a_checkpoint_in_4_bits_has_the_layer_for_drafts_in_16(model: str, gib: float) -> None:
    shape = shape_of(model)
    assert shape.weights_gib is not None
    rest = without_draft(shape).weights_gib

    assert rest == pytest.approx(shape.weights_gib - gib, abs=0.01)


SMALL, WIDE = "Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-235B-A22B-Instruct-2507"


def known(name: str) -> ModelShape:
    shape = find_model(name)
    assert isinstance(shape, ModelShape)
    return shape


def grown(
    shape: ModelShape, split: Split, width: int | None, release: Version | None = None
) -> float:
    """Return by which share the experts grow."""
    gib = shape.weights_gib or 0
    more = loaded_weights(shape, split, gib, width, release=release)
    more -= fullest_weights(shape, split, gib)
    more -= copied_weights(shape, split)
    return more / (min(expert_weights(shape), gib) / (split.experts or split.tensor))


ROWS = {
    "without ROCm": (SMALL, Split(), None, 0.0),
    # Rows of 2,048 and 768 numbers get 128 more. Down, 1/3 + 1/18, lies in the 2/3 of gate and up.
    "both are lengthened": (SMALL, Split(), 768, 2 / 3 / 16 + 1 / 18 + 1 / 3 - 1 / 18),
    "down is too short": (WIDE, Split(tensor=4, experts=4), 384, 2 / 3 / 32),
    "whole experts": (WIDE, Split(tensor=4, experts=4), 1536, 2 / 3 / 32 + 1 / 3),
}


@for_each("name", ROWS)
def test_experts_grow_by_the_rows_that_are_lengthened(name: str) -> None:
    model, split, width, share = ROWS[name]
    assert grown(known(model), split, width) == pytest.approx(share)


def test_experts_in_fp8_leave_the_memory_of_one_layer() -> None:
    """0.22.1 and later do not count what is reserved."""
    shape = replace(known(SMALL), dtype="fp8")
    older = (0, 20, 2)
    assert grown(shape, Split(), 768, older) == pytest.approx(1 / 48)
    assert grown(shape, Split(), 768, (0, 22, 1)) == grown(shape, Split(), 768) == 0
    assert grown(shape, Split(), None, older) == 0
    assert grown(replace(shape, dtype="int4"), Split(), 768, older) == 0


@for_each(("release", "counts"), [((0, 20, 2), 1), ((0, 22, 1), 0), ((0, 26, 0), 0), (None, 1)])
def test_gaps_between_lengthened_rows_count_where_reserved_memory_does(
    release: Version | None, counts: int
) -> None:
    gaps = 1 / 3 - 1 / 18
    share = 2 / 3 / 16 + 1 / 18 + gaps * counts
    assert grown(known(SMALL), Split(), 768, release) == pytest.approx(share)


# Options with a head of EAGLE-3: the method, or the name of its model alone.
HEADS = [
    ("vllm", ("--speculative-config", '{"method":"eagle3","num_speculative_tokens":3}')),
    ("vllm", ("--speculative-config", '{"model":"some/Qwen3-32B-EAGLE3"}')),
    ("sglang", ("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "some/it")),
]


@for_each(("engine", "args"), HEADS)
def test_a_head_of_eagle_3_is_loaded_beside_the_model(engine: str, args: tuple[str, ...]) -> None:
    """A layer of Qwen3-32B whose queries, keys and values come from two states, 32,000 words."""
    attention = 128 * 5120 * (3 * 64 + 4 * 8)
    parts = attention + 3 * 5120 * 25600 + 32000 * 5120
    whole = 3 * 5120**2

    model = "Qwen/Qwen3-32B"
    more = weights(engine, model, H200, 4, args) - weights(engine, model, H200, 4, ())

    assert more == pytest.approx((parts / 4 + whole) * 2 / GIB, abs=0.01)


def test_what_is_not_known_of_a_head_counts_nothing() -> None:
    shape = shape_of(R1)

    assert head_weights(replace(shape, ffn=None), 1) == (32000 * 7168 + 3 * 7168**2) * 2 / GIB
    assert head_weights(replace(shape, hidden=None), 1) == 0.0
