"""Tests of the memory of sparse and compressed attention."""

from dataclasses import replace

import pytest

from kthena_components.core.findings import Finding
from kthena_components.core.memory import GIB, Split
from kthena_components.core.memory.engine import EngineOnGpu, engines_on_gpu
from kthena_components.core.memory.estimate import Estimate
from kthena_components.core.memory.held_weights import copied_weights
from kthena_components.core.memory.sparse_attention import (
    compressed_copies,
    decode_logits,
    index_cache_on_gpu,
    indexer_numbers,
    prefill_workspace,
    request_cache,
)
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.images import Version
from tests.core.memory.start_ups import Measured
from tests.support.for_each import for_each

V32, V32_FP4 = "deepseek-ai/DeepSeek-V3.2", "nvidia/DeepSeek-V3.2-NVFP4"
GLM, GLM_FP8, GLM_FP4 = "zai-org/GLM-5", "zai-org/GLM-5.1-FP8", "nvidia/GLM-5-NVFP4"
H200, B200, MI355X = "NVIDIA-H200", "NVIDIA-B200", "AMD_Instinct_MI355_OAM"
RTX_PRO = "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition"
FP8, BF16 = ("--kv-cache-dtype", "fp8_e4m3"), ("--kv-cache-dtype", "bfloat16")


def shape_of(model: str) -> ModelShape:
    shape = find_model(model)
    assert isinstance(shape, ModelShape), model
    return shape


def start(model: str, engine: str, version: str, gpu: str, args: tuple[str, ...] = ()) -> Measured:
    return Measured(
        id="", source="", engine=engine, version=version, gpu=gpu, tensor=8, model=model,
        args=args, started=True,
    )  # fmt: skip


def bytes_of_a_token(measured: Measured) -> int:
    estimate = measured.estimate
    assert isinstance(estimate, Estimate)
    return estimate.token_bytes


# Model: numbers of one layer's indexer. wq_b, wk and weights_proj.
NUMBERS = [
    (V32, 1536 * 64 * 128 + 7168 * 128 + 7168 * 64),
    (GLM, 2048 * 32 * 128 + 6144 * 128 + 6144 * 32),
    ("deepseek-ai/DeepSeek-R1", 0),
    ("Qwen/Qwen3-8B", 0),
    ("zai-org/GLM-5.2", 2048 * 32 * 128 + 6144 * 128 + 6144 * 32),
]


@for_each(("model", "numbers"), NUMBERS)
def test_an_indexer_has_its_projections(model: str, numbers: int) -> None:
    assert indexer_numbers(shape_of(model)) == numbers


# Model, GiB of all its indexers: 16 bits unless attention is in FP8.
WHOLE = [(V32, 0.79), (V32_FP4, 1.59), (GLM, 1.36), (GLM_FP8, 0.68), (GLM_FP4, 1.36)]


@for_each(("model", "gib"), WHOLE)
def test_each_rank_has_all_indexers(model: str, gib: float) -> None:
    shape = shape_of(model)
    none = replace(shape, index_heads=None, index_dim=None)

    for split in (Split(), Split(tensor=8), Split(tensor=8, attention=1)):
        more = copied_weights(shape, split) - copied_weights(none, split)
        assert more == pytest.approx(gib * (1 - 1 / split.tensor), abs=0.01)


# Model, engine, release, GPU: weights that a start-up states, and how close the model is.
STATED = [
    (V32, "0.16.0", H200, 80.62, 0.3),
    (V32, "0.18.0", B200, 80.77, 0.45),
    (V32_FP4, "0.18.0", B200, 48.62, 0.6),
    (GLM_FP8, "0.19.1", H200, 89.34, 0.6),
]


@for_each(("model", "version", "gpu", "gib", "by"), STATED)
def test_weights_are_those_that_start_ups_state(
    model: str, version: str, gpu: str, gib: float, by: float
) -> None:
    estimate = start(model, "vllm", version, gpu).estimate

    assert isinstance(estimate, Estimate)
    assert estimate.weights == pytest.approx(gib, abs=by)


# Start-up: tokens and GiB that its log states. The first has 54.52 of latents and 10.97 of keys:
# sgl-project/sglang#11309.
LOGS = [
    (start(V32, "sglang", "0.5.3", B200), 1_462_784, 65.49),
    (start(V32, "sglang", "0.5.4", B200), 975_424, 43.67),
    (start(GLM_FP4, "sglang", "0.5.9", RTX_PRO, BF16), 314_304, 29.32),
]


