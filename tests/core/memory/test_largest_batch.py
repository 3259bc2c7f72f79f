"""Tests of the memory of experts and images in the largest batch."""

from dataclasses import replace

import pytest

from kthena_components.core.engines.vllm import runs_encoder
from kthena_components.core.memory import Split
from kthena_components.core.memory.engine import EngineOnGpu, engines_on_gpu, with_film
from kthena_components.core.memory.held_weights import copies_of_host
from kthena_components.core.memory.largest_batch import (
    StartUp,
    encoder_peak,
    expert_numbers,
    images_of,
    kept_images,
    staying_numbers,
)
from kthena_components.core.memory.start_up import terms_of
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.images import Version
from tests.core.memory.start_ups import Measured
from tests.support.for_each import for_each

HIDDEN, INNER, TOKENS = 2048, 768, 8192
ROWS = 8 * TOKENS
H100, B200, L4 = "NVIDIA H100", "NVIDIA B200", "NVIDIA L4"
RTX_PRO = "NVIDIA RTX PRO 6000"
NARROW, WIDE, BLOCKS = HIDDEN + INNER, 2 * HIDDEN, HIDDEN + 2 * INNER + HIDDEN // 2


def start_up(dtype: str, gpu: str, version: Version | None, *, block: bool = False) -> StartUp:
    """Return Qwen3-30B-A3B in a format, with 8,192 tokens."""
    shape = find_model("Qwen/Qwen3-30B-A3B")
    assert isinstance(shape, ModelShape)
    shape = replace(shape, dtype=dtype, fp8_block=128 if block else None)
    return StartUp(
        shape=shape, split=Split(), gpu=gpu, memory_gib=80, version=version, tokens=TOKENS
    )


# Format, GPU, release, numbers of a row, and whether the workspaces stay. Sources: the lists of
# kernels in vllm/model_executor/layers/fused_moe/oracle and workspace_shapes of each.
KERNELS = [
    ("bf16", H100, (0, 13, 0), NARROW, False),
    ("bf16", H100, (0, 14, 1), WIDE, True),
    ("bf16", H100, (0, 20, 2), WIDE, False),
    ("bf16", H100, (0, 24, 0), WIDE, True),
    ("bf16", H100, None, WIDE, True),
    ("bf16", B200, (0, 19, 0), WIDE, True),
    ("bf16", B200, None, WIDE, False),
    ("bf16", RTX_PRO, None, WIDE, False),
    ("bf16", L4, None, WIDE, True),
    ("bf16", "AMD Instinct MI300X", (0, 18, 0), WIDE, True),
    ("fp8", L4, (0, 29, 0), WIDE, True),
    ("fp8", H100, (0, 18, 0), WIDE, True),
    ("fp8", H100, (0, 13, 0), NARROW, False),
    ("int4", L4, (0, 22, 0), NARROW, False),
    ("int4", L4, (0, 24, 0), WIDE, True),
    ("int4", B200, None, NARROW, False),
    ("nvfp4", H100, (0, 15, 0), WIDE, True),
    ("nvfp4", RTX_PRO, None, NARROW, False),
    ("mxfp4", "NVIDIA A100 80GB", (0, 19, 0), WIDE, True),
    ("mxfp4", RTX_PRO, (0, 23, 0), WIDE, True),
    ("mxfp4", H100, None, NARROW, False),
    ("mxfp4", "AMD Instinct MI355X", None, NARROW, False),
    ("mxfp8", H100, None, NARROW, False),
]


@for_each(("dtype", "gpu", "version", "width", "stays"), KERNELS)
def test_the_kernel_of_a_format_and_a_gpu_has_its_workspaces(
    dtype: str, gpu: str, version: Version | None, width: int, stays: bool
) -> None:
    start = start_up(dtype, gpu, version)

    assert expert_numbers(start, TOKENS, HIDDEN, 0) == ROWS * width
    assert staying_numbers(start) == (ROWS * width if stays else 0)


