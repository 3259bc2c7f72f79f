"""The memory of the encoder of images while vLLM measures its peak."""

from dataclasses import replace

import pytest

from kthena_components.core.memory import Split
from kthena_components.core.memory.batch import StartUp
from kthena_components.core.memory.encoder import encoder_peak, kept_images, runs_encoder
from kthena_components.core.memory.start_up import terms_of
from kthena_components.core.models import ModelShape, find_model
from kthena_components.core.values.images import Version
from tests.support.for_each import for_each

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
    found = encoder_peak(shape_of(QWEN), tokens, ranks, release)

    assert found == pytest.approx(peak, abs=0.01)


def test_a_token_of_each_four_patches_is_kept() -> None:
    assert kept_images(shape_of(QWEN), 2048) == pytest.approx(16384 * 5120 * 2 / 2**30)


def test_a_model_without_images_has_no_encoder() -> None:
    for shape in (shape_of("Qwen/Qwen3-8B"), replace(shape_of(QWEN), image_patches=None)):
        assert encoder_peak(shape, 8192, 1, None) == 0
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
