"""The model of an engine's memory against published start-ups."""

from dataclasses import replace
from statistics import mean, median
from typing import Any

import pytest

from kthena_components.core.findings import Level
from kthena_components.core.memory import Split
from kthena_components.core.memory.engine import EngineOnGpu, engines_on_gpu
from kthena_components.core.memory.estimate import Estimate, Verdict
from kthena_components.core.memory.largest_batch import StartUp, batch_of, staying_numbers
from kthena_components.core.memory.share import (
    SglangStart,
    aiter_factor,
    default_share,
    vision_factor,
)
from kthena_components.core.memory.sizes import captured_sizes
from kthena_components.core.memory.sparse_attention import (
    compressed_attention,
    compressed_workspace,
)
from kthena_components.core.memory.start_up import Terms, asked_later, least_of, terms_of
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.images import Version
from tests.core.memory.start_ups import Measured, start_ups
from tests.support.for_each import for_each

KNOWN = tuple(start for start in start_ups() if isinstance(start.estimate, Estimate))
MORE_THAN_SHARE = {
    "f04": "83.4 GiB in use and of cache, of 73.0: its graphs count as -10.4 GiB (vllm#44740)",
    "j01": "79.1 GiB of weights and cache, of the 76.0 that its source states",
    "k14": "71.8 GiB of cache and 13.8 of weights at least, of the 85.5 by default",
    "k27": "70.6 GiB of weights and cache, of the 65.6 by default",
    "p20": "86.3 GiB of weights and cache, of the 81.8 by default",
    "r34": "22.0 GiB of weights and cache, of the 21.2 by default",
    "w30": "71.9 GiB of weights and cache, of the 71.3 by default",
}
"""Start-ups whose share cannot be the one that is stated, or the default if none is."""
NVIDIA = tuple(
    start for start in KNOWN if start.gpu.startswith("NVIDIA") and start.id not in MORE_THAN_SHARE
)
NOT_SEEN = {
    "g21": "graphs, with four ranks and with eight: its source does not state what they took",
    "p24": "graphs took more than the 7 GiB outside of its share, beside an encoder of images",
    "p25": "its source does not state what else is on the GPU, which V1 of 0.8 counts",
    "t11": "it ran out of memory after the cache was allocated, beside another process",
    "v14": "the sampler ran out of memory after the cache was allocated, beside another process",
    "w06": "its source does not state what else is on the GPU",
    "w16": "graphs took more than the 7 GiB outside of its share, in a build of its own",
    "w25": "its source does not state what ran out of memory, which an older release had",
    "w26": "939 blocks of states, of the 1,120 that are predicted for a release",
    "w27": "1,011 blocks of states, of the 1,198 that are predicted for a release",
}


def errors(starts: tuple[Measured, ...]) -> list[float]:
    """Return the absolute errors of the KV cache in GiB."""
    return [abs(start.error) for start in starts if start.error is not None]


# Start-ups by their ids, and the most that their errors may be: mean, median, and the least share
# within 2.5 GiB.
NOT_USED = [
    ("h", 58, 0.52, 0.27, 0.98),
    ("i", 10, 1.05, 0.9, 1.0),
    ("j", 30, 1.2, 0.7, 0.9),
    ("k", 24, 1.05, 0.45, 0.91),
    ("m", 19, 0.62, 0.46, 1.0),
    ("p", 22, 0.6, 0.22, 0.95),
    ("q", 19, 0.86, 0.3, 0.94),
    ("r", 19, 1.06, 0.6, 0.89),
    ("t", 12, 0.7, 0.4, 1.0),
    ("u", 15, 1.15, 0.9, 0.86),
    ("v", 14, 0.85, 0.5, 0.92),
    ("w", 14, 1.65, 0.41, 0.71),
    ("x", 1, 3.4, 3.4, 0.0),
    ("y", 9, 1.07, 0.61, 0.88),
    ("z", 22, 1.41, 0.61, 0.77),
    ("g", 14, 0.85, 0.52, 0.92),
    ("o", 12, 0.54, 0.33, 1.0),
    ("d", 10, 1.55, 0.95, 0.9),
    ("f", 16, 2.62, 1.67, 0.62),
    ("c", 18, 0.87, 0.44, 0.88),
    ("a", 9, 0.28, 0.18, 1.0),
]


@for_each(("letter", "number", "most", "middle", "close"), NOT_USED)
def test_start_ups_that_were_not_used_are_predicted(
    letter: str, number: int, most: float, middle: float, close: float
) -> None:
    found = errors(tuple(s for s in KNOWN if s.held_out and s.id.startswith(letter)))

    assert len(found) == number
    assert mean(found) <= most
    assert median(found) <= middle
    assert sum(error <= 2.5 for error in found) >= close * len(found)


def test_all_start_ups_that_were_not_used_are_predicted() -> None:
    """The goals are a mean of 1.0 GiB, and 90 %."""
    held = tuple(start for start in KNOWN if start.held_out)
    found = errors(held)
    before = errors(tuple(start for start in held if start.id[0] not in "fca"))
    older = errors(tuple(start for start in held if start.id[0] not in "zgdfca"))

    assert (len(found), len(before), len(older)) == (367, 324, 278)
    assert mean(older) <= 0.86
    assert sum(error <= 2.5 for error in older) >= 0.93 * len(older)
    assert mean(before) <= 0.92
    assert median(before) <= 0.42
    assert sum(error <= 2.5 for error in before) >= 0.91 * len(before)
    assert mean(found) <= 0.98
    assert median(found) <= 0.43
    assert sum(error <= 2.5 for error in found) >= 0.9 * len(found)


def test_no_start_up_that_was_not_used_is_another_one_again() -> None:
    seen: dict[tuple[object, ...], str] = {}
    for start in start_ups():
        name = start.model.rsplit("/", 1)[-1]
        measured = (start.kv_gib, start.weights_gib)
        key = (name, start.gpu, start.tensor, start.version, frozenset(start.args), *measured)
        assert start.kv_gib is None or key not in seen, (start.id, seen[key])
        seen[key] = start.id


def test_start_ups_on_gpus_of_nvidia_are_predicted() -> None:
    found = errors(NVIDIA)

    assert len(found) >= 120
    assert mean(found) <= 1.0
    assert sum(error <= 2.5 for error in found) >= 0.9 * len(found)


def test_the_estimate_is_neither_high_nor_low_on_a_class_of_gpus() -> None:
    for gpu in ("NVIDIA-H100", "NVIDIA-A100", "NVIDIA-GeForce", "NVIDIA-H200"):
        found = [start.error for start in NVIDIA if start.gpu.startswith(gpu)]
        assert abs(mean(error for error in found if error is not None)) <= 1.0, gpu


@for_each("start", [start for start in start_ups() if start.started], ids=lambda start: start.id)
def test_an_engine_that_started_is_never_refused(start: Measured) -> None:
    assert [found for found in start.findings if found.level is Level.MANDATORY] == []


@for_each("start", [start for start in KNOWN if start.started], ids=lambda start: start.id)
def test_an_engine_that_started_is_never_said_not_to_start(start: Measured) -> None:
    """The weights leave more than nothing, whatever the longest request needs."""
    estimate = start.estimate
    assert isinstance(estimate, Estimate)
    assert replace(estimate, length=1).verdict is not Verdict.TOO_SMALL
    doubt = estimate.terms.doubt if estimate.terms else 0.0
    if start.kv_gib is not None and start.id not in MORE_THAN_SHARE:
        assert start.kv_gib <= estimate.cache + estimate.band + doubt