# GPU, release, ranks, whether experts are whole: numbers of a row in FP8 blocks, and whether they
# stay. DeepGEMM fills up 128 experts by 128 rows each, and has a quantised copy.
FILLED = ROWS + 128 * 128
IN_BLOCKS = [
    (H100, (0, 10, 2), (1, False), ROWS * NARROW, 0),
    (H100, (0, 11, 0), (1, False), FILLED * (2 * HIDDEN + HIDDEN // 2), 0),
    (H100, (0, 13, 0), (1, False), FILLED * (2 * HIDDEN + HIDDEN // 2), FILLED * 2 * HIDDEN),
    (H100, (0, 13, 0), (8, False), ROWS * (HIDDEN + INNER // 8), 0),
    (H100, (0, 14, 1), (8, False), ROWS * WIDE, ROWS * WIDE),
    (H100, (0, 14, 1), (8, True), FILLED * (2 * HIDDEN + HIDDEN // 2), FILLED * 2 * HIDDEN),
    (H100, (0, 15, 0), (1, False), ROWS * BLOCKS, 0),
    (H100, (0, 18, 0), (1, False), ROWS * WIDE, ROWS * WIDE),
    (H100, (0, 20, 0), (4, True), ROWS * BLOCKS, 0),
    (B200, None, (1, False), ROWS * NARROW, 0),
    (RTX_PRO, None, (1, False), ROWS * WIDE, ROWS * WIDE),
    (L4, None, (4, True), ROWS * WIDE, ROWS * WIDE),
]


@for_each(("gpu", "version", "split", "numbers", "stay"), IN_BLOCKS)
def test_the_kernel_of_fp8_in_blocks_depends_on_release_and_ranks(
    gpu: str, version: Version | None, split: tuple[int, bool], numbers: int, stay: int
) -> None:
    ranks, whole = split
    start = replace(
        start_up("fp8", gpu, version, block=True), split=Split(tensor=ranks), whole_experts=whole
    )

    assert expert_numbers(start, TOKENS, HIDDEN, 0) == numbers
    assert staying_numbers(start) == stay


def test_workspaces_of_sparse_attention_lie_in_those_of_experts() -> None:
    start = start_up("bf16", L4, None)

    assert expert_numbers(start, TOKENS, HIDDEN, 10**9) == 10**9
    assert expert_numbers(start, TOKENS, HIDDEN, 10**6) == ROWS * WIDE


@for_each(
    ("gpu", "version", "stays"), [(H100, None, True), (RTX_PRO, None, True), (B200, None, False)]
)
def test_experts_of_deepseek_v4_run_with_marlin_except_on_blackwell_of_servers(
    gpu: str, version: Version | None, stays: bool
) -> None:
    start = start_up("fp8", gpu, version)
    start = replace(start, shape=replace(start.shape, streams=4))

    assert (staying_numbers(start) > 0) == stays


@for_each(("chosen", "rows"), [(None, 8), (4, 4), (10, 10)])
def test_a_token_has_a_row_for_each_expert_that_runs_on_it(chosen: int | None, rows: int) -> None:
    start = start_up("bf16", L4, None)
    start = replace(start, shape=replace(start.shape, chosen=chosen))

    assert staying_numbers(start) == rows * TOKENS * WIDE


# GPU, release, whether ranks have whole experts: whether vLLM's CUTLASS runs experts with GELU.
GELU = [
    ("NVIDIA GeForce RTX 5090", (0, 20, 2), False, True),
    ("NVIDIA GeForce RTX 5090", (0, 23, 0), False, True),
    ("NVIDIA GeForce RTX 5090", (0, 24, 0), False, False),
    ("NVIDIA GeForce RTX 5090", None, False, False),
    ("NVIDIA GeForce RTX 5090", (0, 20, 2), True, False),
    (B200, (0, 20, 2), False, True),
    (H100, (0, 20, 2), False, False),
]


@for_each(("gpu", "version", "whole", "cutlass"), GELU)
def test_experts_with_gelu_run_with_vllms_cutlass_before_flashinfer_has_it(
    gpu: str, version: Version | None, whole: bool, cutlass: bool
) -> None:
    """Each of eight rows has two copies of the hidden state more, and their product."""
    start = StartUp(
        shape=shape_of("RedHatAI/gemma-4-26B-A4B-it-NVFP4"),
        split=Split(),
        gpu=gpu,
        memory_gib=31,
        version=version,
        whole_experts=whole,
    )
    wide = 4 * 2816 + 704

    assert (expert_numbers(start, 1024, 2816, 0) == 8 * 1024 * wide) == cutlass


def test_nothing_is_known_of_the_kernel_of_a_gpu_without_a_name() -> None:
    assert staying_numbers(start_up("bf16", "a GPU of 81920 MiB", None)) == 0


def test_a_model_without_experts_or_widths_keeps_no_workspaces() -> None:
    start = start_up("bf16", L4, None)
    dense = replace(start, shape=replace(start.shape, expert_ffn=None))
    unknown = replace(start, shape=replace(start.shape, hidden=None))

    assert staying_numbers(dense) == staying_numbers(unknown) == 0
    assert expert_numbers(dense, TOKENS, HIDDEN, 5) == 5


QWEN = "Qwen/Qwen3.6-27B"


def shape_of(model: str) -> ModelShape:
    shape = find_model(model)
    assert isinstance(shape, ModelShape), model
    return shape


# Tokens of a batch, ranks, release: GiB. 65,536 patches of 1,536 numbers, and widths of 1,152:
# state, norm, position and result of attention, and eight that ranks share, which are queries, keys
# and values, queries and keys in order, the same rotated, and what attention returns.
PEAKS = [
    (2048, 1, None, 1.875),
    (16384, 1, (0, 15, 0), 1.875),
    (65536, 1, (0, 31, 0), 7.5),
    (2048, 4, None, 1.03),
    # The feed-forward part: three widths, and eight that ranks share.
    (2048, 1, (0, 13, 0), 1.73),
    # Attention in 32 bits: three, and eighteen that ranks share.
    (2048, 1, (0, 11, 0), 3.14),
    # Four ranks gather queries, keys and values: nine, and three that ranks share.
    (2048, 4, (0, 11, 0), 1.56),
]


@for_each(("tokens", "ranks", "release", "peak"), PEAKS)
def test_the_encoder_runs_the_largest_image_or_as_many_as_a_batch_holds(
    tokens: int, ranks: int, release: Version | None, peak: float
) -> None:
    found = encoder_peak(shape_of(QWEN), tokens, ranks, release, 80)

    assert found == pytest.approx(peak, abs=0.01)


# Release, memory of the GPU: pictures of 630 patches that Gemma 4's tower takes at once, of 1,664.
# Since 0.22 they are as many as take a tenth of the memory, at 206 MB each.
PICTURES = [
    ((0, 20, 2), 95.0, 1),
    ((0, 22, 0), 95.0, 49),
    (None, 24.0, 12),
    (None, 0.1, 1),
    (None, 10**6, 1664),
]


@for_each(("release", "memory", "pictures"), PICTURES)
def test_a_tower_from_transformers_takes_some_pictures_at_once(
    release: Version | None, memory: float, pictures: int
) -> None:
    """The pixels of all 52 films are in memory: 768 numbers of a patch."""
    found = encoder_peak(shape_of("google/gemma-4-31B-it"), 131072, 1, release, memory)

    pixels, widths = 52 * 20160 * 768, pictures * 630 * 15 * 1152
    assert found == pytest.approx((pixels + widths) * 2 / 2**30)


def test_pixels_and_a_token_of_each_four_patches_are_kept() -> None:
    pixels = 65536 * 1536
    assert images_of(shape_of(QWEN), 65536) == (4, pixels)
    assert kept_images(shape_of(QWEN), 2048) == pytest.approx((16384 * 5120 + pixels) * 2 / 2**30)


def test_a_model_without_images_has_no_encoder() -> None:
    for shape in (shape_of("Qwen/Qwen3-8B"), replace(shape_of(QWEN), image_patches=None)):
        assert encoder_peak(shape, 8192, 1, None, 80) == 0
        assert kept_images(shape, 8192) == 0


# Options: whether the encoder runs.
OPTIONS: list[tuple[dict[str, object], bool]] = [
    ({}, True),
    ({"--language-model-only": True}, False),
    ({"--skip-mm-profiling": True}, False),
    ({"--limit-mm-per-prompt": {"image": 0, "video": 0}}, False),
    ({"--limit-mm-per-prompt": {"image": {"count": 0}, "video": 0}}, False),
    ({"--limit-mm-per-prompt": {"image": 4, "video": 0}}, True),
    ({"--limit-mm-per-prompt": {"image": {"count": 4}, "video": 0}}, True),
    ({"--limit-mm-per-prompt": {"image": {"width": 512}, "video": 0}}, True),
    ({"--limit-mm-per-prompt": {"image": 0}}, True),
    ({"--limit-mm-per-prompt": "image=many"}, True),
]


@for_each(("options", "runs"), OPTIONS)
def test_options_leave_the_encoder_out(options: dict[str, object], runs: bool) -> None:
    assert runs_encoder(options) == runs


@for_each(("ranks", "peak"), [(0, 0.25), (1, 1.875)])
def test_the_peak_is_the_encoders_if_it_needs_more(ranks: int, peak: float) -> None:
    start = StartUp(
        shape=shape_of(QWEN),
        split=Split(tensor=1),
        gpu="NVIDIA L40S",
        memory_gib=44.5,
        version=(0, 26, 0),
        sequences=16,
        encoder_ranks=ranks,
    )
    terms = terms_of(start)

    assert terms is not None
    assert terms.peak == pytest.approx(peak, abs=0.05)


def test_what_the_encoder_returns_is_kept_while_the_model_runs() -> None:
    small = StartUp(
        shape=shape_of(QWEN),
        split=Split(tensor=1),
        gpu="NVIDIA H100",
        memory_gib=79.2,
        version=(0, 19, 0),
        encoder_ranks=1,
    )
    with_images, without = terms_of(small), terms_of(replace(small, encoder_ranks=0))

    assert with_images is not None
    assert without is not None
    assert with_images.peak - without.peak == pytest.approx(kept_images(small.shape, 8192))


@pytest.mark.parametrize(
    ("release", "films", "gib"),
    [
        ((0, 11, 0), True, 153600 * 4 * 4096 * 2 / 2**30),
        ((0, 11, 0), False, 0.0),
        ((0, 13, 0), True, 0.0),
    ],
)
def test_the_results_of_a_film_stay_while_the_language_model_runs(
    release: tuple[int, int, int], films: bool, gib: float
) -> None:
    start = StartUp(
        shape=shape_of("Qwen/Qwen3-VL-235B-A22B-Instruct"),
        split=Split(tensor=8),
        gpu="NVIDIA A100",
        memory_gib=79.2,
        version=release,
        encoder_ranks=8,
        films=films,
    )
    one, none = terms_of(start), terms_of(replace(start, encoder_ranks=0))

    assert one is not None
    assert none is not None
    stays = gib or kept_images(start.shape, 2048)
    assert one.peak - none.peak == pytest.approx(stays, abs=1e-6)


# Tokens of a batch, ranks, release: numbers of the encoder of Mistral: a mask, a copy of it, a
# layer and pixels. A batch of 8,192 tokens has two images, whose mask needs no copy.
MASKED: list[tuple[int, int, Version | None, float]] = [
    (2048, 1, None, 12100**2 * 2 + 12100 * (8 * 1024 + 588)),
    (2048, 4, None, 12100**2 * 2 + 12100 * (3.5 * 1024 + 588)),
    (8192, 1, (0, 12, 0), 24200**2 + 24200 * (16 * 1024 + 588)),
    (8192, 1, (0, 11, 0), 24200 * (16 * 1024 + 588)),
]


@for_each(("tokens", "ranks", "release", "numbers"), MASKED)
def test_the_encoder_of_mistral_has_a_mask_of_all_patches(
    tokens: int, ranks: int, release: Version | None, numbers: float
) -> None:
    shape = shape_of("mistralai/Ministral-3-8B-Instruct-2512")

    found = encoder_peak(shape, tokens, ranks, release, 44.4)
    assert found == pytest.approx(numbers * 2 / 2**30)
    assert images_of(shape, tokens) == (tokens // 3025 or 1, 12100 * 588)


@for_each(("tokens", "ranks", "images"), [(8192, 1, 32), (8192, 4, 32), (128, 1, 1)])
def test_the_encoder_of_gemma_3_makes_256_tokens_of_an_image(
    tokens: int, ranks: int, images: int
) -> None:
    """896 pixels a side in patches of 14; state, norm, and the inner width of a layer twice."""
    shape = shape_of("google/gemma-3-27b-it")

    widths = 2 + 8 / ranks
    found = encoder_peak(shape, tokens, ranks, (0, 14, 1), 90)
    assert found == pytest.approx(images * 4096 * (1152 * widths + 588) * 2 / 2**30)
    assert images_of(shape, tokens) == (images, 4096 * 588)


DRAFTS = '{"method":"mtp","num_speculative_tokens":3}'
OMNI = "nvidia/Nemotron-3-Nano-Omni-30B-A3B-Reasoning-FP8"
# Options, pictures of the film that vLLM measures with a longest request of 65,536 tokens.
FILMS: list[tuple[dict[str, object], int]] = [
    ({}, 512),
    ({"--media-io-kwargs": {"video": {"num_frames": 256}}}, 256),
    ({"--media-io-kwargs": {"video": {"fps": 2}}}, 512),
    ({"--media-io-kwargs": {"video": {"num_frames": "many"}}}, 512),
    ({"--media-io-kwargs": "no JSON"}, 512),
    ({"--limit-mm-per-prompt": {"video": 0}}, 0),
    ({"--language-model-only": True}, 0),
]


@for_each(("options", "pictures"), FILMS)
def test_the_longest_film_of_nemotron_fills_the_longest_request(
    options: dict[str, object], pictures: int
) -> None:
    """Two pictures of 1,024 patches become 256 tokens; 128 are in the encoder at once."""
    shape = with_film(shape_of(OMNI), 65536, options)

    pixels, tokens = pictures * 512 * 512 * 3, pictures * 128
    at_once = min(pictures, 128) * 512 * 13 * 1280
    assert encoder_peak(shape, 4096, 1, (0, 20, 0), 120) == pytest.approx(
        (pixels + at_once) * 2 / 2**30
    )
    assert kept_images(shape, 4096) == pytest.approx((pixels + tokens * 2688) * 2 / 2**30)


# Options of a command line, pictures of the film.
READ = [
    (("--media-io-kwargs", '{"video": {"num_frames": 256}}'), 256),
    (("--media-io-kwargs.video.num_frames", "128"), 128),
    (("--media-io-kwargs", '{"video": {"fps": 2}}'), 512),
    ((), 512),
]


@for_each(("args", "pictures"), READ)
def test_pictures_of_a_film_are_read_from_a_command_line(
    args: tuple[str, ...], pictures: int
) -> None:
    measured = Measured(
        id="", source="", engine="vllm", version="0.27.0", gpu="NVIDIA-GB10", tensor=1, model=OMNI,
        args=("--max-model-len", "65536", *args), started=True,
    )  # fmt: skip
    ((_, placed),) = engines_on_gpu(measured.serving)

    assert isinstance(placed, EngineOnGpu)
    assert placed.start.shape.image_patches == pictures * 1024


def test_the_pixels_of_a_film_of_nemotron_stay_on_the_host() -> None:
    start = StartUp(
        shape=with_film(shape_of(OMNI), 65536, {}),
        split=Split(tensor=1),
        gpu="NVIDIA GB10",
        memory_gib=120.69,
        version=(0, 20, 0),
        encoder_ranks=1,
    )
    more = copies_of_host(start) - copies_of_host(replace(start, encoder_ranks=0))

    assert more == pytest.approx(512 * 512 * 512 * 3 * 2 / 2**30)


# Options of a command line: the tokens of the largest graph, and those of each, as they are stated.
CAPTURED: list[tuple[tuple[str, ...], int | None, tuple[int, ...]]] = [
    ((), None, ()),
    (("--max-cudagraph-capture-size", "16"), 16, ()),
    (("--cudagraph-capture-sizes", "1", "2", "4"), None, (1, 2, 4)),
    (("--compilation-config", '{"cudagraph_capture_sizes": [1, 8]}'), None, (1, 8)),
    (("-cc.max_cudagraph_capture_size", "32"), 32, ()),
    (("--compilation-config", '{"cudagraph_capture_sizes": "all"}'), None, ()),
    (("--cudagraph-capture-sizes", "16"), None, (16,)),
]


@for_each(("args", "size", "listed"), CAPTURED)
def test_options_state_which_graphs_count(
    args: tuple[str, ...], size: int | None, listed: tuple[int, ...]
) -> None:
    start = placed_with(args).start
    assert (start.captured, start.listed) == (size, listed)

    stated, default = terms_of(start), terms_of(replace(start, captured=None, listed=()))
    assert stated is not None
    assert default is not None
    assert (stated.graphs < default.graphs) == (size is not None or bool(listed))


# Sizes that a list states: those that are captured in batches of 2,048 tokens, each of them once.
LISTED: list[tuple[tuple[str, ...], tuple[int, ...]]] = [
    (("64",), (64,)),
    (("64", "8", "64"), (8, 64)),
    (("64", "4096"), (64,)),
    (("4096",), ()),
]


@for_each(("words", "sizes"), LISTED)
def test_each_size_of_a_list_counts_once(words: tuple[str, ...], sizes: tuple[int, ...]) -> None:
    """vllm/config/vllm.py _set_cudagraph_sizes of 0.26.0: a graph of each layer for each size."""

    def graphs(*args: str) -> float:
        terms = terms_of(placed_with(("--max-num-batched-tokens", "2048", *args)).start)
        assert terms is not None
        return terms.graphs

    stated, one = (graphs("--cudagraph-capture-sizes", *each) for each in (words, ("64",)))
    more = (len(sizes) - 1) * placed_with(()).shape.layers * 0.21 / 1024
    assert stated == pytest.approx(one + more if sizes else 0)


def placed_with(args: tuple[str, ...]) -> EngineOnGpu:
    measured = Measured(
        id="", source="", engine="vllm", version="0.27.0", gpu="NVIDIA-GB10", tensor=1, model=QWEN,
        args=args, started=True,
    )  # fmt: skip
    ((_, placed),) = engines_on_gpu(measured.serving)
    assert isinstance(placed, EngineOnGpu)
    return placed


# GPU, model, arguments: MiB that FlashInfer allocates in the first graph of whole decodes.
DECODES: list[tuple[str, str, tuple[str, ...], int]] = [
    ("NVIDIA-GB10", QWEN, ("--kv-cache-dtype", "fp8"), 394),
    ("NVIDIA-GeForce-RTX-3090", QWEN, ("--kv-cache-dtype", "fp8_e4m3"), 394),
    # FlashAttention runs caches in 16 bits, and in FP8 on Hopper.
    ("NVIDIA-GB10", QWEN, (), 0),
    ("NVIDIA-H100-80GB-HBM3", QWEN, ("--kv-cache-dtype", "fp8"), 0),
    # Servers of Blackwell have other kernels of FlashInfer, of which no start-up states it.
    ("NVIDIA-B200", QWEN, (), 0),
    ("NVIDIA-B200", QWEN, ("--kv-cache-dtype", "fp8"), 0),
    # Triton runs heads of two widths, and attention with sinks.
    ("NVIDIA-GB10", "google/gemma-4-31B-it", ("--kv-cache-dtype", "fp8"), 0),
    ("NVIDIA-GB10", "zai-org/GLM-4.7-Flash", ("--kv-cache-dtype", "fp8"), 0),
    ("NVIDIA-GB10", "openai/gpt-oss-120b", ("--kv-cache-dtype", "fp8"), 0),
    ("NVIDIA-GB10", QWEN, ("--kv-cache-dtype", "fp8", "--attention-backend", "TRITON_ATTN"), 0),
    ("NVIDIA-GB10", QWEN, ("--attention-backend", "FLASHINFER"), 394),
    # With drafts there are no graphs of whole decodes.
    ("NVIDIA-GB10", QWEN, ("--kv-cache-dtype", "fp8", "--speculative-config", DRAFTS), 0),
]


@for_each(("gpu", "model", "args", "mib"), DECODES)
def test_attention_of_flashinfer_has_a_workspace(
    gpu: str, model: str, args: tuple[str, ...], mib: int
) -> None:
    start = Measured(
        id="", source="", engine="vllm", version="0.21.0", gpu=gpu, tensor=1, model=model,
        args=args, started=True,
    )  # fmt: skip
    ((_, placed),) = engines_on_gpu(start.serving)
    assert isinstance(placed, EngineOnGpu)

    assert placed.start.attention == pytest.approx(mib / 1024)


def test_the_first_graph_of_decodes_has_the_workspace_of_attention() -> None:
    start = StartUp(
        shape=shape_of(QWEN),
        split=Split(tensor=1),
        gpu="NVIDIA GB10",
        memory_gib=120.69,
        version=(0, 21, 0),
        sequences=8,
        attention=0.25,
    )
    more, less = terms_of(start), terms_of(replace(start, attention=0.0))
    none = terms_of(replace(start, pieces=False, decodes=False))

    assert more is not None
    assert less is not None
    assert none is not None
    assert more.graphs - less.graphs == pytest.approx(0.25, abs=0.01)
    assert none.graphs == 0