@for_each(("measured", "tokens", "gib"), LOGS)
def test_a_token_takes_the_bytes_of_logs(measured: Measured, tokens: int, gib: float) -> None:
    assert bytes_of_a_token(measured) * tokens / GIB == pytest.approx(gib, abs=0.01)


TRTLLM = ("--nsa-decode-backend", "trtllm")
FLASHMLA = ("--dsa-prefill-backend", "flashmla_kv", "--dsa-decode-backend", "flashmla_kv")
TILELANG = ("--nsa-prefill-backend", "tilelang")
# Release of SGLang, GPU, options: bytes that are allocated and counted for a token and layer.
CELLS = [
    ("0.5.3", H200, (), 1284, 1152),
    ("0.5.3", B200, (), 788, 576),
    ("0.5.4", H200, (), 1284, 1284),
    ("0.5.4", H200, ("--kv-cache-dtype", "auto"), 1284, 1284),
    ("0.5.8", H200, FP8, 788, 708),
    ("0.5.8", B200, TRTLLM, 788, 708),
    ("0.5.8", B200, BF16, 1284, 1284),
    ("0.5.8", MI355X, FP8, 788, 708),
    ("0.5.9", B200, (), 788, 708),
    ("0.5.9", B200, TRTLLM, 708, 708),
    ("0.5.10", B200, (), 708, 708),
    ("0.5.10", MI355X, FP8, 708, 708),
    ("0.5.10", MI355X, (), 1284, 1284),
    ("0.5.10", H200, FP8, 788, 708),
    ("0.5.10", H200, (*FP8, *TILELANG), 788, 708),
    ("0.5.12", B200, FLASHMLA[:2], 708, 708),
    ("0.5.12", MI355X, (*FP8, *FLASHMLA[:2]), 788, 708),
    ("0.5.16", B200, FLASHMLA, 788, 708),
    ("0.5.17", B200, FLASHMLA, 788, 788),
    ("0.5.17", H200, FP8, 788, 788),
]


@for_each(("version", "gpu", "args", "allocated", "counted"), CELLS)
def test_sglang_allocates_more_than_it_counts(
    version: str, gpu: str, args: tuple[str, ...], allocated: int, counted: int
) -> None:
    measured = start(GLM_FP8, "sglang", version, gpu, args)
    ((_, placed),) = engines_on_gpu(measured.serving)
    assert isinstance(placed, EngineOnGpu)

    assert bytes_of_a_token(measured) == 78 * allocated
    budget = placed.room - placed.loaded - placed.overhead
    assert placed.left == pytest.approx(budget * allocated / counted)


# Model, engine, options: bytes of a token on one GPU of eight.
OTHERS = [
    (V32, "vllm", (), 61 * (1152 + 132)),
    (V32, "vllm", ("--kv-cache-dtype", "fp8_ds_mla"), 61 * (656 + 132)),
    ("deepseek-ai/DeepSeek-R1", "vllm", (), 61 * 1152),
    ("deepseek-ai/DeepSeek-R1", "sglang", FP8, 61 * 576),
    ("Qwen/Qwen3-235B-A22B", "sglang", FP8, 94 * 256),
]


@for_each(("model", "engine", "args", "each"), OTHERS)
def test_an_indexer_adds_its_key_to_each_token(
    model: str, engine: str, args: tuple[str, ...], each: int
) -> None:
    version = "0.18.0" if engine == "vllm" else "0.5.8"

    assert bytes_of_a_token(start(model, engine, version, B200, args)) == each


def test_keys_of_indexers_are_split_between_stages_and_ranks_of_the_context() -> None:
    shape = shape_of(GLM)

    assert index_cache_on_gpu(shape, Split(tensor=8)) == 78 * 132
    assert index_cache_on_gpu(shape, Split(tensor=8, pipeline=4)) == 20 * 132
    assert index_cache_on_gpu(shape, Split(tensor=8, decode_context=8)) == 1287


SHARED = "zai-org/GLM-5.2-FP8"
# Engine, release: indexers of GLM-5.2, 57 of whose 78 layers use the choice of another one.
LOADED = [("vllm", "0.23.0", 78), ("vllm", "0.24.0", 21), ("vllm", "0.33.0", 21)]