@for_each("start", [s for s in KNOWN if s.engine == "sglang" and s.started], ids=lambda s: s.id)
def test_weights_and_cache_of_sglang_are_within_the_most_that_its_share_may_be(
    start: Measured,
) -> None:
    ((_, placed),) = engines_on_gpu(start.serving)
    assert isinstance(placed, EngineOnGpu)
    assert (start.weights_gib or 0.0) + (start.kv_gib or 0.0) <= placed.most


def test_only_a_share_that_sglang_chooses_is_in_doubt() -> None:
    """Two of its start-ups hold more than the default; vLLM's default is one number."""
    for start in KNOWN:
        ((_, placed),) = engines_on_gpu(start.serving)
        assert isinstance(placed, EngineOnGpu)
        stated = "--mem-fraction-static" in start.args
        certain = start.engine == "vllm" or (stated and start.gpu.startswith("NVIDIA"))
        assert not certain or placed.most == placed.budget, start.id


def test_an_engine_of_sglang_that_started_takes_shorter_requests_at_least() -> None:
    """Six need more than their caches for a request of maximum length."""
    verdicts = {
        start.id: start.estimate.verdict
        for start in KNOWN
        if start.started and start.engine == "sglang" and isinstance(start.estimate, Estimate)
    }

    assert {key for key, found in verdicts.items() if found is Verdict.SHORTER} == {
        "k27", "p17", "p20", "y04", "z24",
    }  # fmt: skip
    shortened = {key for key, found in verdicts.items() if found is Verdict.MAY_SHORTEN}
    assert shortened == {"c18", "c19", "w33"}
    tight = {key for key, found in verdicts.items() if found is Verdict.TIGHT}
    assert tight == {"z19"}, "on GB10, whose band is wide"
    assert Verdict.TOO_SMALL not in verdicts.values()


# Start-up: by how many GiB the weights of a rank that its log states may differ.
WEIGHTS = [
    ("e47", 0.45), ("e103", 0.45), ("k05", 0.1), ("m11", 0.1), ("k18", 0.2), ("u02", 0.2),
    ("h43", 0.7), ("i09", 0.3), ("s7", 0.3),
]  # fmt: skip


@for_each(("name", "most"), WEIGHTS)
def test_weights_of_compressed_and_latent_attention_are_as_logs_state_them(
    name: str, most: float
) -> None:
    """DeepSeek-V4 without and with drafts over 1 to 8 ranks in vLLM; Kimi and GLM-5 in SGLang."""
    (start,) = (start for start in KNOWN if start.id == name)

    assert isinstance(start.estimate, Estimate)
    assert start.estimate.weights == pytest.approx(start.weights_gib, abs=most)


# Release, model: tokens of the longest request that fits into a stage, and into all four at once.
STAGES = [
    ("0.13.0", "Qwen/Qwen3-8B", 1),
    ("0.14.0", "Qwen/Qwen3-8B", 4),
    ("0.16.0", "Qwen/Qwen3-8B", 4),
    ("0.17.0", "Qwen/Qwen3-8B", 1),
    ("0.31.0", "Qwen/Qwen3-8B", 1),
    ("0.16.0", "Qwen/Qwen3.5-9B", 1),
]


@for_each(("version", "model", "stages"), STAGES)
def test_some_releases_compare_the_cache_of_a_stage_with_all_stages(
    version: str, model: str, stages: int
) -> None:
    def each(pipeline: int) -> int:
        start = Measured(
            id="", source="", engine="vllm", version=version, gpu="NVIDIA-H100-80GB-HBM3",
            tensor=1, model=model, args=("--pipeline-parallel-size", str(pipeline)), started=True,
        )  # fmt: skip
        estimate = start.estimate
        assert isinstance(estimate, Estimate)
        return estimate.token_bytes

    assert each(4) * 4 == each(1) * stages


# Start-up, GiB that vLLM states for its graphs, or that they take of its cache.
DATA_PARALLEL = [("z16", 61.97), ("g20", 0.0)]


@for_each(("name", "graphs"), DATA_PARALLEL)
def test_graphs_of_data_parallel_copies_hold_their_exchanges(name: str, graphs: float) -> None:
    """The issue states the caches of one engine with an estimate of its graphs and without."""
    (start,) = (start for start in KNOWN if start.id == name)
    estimate = start.estimate

    assert isinstance(estimate, Estimate)
    assert estimate.terms is not None
    assert estimate.terms.graphs == pytest.approx(graphs, abs=0.1)
    assert estimate.terms.doubt >= 0.98 * graphs


# Release, arguments: whether exchanges in the graphs that were measured hold pages of NCCL.
HELD = [
    ("0.17.1", (), False),
    ("0.18.0", (), True),
    ("0.26.0", (), True),
    ("0.22.0", ("--enforce-eager",), False),
    ("0.27.0", (), False),
]


@for_each(("version", "args", "held"), HELD)
def test_exchanges_in_measured_graphs_hold_their_pages(
    version: str, args: tuple[str, ...], held: bool
) -> None:
    """Two graphs of each mode, 62 layers with five exchanges, and 2 MiB for each."""
    (start,) = (start for start in KNOWN if start.id == "g20")
    estimate = replace(start, version=version, args=(*start.args, *args)).estimate

    assert isinstance(estimate, Estimate)
    assert estimate.terms is not None
    pages = 2 * 2 * 62 * 5 * 2 / 1024 if held else 0
    assert estimate.terms.communication == pytest.approx(0.42 + pages)
    assert estimate.terms.doubt >= pages


# Model, release, stated type of the cache: whether a token takes one byte for each number.
CHECKPOINTS = [
    ("nvidia/Qwen3-32B-NVFP4", "0.13.0", None, False),
    ("nvidia/Qwen3-32B-NVFP4", "0.14.1", None, True),
    ("nvidia/Qwen3-32B-NVFP4", "0.33.0", "auto", True),
    ("nvidia/Qwen3-32B-NVFP4", "0.33.0", "bfloat16", False),
    ("Qwen/Qwen3-32B", "0.33.0", None, False),
]


@for_each(("model", "version", "kind", "fp8"), CHECKPOINTS)
def test_checkpoints_of_nvidia_state_the_type_of_their_cache(
    model: str, version: str, kind: str | None, fp8: bool
) -> None:
    """resolve_kv_cache_dtype_string in vllm/utils/torch_utils.py, since 0.14."""
    start = Measured(
        id="", source="", engine="vllm", version=version, gpu="NVIDIA-B200", tensor=1,
        model=model, args=("--kv-cache-dtype", kind) if kind else (), started=True,
    )  # fmt: skip
    estimate = start.estimate

    assert isinstance(estimate, Estimate)
    assert estimate.token_bytes == 64 * 8 * 128 * 2 * (1 if fp8 else 2)


