"""The memory of a layer with experts while vLLM starts."""

from dataclasses import replace

from kthena_components.core.memory import Split
from kthena_components.core.memory.batch import StartUp
from kthena_components.core.memory.experts import expert_numbers, staying_numbers
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.images import Version
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


def test_nothing_is_known_of_the_kernel_of_a_gpu_without_a_name() -> None:
    assert staying_numbers(start_up("bf16", "a GPU of 81920 MiB", None)) == 0


def test_a_model_without_experts_or_widths_keeps_no_workspaces() -> None:
    start = start_up("bf16", L4, None)
    dense = replace(start, shape=replace(start.shape, expert_ffn=None))
    unknown = replace(start, shape=replace(start.shape, hidden=None))

    assert staying_numbers(dense) == staying_numbers(unknown) == 0
    assert expert_numbers(dense, TOKENS, HIDDEN, 5) == 5