@for_each(("engine", "version", "indexers"), LOADED)
def test_an_older_release_has_indexers_in_layers_that_share_one(
    engine: str, version: str, indexers: int
) -> None:
    measured = start(SHARED, engine, version, H200)
    estimate = measured.estimate
    assert isinstance(estimate, Estimate)
    none = replace(shape_of(SHARED), index_heads=None, index_dim=None, draft_layers=0)

    assert bytes_of_a_token(measured) == 78 * 1152 + indexers * 132
    each = indexer_numbers(shape_of(SHARED)) / GIB
    rest = estimate.weights - indexers * each * 7 / 8
    assert rest == pytest.approx(87.87 + copied_weights(none, Split(tensor=8)) - 1.0, abs=0.5)


# Model, GPU, FP8, release: GiB for prefills of 1,048,576 tokens. 40 keys of 132 bytes, or 5 latents
# of 1,152.
PREFILLS = [
    (GLM_FP8, "NVIDIA H200", False, (0, 23, 0), 40 * 132 / 1024),
    (GLM_FP8, "NVIDIA H200", True, (0, 23, 0), 5 * 1152 / 1024),
    (GLM_FP8, "NVIDIA H200", True, None, 2 * 1152 / 1024),
    (GLM_FP8, "NVIDIA H200", True, (0, 12, 0), 40 * 132 / 1024),
    (GLM_FP8, "NVIDIA B200", True, (0, 23, 0), 40 * 132 / 1024),
    ("deepseek-ai/DeepSeek-R1", "NVIDIA H200", True, (0, 23, 0), 0.0),
    (GLM_FP8, "NVIDIA H200", True, (0, 31, 0), 5 * 1152 / 1024),
    (GLM_FP8, "NVIDIA H200", True, (0, 32, 0), 2 * 1152 / 1024),
    (GLM_FP8, "NVIDIA H200", False, (0, 32, 0), 16 * 132 / 1024),
    ("zai-org/GLM-5.3-Flash", "NVIDIA H200", False, (0, 31, 0), 40 * 132 / 1024),
    ("zai-org/GLM-5.3-Flash", "NVIDIA H200", False, (0, 32, 0), 4 * 132 / 1024),
    (GLM_FP8, "NVIDIA H200", True, (0, 13, 0), 5 * 1152 / 1024),
]


@for_each(("model", "gpu", "fp8", "release", "gib"), PREFILLS)
def test_prefills_of_sparse_attention_need_more_with_the_longest_request(
    model: str, gpu: str, fp8: bool, release: Version | None, gib: float
) -> None:
    found = prefill_workspace(shape_of(model), gpu, 2**20, fp8=fp8, release=release)
    assert prefill_workspace(shape_of(model), gpu, None, fp8=fp8, release=release) == 0.0

    assert found == pytest.approx(gib)


@for_each(("length", "latents"), [(2**18, 5), (2**18 + 1, 2)])
def test_a_release_reserves_fewer_latents_for_long_requests_only(length: int, latents: int) -> None:
    shape, release = shape_of(GLM_FP8), (0, 32, 0)
    found = prefill_workspace(shape, "NVIDIA H200", length, fp8=True, release=release)
    assert found == latents * length * 1152 / GIB


# Longest request: the peak of GLM-5.1, whose experts use the same workspace.
PEAKS = [("8192", 4.05), ("202752", 4.05), ("1048576", 7.7)]


@for_each(("length", "gib"), PEAKS)
def test_a_workspace_is_that_of_experts_unless_it_is_larger(length: str, gib: float) -> None:
    measured = start(GLM_FP8, "vllm", "0.23.0", H200, ("--max-model-len", length))
    estimate = measured.estimate
    assert isinstance(estimate, Estimate)
    assert estimate.terms is not None

    assert estimate.terms.peak == pytest.approx(gib, abs=0.6)


FLASH, PRO = "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Pro"


def needed(
    model: str, length: int, tokens: int, release: Version | None, *, drafts: bool = False
) -> float:
    request = request_cache(shape_of(model), length, tokens, release, drafts=drafts)
    assert request is not None
    return (length * request.token_bytes + request.request_bytes) / GIB


# Model, tokens of a request and of a batch, release: GiB. The first one is what the error of k28
# states, and the second one what it says is left, with the length that it estimates.
REQUESTS = [
    (FLASH, 30_000, 16_384, (0, 22, 0), 6.66),
    (FLASH, 13_528, 16_384, (0, 22, 0), 5.44),
    (PRO, 800_000, 8192, (0, 20, 2), 8.94),
]


@for_each(("model", "length", "tokens", "release", "gib"), REQUESTS)
def test_a_request_needs_windows_and_states_beside_its_latents(
    model: str, length: int, tokens: int, release: Version, gib: float
) -> None:
    assert needed(model, length, tokens, release) == pytest.approx(gib, abs=0.03)