# Variable of vLLM, release, GPU: bytes of each logit of 1,024 requests.
SAMPLERS = [
    ("", (0, 11, 0), "NVIDIA H100", 38),
    ("VLLM_USE_FLASHINFER_SAMPLER", (0, 11, 0), "NVIDIA H100", 11),
    ("VLLM_ROCM_USE_AITER", (0, 11, 0), "NVIDIA H100", 38),
    ("VLLM_ROCM_USE_AITER", (0, 17, 1), "AMD Instinct MI300X", 11),
    ("VLLM_USE_FLASHINFER_SAMPLER", (0, 20, 2), "NVIDIA H100", 11),
    ("VLLM_USE_FLASHINFER_SAMPLER", (0, 21, 0), "NVIDIA H100", 16),
]


@for_each(("name", "version", "gpu", "each"), SAMPLERS)
def test_a_variable_chooses_the_sampler(name: str, version: Version, gpu: str, each: int) -> None:
    start = replace(start_up("Qwen/Qwen3-8B", gpu, 79.18, version, 1), on=frozenset({name}))
    terms = terms_of(replace(start, sequences=1024, tokens=1024))

    assert isinstance(terms, Terms)
    assert terms.peak == pytest.approx(1024 * 151936 * each / 2**30, rel=0.01)


# Release, GPU, arguments, variable: whether vLLM's own image samples with FlashInfer.
OWN_IMAGES = [
    ("0.7.3", "NVIDIA-H100-80GB-HBM3", (), (), False),
    ("0.8.0", "NVIDIA-H100-80GB-HBM3", (), (), True),
    ("0.8.5.post1", "NVIDIA-A10", (), (), True),
    ("0.11.0", "NVIDIA-H100-80GB-HBM3", (), (), True),
    ("0.11.1", "NVIDIA-H100-80GB-HBM3", (), (), False),
    ("0.11.0", "NVIDIA-H100-80GB-HBM3", (), ("VLLM_USE_FLASHINFER_SAMPLER=0",), False),
    ("0.11.0", "NVIDIA-H100-80GB-HBM3", ("--logprobs-mode", "processed_logprobs"), (), False),
    ("0.9.2", "NVIDIA-GH200-480GB", (), (), False),
    ("0.10.0", "NVIDIA-GH200-480GB", (), (), True),
    ("0.9.2", "Tesla-V100-SXM2-32GB", (), (), False),
    ("0.11.0", "AMD_Instinct_MI300X", (), (), False),
]


@for_each(("version", "gpu", "args", "env", "samples"), OWN_IMAGES)
def test_the_image_of_vllm_has_the_sampler_of_flashinfer(
    version: str, gpu: str, args: tuple[str, ...], env: tuple[str, ...], samples: bool
) -> None:
    start = Measured(
        id="", source="", engine="vllm", version=version, gpu=gpu, tensor=1, model="Qwen/Qwen3-8B",
        args=args, env=env, started=True, own_image=True,
    )  # fmt: skip
    variable = "VLLM_USE_FLASHINFER_SAMPLER"
    for measured, found in ((start, samples), (replace(start, own_image=False), False)):
        ((_, placed),) = engines_on_gpu(measured.serving)
        assert isinstance(placed, EngineOnGpu)
        assert (variable in placed.start.on) == found


# Model, ranks, type of the cache: bytes of a token in the layers that store every token: 10 of 4
# heads of 512 numbers, or 5 of 2; keys and values.
WIDE_HEADS = [
    ("google/gemma-4-31B-it", 1, "auto", 10 * 4 * 512 * 4),
    ("google/gemma-4-31B-it", 2, "auto", 10 * 2 * 512 * 4),
    ("google/gemma-4-31B-it", 8, "auto", 10 * 512 * 4),
    ("google/gemma-4-31B-it", 1, "fp8", 10 * 4 * 512 * 2),
    ("RedHatAI/gemma-4-26B-A4B-it-NVFP4", 1, "auto", 5 * 2 * 512 * 4),
    ("google/gemma-4-E4B-it", 1, "auto", 0),
]


@for_each(("model", "tensor", "kind", "each"), WIDE_HEADS)
def test_a_request_takes_the_heads_of_the_layers_that_store_every_token(
    model: str, tensor: int, kind: str, each: int
) -> None:
    start = Measured(
        id="", source="", engine="vllm", version="0.24.0", gpu="NVIDIA-H100-80GB-HBM3",
        tensor=tensor, model=model, args=("--kv-cache-dtype", kind), started=True,
    )  # fmt: skip
    estimate = start.estimate

    assert isinstance(estimate, Estimate)
    assert estimate.token_bytes == each


@for_each("start", [start for start in KNOWN if not start.started], ids=lambda start: start.id)
def test_an_engine_that_failed_for_memory_is_at_least_tight(start: Measured) -> None:
    estimate = start.estimate
    assert isinstance(estimate, Estimate)
    assert (estimate.verdict is Verdict.FITS) == (start.id in NOT_SEEN)
    assert bool(start.findings) == (start.id not in NOT_SEEN)


def test_few_engines_that_started_are_said_to_be_tight() -> None:
    """Advice has a price: 75 of 456."""
    found = {
        start.id: start.estimate.verdict
        for start in KNOWN
        if start.started and start.engine == "vllm" and isinstance(start.estimate, Estimate)
    }
    older = [verdict for key, verdict in found.items() if key[0] not in "zg"]

    assert [*found.values()].count(Verdict.TIGHT) <= 0.165 * len(found)
    assert older.count(Verdict.TIGHT) <= 0.15 * len(older)


# GPU, release, ranks, whether no graphs are captured: GiB after the cache of Qwen3-8B is sized.
LATER = [
    ("NVIDIA H100", (0, 9, 2), 1, False, 0.45 + 4.8 * 0.52 + 5.631),
    ("NVIDIA H100", (0, 9, 2), 1, True, 0.45 + 5.631),
    ("NVIDIA H100", (0, 8, 5), 1, True, 5.631),
    ("NVIDIA H100", (0, 24, 0), 2, False, 0.45 + 2.443),
    ("NVIDIA H100", (0, 25, 0), 2, True, 1.5 + 2.443 + 0.598),
    ("NVIDIA H100", (0, 33, 0), 1, True, 0.45 + 2.443 + 0.598),
    ("NVIDIA L4", (0, 6, 4), 1, False, 3.45),
    ("NVIDIA L4", (0, 6, 4), 1, True, 0.45),
    ("NVIDIA GB10", (0, 24, 0), 1, False, 0.0),
    ("AMD Instinct MI300X", (0, 24, 0), 1, False, 0.0),
]  # fmt: skip


@for_each(("gpu", "version", "tensor", "eager", "later"), LATER)
def test_what_vllm_asks_for_after_its_cache_is_sized(
    gpu: str, version: Version, tensor: int, eager: bool, later: float
) -> None:
    start = start_up("Qwen/Qwen3-8B", gpu, 79.18, version, tensor)
    start = replace(start, pieces=not eager, decodes=not eager)

    assert asked_later(start) == pytest.approx(later, abs=0.03)


# Release, whether no graphs are captured: whether those of DeepSeek-V4 come after the cache.
V4_GRAPHS = [("0.27.1", False, False), ("0.28.0", False, True), ("0.28.0", True, False)]


