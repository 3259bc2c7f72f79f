"""The cache of a request of compressed attention."""

from dataclasses import replace

import pytest

from kthena_components.core.findings import Finding
from kthena_components.core.memory import GIB
from kthena_components.core.memory.compressed import request_cache
from kthena_components.core.memory.estimate import Estimate
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.images import Version
from tests.core.memory.start_ups import Measured
from tests.support.for_each import for_each

FLASH, PRO = "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Pro"


def shape_of(model: str) -> ModelShape:
    shape = find_model(model)
    assert isinstance(shape, ModelShape), model
    return shape


def needed(
    model: str, length: int, tokens: int, release: Version | None, *, drafts: bool = False
) -> float:
    request = request_cache(shape_of(model), length, tokens, release, drafts=drafts)
    assert request is not None
    return (length * request.each + request.fixed) / GIB


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