def test_a_release_keeps_the_tokens_of_two_batches_since_0_26() -> None:
    length = 200_000
    one, two = needed(FLASH, length, 16_384, (0, 25, 0)), needed(FLASH, length, 8192, (0, 26, 0))

    assert one == pytest.approx(two, rel=0.001)


def test_blocks_have_no_gaps_since_0_29() -> None:
    assert needed(FLASH, 30_000, 8192, None) < needed(FLASH, 30_000, 8192, (0, 28, 0))


def test_drafts_keep_a_window_more() -> None:
    assert needed(FLASH, 30_000, 8192, None, drafts=True) >= needed(FLASH, 30_000, 8192, None)


def test_other_attention_has_no_such_request() -> None:
    other = replace(shape_of(FLASH), quarter_layers=None)
    assert request_cache(other, 8192, 8192, None, drafts=False) is None


def start_up(
    *args: str, engine: str = "vllm", gpu: str = "NVIDIA-H200", tensor: int = 4
) -> Measured:
    return Measured(
        id="", source="", engine=engine, version="0.24.0", gpu=gpu, tensor=tensor, model=FLASH,
        args=args, started=True,
    )  # fmt: skip


# Engine, GPU, options: whether what a request needs is modelled.
MODELLED: list[tuple[str, str, tuple[str, ...], bool]] = [
    ("vllm", "NVIDIA-H200", (), True),
    ("vllm", "NVIDIA-H200", ("--kv-cache-dtype", "fp8"), True),
    ("vllm", "NVIDIA-H200", ("--kv-cache-dtype", "bfloat16"), False),
    ("vllm", "NVIDIA-H200", ("--block-size", "256"), True),
    ("vllm", "NVIDIA-H200", ("--block-size", "64"), False),
    ("vllm", "NVIDIA-H200", ("--pipeline-parallel-size", "2"), False),
    ("vllm", "AMD_Instinct_MI355_OAM", (), False),
    ("sglang", "NVIDIA-H200", (), False),
]


@for_each(("engine", "gpu", "args", "modelled"), MODELLED)
def test_what_a_request_needs_is_known_of_some_layouts(
    engine: str, gpu: str, args: tuple[str, ...], modelled: bool
) -> None:
    estimate = start_up(*args, engine=engine, gpu=gpu).estimate

    assert isinstance(estimate, Estimate)
    assert (estimate.needed > 0) == modelled


def remedies(*args: str) -> list[Finding]:
    gpu = "NVIDIA-H100-80GB-HBM3"
    return start_up("--max-model-len", "100000", *args, gpu=gpu, tensor=4).findings


def test_a_smaller_batch_is_a_remedy_that_works() -> None:
    share = ("--gpu-memory-utilization", "0.75")
    (finding,) = remedies(*share, "--max-num-batched-tokens", "32768", "--max-num-seqs", "256")
    _, _, words = finding.remedy.partition("set --max-num-batched-tokens to ")

    assert words, finding.remedy
    batch = words.split()[0]
    assert remedies(*share, "--max-num-batched-tokens", batch, "--max-num-seqs", "256") == []


# Model, GPU, longest request, tokens of a batch: GiB of an indexer's logits, 4 bytes for each key.
LOGITS = [
    (GLM_FP8, H200, 2**20, 512, 2.0),
    (GLM_FP8, H200, 2**18, 512, 0.5),
    (GLM_FP8, H200, 2**18, 32, 1 / 32),
    (FLASH, H200, 2**20, 512, 0.5),
    ("zai-org/GLM-5.3-Flash", H200, 2**20, 512, 0.5),
    (GLM_FP8, "AMD Instinct MI355X", 2**20, 512, 0.0),
    ("deepseek-ai/DeepSeek-R1", H200, 2**20, 512, 0.0),
    (GLM_FP8, H200, None, 512, 0.0),
    (FLASH, H200, 6, 1, 2 * 4 / GIB),  # The last key stands for fewer tokens.
]


@for_each(("model", "gpu", "length", "rows", "gib"), LOGITS)
def test_logits_of_a_decode_have_a_column_for_each_key_of_the_longest_request(
    model: str, gpu: str, length: int | None, rows: int, gib: float
) -> None:
    assert decode_logits(shape_of(model), gpu, length, rows) == gib