@for_each(("version", "eager", "after"), V4_GRAPHS)
def test_graphs_of_compressed_attention_that_do_not_count_come_after_the_cache(
    version: str, eager: bool, after: bool
) -> None:
    """g22 ran out of memory, and started without graphs in pieces and with a smaller share."""
    start = Measured(
        id="", source="", engine="vllm", version=version, gpu="NVIDIA-H800", tensor=4,
        model="deepseek-ai/DeepSeek-V4-Flash", args=("--enforce-eager",) if eager else (),
        started=True,
    )  # fmt: skip
    estimate = start.estimate

    assert isinstance(estimate, Estimate)
    assert (estimate.later > 0.04 * estimate.usable + 3) == after


# Start-ups that vLLM refused for the blocks of states that it states: how far the estimate is off.
BLOCKS = [
    ("k02", 184, 0.03), ("w29", 983, 0.04), ("x01", 856, 0.02), ("x03", 614, 0.02),
    ("y06", 630, 0.03), ("y07", 524, 0.02),
]  # fmt: skip


@for_each(("name", "blocks", "off"), BLOCKS)
def test_each_request_needs_a_block_of_states(name: str, blocks: int, off: float) -> None:
    (estimate,) = (start.estimate for start in KNOWN if start.id == name)

    assert isinstance(estimate, Estimate)
    assert estimate.cache / estimate.state_gib == pytest.approx(blocks, rel=off)
    assert estimate.lacks_states


def test_a_release_that_compares_no_blocks_of_states_needs_none() -> None:
    (start,) = (start for start in KNOWN if start.id == "x03")
    older, first = (replace(start, version=each).estimate for each in ("0.19.1", "0.20.0"))

    assert isinstance(older, Estimate)
    assert isinstance(first, Estimate)
    assert (older.state_gib, older.states, older.lacks_states) == (0, None, False)
    assert first.state_gib > 0


def start_up(model: str, gpu: str, memory: float, version: Version | None, tensor: int) -> StartUp:
    """Return a start-up without options."""
    shape = find_model(model)
    assert isinstance(shape, ModelShape), model
    split = Split(tensor=tensor)
    return StartUp(shape=shape, split=split, gpu=gpu, memory_gib=memory, version=version)


# Model, release, ranks: peak and other memory that start-ups on an H100 state.
PARTS = [
    ("openai/gpt-oss-20b", (0, 11, 0), 1, 7.38, 0.13),
    ("meta-llama/Llama-3.1-8B-Instruct", (0, 11, 0), 1, 4.76, 0.13),
    ("Qwen/Qwen3-0.6B", (0, 11, 0), 1, 5.56, 0.13),
    ("Qwen/Qwen3-32B", (0, 11, 0), 2, 5.64, 0.54),
    ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", (0, 11, 0), 2, 4.84, 0.55),
    ("Qwen/Qwen3-14B", (0, 17, 0), 1, 2.23, 0.13),
    ("meta-llama/Llama-3.1-8B-Instruct", (0, 19, 0), 2, 1.89, 2.07),
    ("meta-llama/Llama-3.1-8B-Instruct", (0, 19, 0), 4, 1.89, 2.13),
]


@for_each(("model", "version", "tensor", "peak", "other"), PARTS)
def test_each_term_is_the_one_that_a_start_up_states(
    model: str, version: Version, tensor: int, peak: float, other: float
) -> None:
    terms = terms_of(start_up(model, "NVIDIA H100", 79.18, version, tensor))

    assert isinstance(terms, Terms)
    assert terms.peak == pytest.approx(peak, abs=0.3)
    assert terms.driver + terms.communication == pytest.approx(other, abs=0.1)
    assert terms.graphs == 0.0


def test_the_sampler_runs_whatever_the_layers_are() -> None:
    """vllm/v1/worker/gpu_model_runner.py profile_run ends with _dummy_sampler_run."""
    start = start_up("Qwen/Qwen3-8B", "NVIDIA H100", 79.18, (0, 19, 0), 1)
    unknown = replace(start, shape=replace(start.shape, ffn=None))
    terms = terms_of(start)

    assert terms_of(unknown) is None
    assert isinstance(terms, Terms)
    assert least_of(unknown) == pytest.approx(terms.total)
    assert least_of(replace(unknown, shape=replace(unknown.shape, vocab=None))) == 0.25


# GPU, its memory, release: sequences and tokens of a batch.
BATCHES = [
    ("NVIDIA H100", 79.18, (0, 11, 0), (1024, 8192)),
    ("NVIDIA H100", 79.18, None, (1024, 8192)),
    ("NVIDIA A100 80GB", 79.25, (0, 11, 0), (256, 2048)),
    ("NVIDIA A100 80GB", 79.25, (0, 8, 5), (1024, 8192)),
    ("NVIDIA GB10", 120.7, (0, 24, 0), (256, 2048)),
    ("NVIDIA B200", 178.35, (0, 18, 0), (1024, 8192)),
    ("NVIDIA B200", 178.35, None, (1024, 16384)),
    ("NVIDIA L4", 22.0, None, (256, 2048)),
    ("NVIDIA B200", 178.35, (0, 27, 1), (1024, 8192)),
    ("NVIDIA B200", 178.35, (0, 28, 0), (1024, 16384)),
    ("NVIDIA GB10", 120.7, (0, 13, 0), (256, 2048)),
    ("NVIDIA L4", 22.0, (0, 8, 1), (1024, 2048)),
    ("NVIDIA H200", 140.4, (0, 8, 1), (1024, 8192)),
    ("NVIDIA B200", 178.35, (0, 8, 4), (256, 2048)),
]


@for_each(("gpu", "memory", "version", "batch"), BATCHES)
def test_the_batch_has_the_default_of_the_class_of_a_gpu(
    gpu: str, memory: float, version: Version | None, batch: tuple[int, int]
) -> None:
    start = start_up("Qwen/Qwen3-8B", gpu, memory, version, 1)

    assert batch_of(start) == batch


def test_each_stream_of_hidden_states_is_in_memory_twice() -> None:
    start = start_up("Qwen/Qwen3-8B", "NVIDIA H100", 79.18, (0, 22, 0), 1)
    wide = replace(start, tokens=65536, shape=replace(start.shape, streams=4))
    one, four = terms_of(replace(start, tokens=65536)), terms_of(wide)

    assert isinstance(one, Terms)
    assert isinstance(four, Terms)
    assert four.peak - one.peak == pytest.approx(65536 * 3 * 2 * 4096 * 2 / 2**30)


def test_one_buffer_of_experts_and_prefills_stays_while_attention_runs() -> None:
    model = "deepseek-ai/DeepSeek-V4-Flash-0731"
    start = replace(start_up(model, "NVIDIA H200", 139.8, (0, 27, 1), 2), tokens=65536)
    terms = terms_of(start)
    held = compressed_attention(start.shape, 2, start.gpu, 65536, start.version)

    assert isinstance(terms, Terms)
    assert terms.peak == pytest.approx((held + staying_numbers(start)) * 2 / 2**30)


@for_each(
    ("gpu", "memory"), [("NVIDIA H100", 1.9), ("NVIDIA H100 NVL", 0.42), ("NVIDIA L40S", 0.1)]
)
def test_links_without_a_switch_have_no_buffers_for_multicast(gpu: str, memory: float) -> None:
    terms = terms_of(start_up("Qwen/Qwen3-8B", gpu, 79.18, (0, 24, 0), 2))

    assert isinstance(terms, Terms)
    assert terms.communication == memory


