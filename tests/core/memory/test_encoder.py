"""The memory of the encoder of images while vLLM measures its peak."""

from dataclasses import replace

import pytest

from kthena_components.core.memory import Split
from kthena_components.core.memory.encoder import encoder_peak, kept_images, runs_encoder
from kthena_components.core.memory.start_up import StartUp, terms_of
from kthena_components.core.models import ModelShape, find_model
from tests.support.for_each import for_each

QWEN = "Qwen/Qwen3.6-27B"


def shape_of(model: str) -> ModelShape:
    shape = find_model(model)
    assert isinstance(shape, ModelShape), model
    return shape


# Tokens of a batch, ranks: GiB. 65,536 patches of 1,536 numbers, three widths of 1,152 (state, norm
# and position), two of 4,608.
PEAKS = [(2048, 1, 1.73), (16384, 1, 1.73), (65536, 1, 6.94), (2048, 4, 0.89)]


@for_each(("tokens", "ranks", "peak"), PEAKS)
def test_the_encoder_runs_the_largest_image_or_as_many_as_a_batch_holds(
    tokens: int, ranks: int, peak: float
) -> None:
    assert encoder_peak(shape_of(QWEN), tokens, ranks) == pytest.approx(peak, abs=0.01)


def test_a_token_of_each_four_patches_is_kept() -> None:
    assert kept_images(shape_of(QWEN), 2048) == pytest.approx(16384 * 5120 * 2 / 2**30)


def test_a_model_without_images_has_no_encoder() -> None:
    for shape in (shape_of("Qwen/Qwen3-8B"), replace(shape_of(QWEN), image_patches=None)):
        assert encoder_peak(shape, 8192, 1) == 0
        assert kept_images(shape, 8192) == 0


# Options: whether the encoder runs.
OPTIONS: list[tuple[dict[str, object], bool]] = [
    ({}, True),
    ({"--language-model-only": True}, False),
    ({"--skip-mm-profiling": True}, False),
    ({"--limit-mm-per-prompt": '{"image": 0, "video": 0}'}, False),
    ({"--limit-mm-per-prompt": '{"image": 4, "video": 0}'}, True),
    ({"--limit-mm-per-prompt": '{"image": 0}'}, True),
    ({"--limit-mm-per-prompt": "image=0"}, True),
    ({"--limit-mm-per-prompt": "[]"}, True),
]


@for_each(("options", "runs"), OPTIONS)
def test_options_leave_the_encoder_out(options: dict[str, object], runs: bool) -> None:
    assert runs_encoder(options) == runs


@for_each(("ranks", "peak"), [(0, 0.25), (1, 1.73)])
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