# Longest request, options: GiB of graphs. Two runs of the largest batch of decodes, which has 512
# tokens at most and all sequences, each with the tokens of its draft.
MTP = ("--speculative-config", '{"method":"mtp","num_speculative_tokens":5}')
GRAPHS = [
    ("262144", (), 0.87 + 2 * 0.5),
    ("1048576", (), 0.87 + 2 * 2.0),
    ("1048576", ("--max-num-seqs", "64"), 0.37 + 2 * 64 / 256),
    ("1048576", ("--max-num-seqs", "64", *MTP), 0.88 + 2 * 384 / 256),
    ("1048576", ("--max-num-batched-tokens", "128"), 0.37 + 2 * 128 / 256),
    ("1048576", ("--enforce-eager",), 0.0),
]


@for_each(("length", "args", "gib"), GRAPHS)
def test_graphs_of_sparse_attention_hold_the_logits_of_the_largest_batch(
    length: str, args: tuple[str, ...], gib: float
) -> None:
    """j13 is +0.1 GiB in place of +1.0 with it, and g01 +0.6 in place of +3.5."""
    options = ("--max-model-len", length, *args)
    estimate = start(GLM_FP8, "vllm", "0.23.0", H200, options).estimate

    assert isinstance(estimate, Estimate)
    assert estimate.terms is not None
    assert estimate.terms.graphs == pytest.approx(gib, abs=0.02)
    assert estimate.terms.doubt < estimate.terms.graphs or not gib


# Release: GiB that are in doubt, which are the logits but for what the first graph has anyway. In
# 0.16 the sampler may need less, too.
DOUBTS = [("0.16.0", 3.87 + 0.12), ("0.23.0", 3.87)]


@for_each(("version", "gib"), DOUBTS)
def test_graphs_of_decodes_may_not_be_captured(version: str, gib: float) -> None:
    estimate = start(GLM_FP8, "vllm", version, H200, ("--max-model-len", "1048576")).estimate

    assert isinstance(estimate, Estimate)
    assert estimate.terms is not None
    assert estimate.terms.doubt == pytest.approx(gib, abs=0.02)


def test_graphs_are_in_doubt_once_where_none_are_counted() -> None:
    measured = start(FLASH, "vllm", "0.28.0", H200, ("--max-model-len", "1048576"))
    estimate = measured.estimate

    assert isinstance(estimate, Estimate)
    assert estimate.terms is not None
    assert estimate.terms.graphs > 1.0
    assert estimate.terms.doubt == estimate.terms.graphs


def test_a_release_reserves_less_for_long_requests_of_compressed_attention() -> None:
    def peak(version: str) -> float:
        estimate = start(FLASH, "vllm", version, H200, ("--max-model-len", "1048576")).estimate
        assert isinstance(estimate, Estimate)
        assert estimate.terms is not None
        return estimate.terms.peak

    assert peak("0.32.0") < peak("0.31.0")


# Model: bytes that each rank has whole. Of each layer what makes latents of 1,024 or 1,536 numbers
# for queries and of 512 for tokens, in FP8; compressors of both kinds in 16 bits; an indexer with
# 64 heads of 128 in each layer with a ratio of 4.
OF_FLASH = 43 * 4096 * (1024 + 512) + 21 * 4096 * 4 * 512 * 2 + 20 * 4096 * 2 * 512 * 2
INDEXERS_OF_FLASH = 21 * (1024 * 64 * 128 + 4096 * 64 * 2 + 4096 * 4 * 128 * 2)
OF_PRO = 61 * 7168 * (1536 + 512) + 30 * 7168 * 4 * 512 * 2 + 31 * 7168 * 2 * 512 * 2
INDEXERS_OF_PRO = 30 * (1536 * 64 * 128 + 7168 * 64 * 2 + 7168 * 4 * 128 * 2)
WHOLE = [
    ("deepseek-ai/DeepSeek-V4-Flash", OF_FLASH + INDEXERS_OF_FLASH),
    ("deepseek-ai/DeepSeek-V4-Pro", OF_PRO + INDEXERS_OF_PRO),
    (V32, 0),
    ("Qwen/Qwen3-8B", 0),
]


@for_each(("model", "size"), WHOLE)
def test_ranks_have_what_compresses_whole(model: str, size: int) -> None:
    shape = find_model(model)
    assert isinstance(shape, ModelShape)

    assert compressed_copies(shape) == size
    if size:
        gates = shape.layers * (shape.experts or 0) * (shape.hidden or 0) * 2
        whole = (size + gates) * 7 / 8 / GIB
        assert copied_weights(shape, Split(tensor=8)) == pytest.approx(whole)