# Length, release: peak of Llama-3.1-8B on a GPU of 24 GB, before the engine V1.
BEFORE_V1 = [
    (20_000, (0, 6, 4), 2.07),
    (29_000, (0, 6, 4), 2.99),
    (35_000, (0, 6, 4), 0.06),
    (131_072, (0, 7, 2), 0.19),
]


@for_each(("length", "version", "peak"), BEFORE_V1)
def test_v0_runs_a_whole_prompt_or_a_part_of_it(length: int, version: Version, peak: float) -> None:
    start = start_up(
        "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA GeForce RTX 3090", 23.6, version, 1
    )
    terms = terms_of(replace(start, length=length))

    assert isinstance(terms, Terms)
    assert terms.peak == pytest.approx(peak, abs=0.1)


@for_each(("largest", "sizes"), [(512, 51), (256, 35), (64, 11), (8, 4), (1, 1)])
def test_the_captured_sizes_are_those_of_vllm(largest: int, sizes: int) -> None:
    assert captured_sizes(largest) == sizes


# Ranks, GPU, release: numbers of a token in DeepSeek-V4-Flash, which has 64 heads of 512, streams
# of 4,096 four times, and an indexer of 64 heads of 128, in 16 bits and in FP8.
COMPRESSED = [
    (2, "NVIDIA H200", (0, 20, 2), 6 * 4096 + (32 + 64) * 512),
    (2, "NVIDIA H200", (0, 22, 0), 6 * 4096 + (64 + 64) * 512),
    (8, "NVIDIA H200", (0, 22, 0), 6 * 4096 + (64 + 64) * 512),
    (2, "NVIDIA RTX PRO 6000", (0, 22, 0), 6 * 4096 + (32 + 32) * 512),
    (1, "NVIDIA B200", (0, 22, 0), 6 * 4096 + (64 + 64) * 512),
]


@for_each(("ranks", "gpu", "version", "each"), COMPRESSED)
def test_compressed_attention_fills_up_its_heads(
    ranks: int, gpu: str, version: Version | None, each: int
) -> None:
    shape = shape_of("deepseek-ai/DeepSeek-V4-Flash")
    numbers = compressed_attention(shape, ranks, gpu, 8192, version)

    assert numbers == 8192 * (each + 12288) + 2**28


# The same where the model is not compiled: what the loop over layers holds as well, with latents
# and scores of compressors, and queries, before and after they are filled up, or an indexer.
KEPT = 10 * 4096 + 2 * (1024 + 512) + 2 * (2048 + 512)
NOT_COMPILED = [
    (2, "NVIDIA H200", (0, 23, 0), 64 * 512, (32 + 64) * 512),
    (2, "NVIDIA H200", (0, 26, 0), 64 * 512, (32 + 64) * 512),
    (2, "NVIDIA H200", (0, 27, 0), 2 * 64 * 512 + 2304, (32 + 64) * 512),
    (2, "NVIDIA H200", (0, 28, 1), 2 * 64 * 512 + 2304, (32 + 64) * 512),
    (2, "NVIDIA H200", None, 64 * 512, (32 + 64) * 512),
    (1, "NVIDIA B200", None, 64 * 512, 12288 + 2**28 // 8192),
    (8, "NVIDIA RTX PRO 6000", None, 8 * 512, 12288 + 2**28 // 8192),
]


@for_each(("ranks", "gpu", "version", "result", "most"), NOT_COMPILED)
def test_a_model_that_is_not_compiled_holds_what_its_loop_names(
    ranks: int, gpu: str, version: Version | None, result: int, most: int
) -> None:
    shape = shape_of("deepseek-ai/DeepSeek-V4-Flash")
    numbers = compressed_attention(shape, ranks, gpu, 8192, version)

    assert numbers == 8192 * (KEPT + result + most)


# Ranks, release, sequences: expanded latents of GLM-5.3-Flash in tokens × heads: those of 65,536
# tokens, or of a block of each request. Logits of its indexer take 512 MiB before.
EXPANDED = [
    (4, (0, 27, 1), 512, 512 * 1152 * 16),
    (8, (0, 27, 1), 512, 512 * 640 * 8),
    (8, (0, 27, 1), 64, 65536 * 8),
    (4, (0, 28, 0), 512, 65536 * 16),
    (16, (0, 28, 0), 64, 65536 * 8),
    (16, (0, 18, 0), 64, 65536 * 4),
    (8, (0, 16, 0), 64, 0),
]


@for_each(("ranks", "version", "sequences", "tokens"), EXPANDED)
def test_sparse_attention_expands_latents_while_it_is_measured(
    ranks: int, version: Version, sequences: int, tokens: int
) -> None:
    """Beside them, 8,192 tokens have 9 hidden sizes, and experts 8 rows of 8,192 numbers.

    q02, of eight ranks, states a peak of 4.0 GiB, in a build of 0.28 before its release.
    """
    start = start_up("zai-org/GLM-5.3-Flash", "NVIDIA H200", 139.8, version, ranks)
    terms = terms_of(replace(start, sequences=sequences))

    assert isinstance(terms, Terms)
    numbers = 8192 * (9 * 4096 + 8 * 8192) + tokens * 512
    assert terms.peak == pytest.approx(numbers * 2 / 2**30, abs=0.05)


def test_streams_alone_are_not_compressed_attention() -> None:
    """GLM-5.3-Flash has streams and latents, and neither the kernels nor the buffers of V4."""
    glm, v4 = shape_of("zai-org/GLM-5.3-Flash"), shape_of("deepseek-ai/DeepSeek-V4-Flash")

    assert (glm.streams, glm.compresses) == (v4.streams, False) == (4, not v4.compresses)
    assert glm.latent_layers == 11


def test_prefills_of_compressed_attention_reserve_latents_or_keys() -> None:
    older, newer = (0, 31, 0), (0, 32, 0)
    short, long = (compressed_workspace(each, 8192, older) for each in (8192, 1_048_576))

    assert short == pytest.approx(4 * (2048 + 128 + 8192) * 512 * 2 / 2**30)
    assert long == pytest.approx(40 * 262_144 * 132 / 2**30)
    assert compressed_workspace(None, 8192, older) == pytest.approx(4 * 8320 * 1024 / 2**30)
    assert compressed_workspace(8192, 8192, newer) == short
    assert compressed_workspace(1_048_576, 2048, newer) == pytest.approx(
        4 * (262_144 + 128 + 2048) * 512 * 2 / 2**30
    )


def test_the_peak_of_deepseek_v4_grows_with_its_batch() -> None:
    """m11 and k05 differ by their batch, and their caches by 3.0 GiB."""
    start = start_up("deepseek-ai/DeepSeek-V4-Flash", "NVIDIA H200", 139.8, (0, 23, 0), 2)
    small, large = terms_of(start), terms_of(replace(start, tokens=16384))

    assert isinstance(small, Terms)
    assert isinstance(large, Terms)
    assert 0.8 <= large.peak - small.peak <= 3.0


# Memory, ranks, release: the share that SGLang's formula of that release gives.
RESERVES = [
    (15.0, 1, None, 0.735),
    (23.99, 2, None, 0.698),
    (23.99, 2, (0, 5, 19), 0.828),
    (79.65, 8, None, 0.812),
    (79.65, 8, (0, 5, 9), 0.818),
    (79.65, 8, (0, 5, 2), 0.831),
    (79.65, 8, (0, 4, 7), 0.81),
    (79.65, 1, (0, 4, 1), 0.88),
    (140.4, 8, None, 0.893),
    (140.4, 8, (0, 4, 7), 0.872),
    (140.4, 8, (0, 4, 5), 0.81),
    (268.6, 8, (0, 5, 1), 0.881),
]


@for_each(("memory", "ranks", "release", "share"), RESERVES)
def test_sglang_leaves_the_reserve_of_its_release(
    memory: float, ranks: int, release: Version | None, share: float
) -> None:
    found = default_share(SglangStart(memory_gib=memory, ranks=ranks, release=release))

    assert found == pytest.approx(share, abs=0.001)


def test_sglang_reserves_more_for_copies_of_the_attention_and_for_latents() -> None:
    start = SglangStart(memory_gib=140.4, ranks=8)

    assert default_share(replace(start, copies=8)) == pytest.approx(0.765, abs=0.001)
    assert default_share(replace(start, latent=True)) == pytest.approx(0.886, abs=0.001)


# Release, what differs from eight ranks without drafts, and the share of an H200.
OPTIONS: list[tuple[Version | None, dict[str, Any], float]] = [
    ((0, 5, 2), {"drafts": "EAGLE"}, 0.872),
    ((0, 5, 6), {}, 0.897),
    ((0, 5, 6), {"drafts": "EAGLE"}, 0.882),
    ((0, 5, 6), {"drafts": "STANDALONE"}, 0.854),
    ((0, 5, 6), {"drafts": "NGRAM"}, 0.897),
    ((0, 5, 12), {"latent": True}, 0.886),
    ((0, 5, 12), {"latent": True, "drafts": "EAGLE"}, 0.858),
    ((0, 5, 14), {"latent": True, "drafts": "EAGLE"}, 0.886),
    ((0, 5, 6), {"copies": 8}, 0.768),
    ((0, 5, 6), {"copies": 8, "batch": 64}, 0.892),
    ((0, 5, 6), {"chunk": 16384}, 0.811),
    ((0, 5, 6), {"role": "prefill", "copies": 8}, 0.768),
    (None, {"role": "prefill", "copies": 8, "latent": True}, 0.893),
    (None, {"role": "decode", "requests": 1024, "drafted": 4}, 0.929),
    (None, {"role": "decode", "exchanges": True}, 0.914),
    ((0, 5, 14), {"role": "decode", "exchanges": True, "latent": True}, 0.886),
]


@for_each(("release", "more", "share"), OPTIONS)
def test_sglang_reserves_what_its_options_state(
    release: Version | None, more: dict[str, Any], share: float
) -> None:
    start = SglangStart(memory_gib=140.4, ranks=8, release=release)

    assert default_share(replace(start, **more)) == pytest.approx(share, abs=0.0015)


@for_each(("version", "counted"), [((0, 25, 1), False), ((0, 26, 0), True), (None, True)])
def test_each_graph_of_rocm_takes_a_page_once_graphs_count(
    version: Version | None, counted: bool
) -> None:
    terms = terms_of(start_up("Qwen/Qwen3-32B", "AMD Instinct MI300X", 191.98, version, 1))

    assert isinstance(terms, Terms)
    two_runs = 2 * 512 * (3 * 5120 + 3 * 25600) * 2 / 2**30
    pages = 51 * (64 + 1 + 1) * 2 / 1024
    assert terms.graphs == pytest.approx(0.05 + two_runs + pages if counted else 0)
    assert terms.doubt >= (pages if counted else 0)  # Some model runners count none.


# Words of the command line: GiB of graphs with CUDA and with ROCm, beside the first one.
FIRST = 0.05 + 2 * 512 * (3 * 4096 + 3 * 12288) * 2 / 2**30
MODES: list[tuple[tuple[str, ...], float, float]] = [
    ((), 51 * 36 * 0.21 / 1024, 51 * 38 * 2 / 1024),
    (("-cc.cudagraph_mode=full_and_piecewise",), 51 * 36 * 0.21 / 1024, 51 * 38 * 2 / 1024),
    (("-cc.cudagraph_mode=PIECEWISE",), 51 * 36 * 0.21 / 1024, 51 * 37 * 2 / 1024),
    (("-cc.cudagraph_mode=FULL_DECODE_ONLY",), 51 / 1024, 51 * 2 / 1024),
    (("-cc", '{"cudagraph_mode":"FULL"}'), 51 / 1024, 51 * 2 / 1024),
    (("-O1",), 51 * 36 * 0.21 / 1024, 51 * 37 * 2 / 1024),
    (("-O2",), 51 * 36 * 0.21 / 1024, 51 * 38 * 2 / 1024),
    (("-O0",), -FIRST, -FIRST),
    (("-cc.cudagraph_mode=NONE",), -FIRST, -FIRST),
    (("--enforce-eager",), -FIRST, -FIRST),
]


@for_each(("words", "cuda", "rocm"), MODES)
def test_options_state_which_graphs_are_captured(
    words: tuple[str, ...], cuda: float, rocm: float
) -> None:
    for gpu, graphs in (("NVIDIA-H200", cuda), ("AMD_Instinct_MI300X", rocm)):
        estimate = Measured(
            id="", source="", engine="vllm", version="0.33.0", gpu=gpu, tensor=1,
            model="Qwen/Qwen3-8B", args=words, started=True,
        ).estimate  # fmt: skip

        assert isinstance(estimate, Estimate)
        assert isinstance(estimate.terms, Terms)
        assert estimate.terms.graphs == pytest.approx(FIRST + graphs)


# Model, release: whether its graphs may count nothing.
UNCOUNTED = [
    ("Qwen/Qwen3-8B", (0, 24, 0), False),
    ("Qwen/Qwen3-8B", (0, 25, 0), True),
    ("Qwen/Qwen3-8B", (0, 28, 1), True),
    ("Qwen/Qwen3-8B", (0, 29, 0), False),
    ("Qwen/Qwen3-8B", None, False),
    ("Qwen/Qwen3-30B-A3B", (0, 28, 0), False),
    ("Qwen/Qwen3.5-2B", (0, 28, 0), False),
    ("deepseek-ai/DeepSeek-V4-Flash", (0, 27, 1), False),
    ("deepseek-ai/DeepSeek-V4-Flash", (0, 28, 0), True),
    ("deepseek-ai/DeepSeek-V4-Flash", (0, 29, 0), False),
]


@for_each(("model", "version", "doubtful"), UNCOUNTED)
def test_the_newer_model_runner_may_count_no_graphs(
    model: str, version: Version | None, doubtful: bool
) -> None:
    terms = terms_of(start_up(model, "NVIDIA H100", 79.18, version, 1))

    assert isinstance(terms, Terms)
    assert terms.doubt == (terms.graphs if doubtful else 0.0)


@for_each(("args", "wide"), [((), True), (("--enforce-eager",), False)])
def test_the_band_is_wider_with_graphs_of_compressed_attention(
    args: tuple[str, ...], wide: bool
) -> None:
    """e103 has 8.2 GiB less than predicted."""
    start = Measured(
        id="", source="", engine="vllm", version="0.24.0", gpu="NVIDIA-H200", tensor=4,
        model="deepseek-ai/DeepSeek-V4-Flash", args=args, started=True,
    )  # fmt: skip
    estimate = start.estimate

    assert isinstance(estimate, Estimate)
    assert (estimate.band > 0.04 * estimate.usable) == wide


@for_each(("gpu", "wide"), [("NVIDIA-GB10", True), ("NVIDIA-H100-80GB-HBM3", False)])
def test_the_band_is_wider_where_gpu_and_host_share_memory(gpu: str, wide: bool) -> None:
    start = Measured(
        id="", source="", engine="vllm", version="0.24.0", gpu=gpu, tensor=1,
        model="Qwen/Qwen3-8B", args=(), started=True,
    )  # fmt: skip
    estimate = start.estimate

    assert isinstance(estimate, Estimate)
    assert (estimate.band > 0.05 * estimate.usable) == wide


def shape_of(model: str) -> ModelShape:
    shape = find_model(model)
    assert isinstance(shape, ModelShape), model
    return shape


# Model, release: the factor that SGLang's formula gives.
FACTORS = [
    ("moonshotai/Kimi-K2.5", (0, 5, 8), 0.9097),
    ("moonshotai/Kimi-K2.5", None, 0.9097),
    ("Qwen/Qwen3-VL-8B-Instruct", (0, 5, 8), 0.9248),
    ("Qwen/Qwen3-VL-4B-Instruct", (0, 5, 8), 0.95),
    ("Qwen/Qwen3-VL-4B-Instruct", (0, 4, 9), 0.9),
    ("Qwen/Qwen3-VL-4B-Instruct", (0, 4, 9, 2), 0.9),
    ("Qwen/Qwen3-VL-4B-Instruct", (0, 4, 9, 3), 0.95),
    ("google/gemma-3-4b-it", (0, 4, 4, 2), 0.95),
    ("google/gemma-3-4b-it", (0, 4, 5), 0.9),
    ("google/gemma-3-27b-it", (0, 5, 8), 0.9097),
    ("Qwen/Qwen2-VL-7B-Instruct", (0, 5, 8), 0.76),
    ("Qwen/Qwen3-8B", (0, 4, 9), 1.0),
]


@for_each(("model", "release", "factor"), FACTORS)
def test_sglang_leaves_more_to_a_vision_encoder(
    model: str, release: Version | None, factor: float
) -> None:
    assert vision_factor(shape_of(model), release) == pytest.approx(factor, abs=0.0001)


# Release, arguments, model: the share of a GPU that SGLang uses.
STATED_SHARES = [
    ("0.4.4.post2", ("--mem-fraction-static", "0.8"), "google/gemma-3-4b-it", 0.76),
    ("0.4.5", ("--mem-fraction-static", "0.8"), "google/gemma-3-4b-it", 0.72),
    ("0.4.8", ("--mem-fraction-static", "0.8"), "Qwen/Qwen3-VL-4B-Instruct", 0.72),
    ("0.4.8", ("--mem-fraction-static", "0.8"), "google/gemma-3-4b-it", 0.8),
    ("0.4.9", ("--mem-fraction-static", "0.8"), "Qwen/Qwen3-VL-4B-Instruct", 0.8),
    ("0.4.8", ("--mem-fraction-static", "0.8"), "Qwen/Qwen3-8B", 0.8),
    ("0.4.4.post2", (), "google/gemma-3-4b-it", 0.836),
    ("0.4.5", (), "google/gemma-3-4b-it", 0.792),
    ("0.4.6.post4", (), "google/gemma-3-4b-it", 0.8718),
    ("0.4.6.post4", ("--enable-multimodal",), "google/gemma-3-4b-it", 0.7846),
]


@for_each(("version", "args", "model", "share"), STATED_SHARES)
def test_older_releases_of_sglang_lower_a_stated_share_for_an_encoder(
    version: str, args: tuple[str, ...], model: str, share: float
) -> None:
    start = Measured(
        id="", source="", engine="sglang", version=version, gpu="NVIDIA-H200", tensor=1,
        model=model, args=args, started=True,
    )  # fmt: skip
    ((_, placed),) = engines_on_gpu(start.serving)

    assert isinstance(placed, EngineOnGpu)
    assert placed.share == pytest.approx(share, abs=0.0001)


def test_a_small_vision_encoder_gains_five_per_cent_at_most() -> None:
    tiny = replace(shape_of("Qwen/Qwen3-8B"), vision_layers=1, vision_hidden=64)

    assert vision_factor(tiny, None) == pytest.approx(0.95 * 1.05)


# Model, ranks, longest request, backend: whether SGLang lowers the share.
AITER = [
    ("Qwen/Qwen3-8B", 1, 40960, None, True),
    ("Qwen/Qwen3-8B", 1, 40960, "aiter", True),
    ("Qwen/Qwen3-8B", 1, 40960, "triton", False),
    ("Qwen/Qwen3-8B", 1, 8192, None, False),
    ("Qwen/Qwen3-8B", 1, None, None, False),
    ("deepseek-ai/DeepSeek-R1", 8, 163840, None, True),
    ("moonshotai/Kimi-K2.5", 8, 262144, None, False),
    ("moonshotai/Kimi-K2.5", 8, 262144, "aiter", True),
    ("moonshotai/Kimi-K2.5", 4, 262144, None, True),
]


@for_each(("model", "ranks", "length", "backend", "lowered"), AITER)
def test_sglang_lowers_the_share_for_aiter(
    model: str, ranks: int, length: int | None, backend: str | None, lowered: bool
) -> None:
    assert aiter_factor(shape_of(model), ranks, length, backend) == (0.85 if lowered else 1.0)


# Options on 8 GPUs: the share of Kimi-K2.5 in SGLang.
SHARES = [
    ("NVIDIA-H200", (), 0.8198),
    ("NVIDIA-H200", ("--disaggregation-mode", "decode"), 0.901),
    ("NVIDIA-H200", ("--language-only",), 0.901),
    ("NVIDIA-H200", ("--mem-fraction-static", "0.9"), 0.9),
    ("NVIDIA-H200", ("--speculative-algo", "EAGLE"), 0.8067),
    ("NVIDIA-H200", ("--chunked-prefill-size", "-1"), 0.7416),
    ("NVIDIA-H200", ("--chunked-prefill-size", "-1", "--max-prefill-tokens", "8192"), 0.8198),
    ("NVIDIA-H200", ("--dp", "8", "--enable-dp-attention"), 0.702),
    ("NVIDIA-H200", ("--dp", "8", "--enable-dp-attention", "--cuda-graph-max-bs", "64"), 0.8155),
    ("NVIDIA-H200", ("--dp", "8", "--enable-dp-attention", "--cuda-graph-bs", "8", "64"), 0.8155),
    ("AMD_Instinct_MI355_OAM", (), 0.826),
    ("AMD_Instinct_MI355_OAM", ("--mem-fraction-static", "0.9"), 0.9),
    (
        "AMD_Instinct_MI355_OAM",
        ("--mem-fraction-static", "0.9", "--attention-backend", "aiter"),
        0.765,
    ),
    ("AMD_Instinct_MI355_OAM", ("--attention-backend", "aiter", "--context-length", "8192"), 0.826),
]


@for_each(("gpu", "args", "share"), SHARES)
def test_an_engine_of_sglang_has_the_share_of_its_options(
    gpu: str, args: tuple[str, ...], share: float
) -> None:
    start = Measured(
        id="", source="", engine="sglang", version="0.5.8", gpu=gpu, tensor=8,
        model="moonshotai/Kimi-K2.5", args=args, started=True,
    )  # fmt: skip
    ((_, placed),) = engines_on_gpu(start.serving)

    assert isinstance(placed, EngineOnGpu)
    assert placed.share == pytest.approx(share, abs=0.01)


# Model, release: bytes of the sampler for each request and word without drafts, and with them.
VERIFIED = [
    ("Qwen/Qwen3-8B", (0, 10, 2), 38, 38),
    ("Qwen/Qwen3-8B", (0, 13, 0), 38, 46),
    ("Qwen/Qwen3-8B", (0, 16, 0), 38, 50),
    ("Qwen/Qwen3-8B", (0, 24, 0), 16, 26),
    ("Qwen/Qwen3-8B", (0, 26, 0), 16, 16),
    ("Qwen/Qwen3-30B-A3B", (0, 26, 0), 16, 26),
    ("Qwen/Qwen3-30B-A3B", (0, 29, 0), 16, 16),
]


@for_each(("model", "version", "without", "drafted"), VERIFIED)
def test_a_run_that_verifies_drafts_needs_more(
    model: str, version: Version, without: int, drafted: int
) -> None:
    """The newer model runner verifies none: it runs dense models since 0.25, and all since 0.29."""
    start = replace(start_up(model, "NVIDIA H100", 79.18, version, 1), sequences=1024)
    assert start.shape.vocab is not None

    def peak(drafts: bool) -> float:
        terms = terms_of(replace(start, drafts=drafts))
        assert isinstance(terms, Terms)
        return terms.peak

    more = (drafted - without) * 1024 * start.shape.vocab
    assert peak(True) - peak(False) == pytest.approx(more / 2**30)


# Release, GPU: what is not PyTorch's on one GPU.
DRIVERS = [
    ((0, 6, 3), "NVIDIA L40S", 0.14),
    ((0, 6, 4), "NVIDIA L40S", 0.44),
    ((0, 6, 5), "NVIDIA L40S", 0.14),
    ((0, 7, 3), "NVIDIA L40S", 0.14),
    ((0, 8, 0), "NVIDIA L40S", 0.44),
    ((0, 9, 1), "NVIDIA L40S", 0.44),
    ((0, 9, 2), "NVIDIA L40S", 0.14),
    ((0, 18, 0), "NVIDIA L40S", 0.25),
    ((0, 18, 0), "NVIDIA GeForce RTX 4090", 0.14),
    ((0, 8, 0), "AMD Instinct MI300X", 1.0),
]


@for_each(("version", "gpu", "driver"), DRIVERS)
def test_some_releases_count_the_context_of_cuda(version: Version, gpu: str, driver: float) -> None:
    terms = terms_of(start_up("Qwen/Qwen3-8B", gpu, 44.5, version, 1))

    assert isinstance(terms, Terms)
    assert terms.driver == driver


# Tokens of a batch, whether it sees images, and KiB of copies on the host of GB10: 16 tokens of 256
# requests, and of a batch 5,120 numbers, in pinned memory of 2^n bytes; 65,536 patches six times,
# and again for more than one image.
COPIES = [
    (2048, 0, 20 + 32 * 1024),
    (65536, 0, 20 + 1024**2),
    (2048, 1, 20 + 32 * 1024 + 6 * 192 * 1024),
    (65536, 1, 20 + 1024**2 + 6 * 192 * 1024 + 1024**2),
]


@for_each(("tokens", "ranks", "kib"), COPIES)
def test_copies_on_the_host_count_where_it_shares_its_memory(
    tokens: int, ranks: int, kib: int
) -> None:
    start = start_up("Qwen/Qwen3.6-27B", "NVIDIA GB10", 120.7, (0, 23, 0), 1)
    start = replace(start, tokens=tokens, length=16, encoder_ranks=ranks)
    terms = terms_of(start)

    assert isinstance(terms, Terms)
    assert terms.driver == pytest.approx(1.25 + kib / 1024**2)


# Release: tokens of 8 copies of 8,192 that experts run on at once.
GATHERED = [((0, 11, 0), 32768), ((0, 13, 0), 16384), ((0, 18, 0), 65536), (None, 65536)]


@for_each(("version", "rows"), GATHERED)
def test_experts_of_copies_run_on_the_tokens_of_all_copies(
    version: Version | None, rows: int
) -> None:
    """Each token is gathered, and has eight rows of 2,048 hidden and 768 inner numbers.

    Since 0.14 the second workspace has rows of 2,048 as well.
    """
    alone = replace(
        start_up("Qwen/Qwen3-30B-A3B", "NVIDIA H100", 79.18, version, 1),
        split=Split(experts=8), sequences=1, pieces=False, decodes=False,
    )  # fmt: skip
    one, all_copies = terms_of(alone), terms_of(replace(alone, gathers=True))

    assert isinstance(one, Terms)
    assert isinstance(all_copies, Terms)
    second = 768 if version is not None and version < (0, 14) else 2048
    numbers = 8192 * 3 * 2048 + 65536 * 2048 + rows * 8 * (2048 + second)
    assert all_copies.peak == pytest.approx(numbers * 2 / 2**30)
    assert all_copies.doubt - one.doubt == pytest.approx(all_copies.peak - one.peak)
    assert all_copies.communication == one.communication == 0.42


def test_deep_gemm_is_the_default_since_0_11() -> None:
    def peak(version: Version) -> float:
        start = start_up("Qwen/Qwen3-30B-A3B-FP8", "NVIDIA H100", 79.18, version, 1)
        terms = terms_of(replace(start, sequences=1, tokens=32768))
        assert isinstance(terms, Terms)
        return terms.peak

    assert peak((0, 11, 2)) > peak((0, 10, 2))


# Arguments, variable: whether the experts' tokens are gathered.
TRANSPORTS = [
    ((), None, True),
    (("--all2all-backend", "allgather_reducescatter"), None, True),
    (("--all2all-backend", "deepep_low_latency"), None, False),
    ((), "VLLM_ALL2ALL_BACKEND", False),
]


@for_each(("args", "variable", "gathers"), TRANSPORTS)
def test_other_transports_gather_no_tokens(
    args: tuple[str, ...], variable: str | None, gathers: bool
) -> None:
    start = Measured(
        id="", source="", engine="vllm", version="0.20.2", gpu="NVIDIA-H200", tensor=1,
        model="deepseek-ai/DeepSeek-R1", started=True,
        args=("--data-parallel-size", "8", "--enable-expert-parallel", *args),
    )  # fmt: skip
    ((engine, placed),) = engines_on_gpu(start.serving)
    assert isinstance(placed, EngineOnGpu)
    entry = replace(engine.entry, stated=frozenset({variable} if variable else ()))
    terms = replace(placed, engine=replace(engine, entry=entry)).terms

    assert isinstance(terms, Terms)
    assert (terms.peak > 10) == gathers
    assert (terms.doubt > 5) == gathers
