"""Weights as vLLM holds them with ROCm: longer rows of experts, and gaps between their copies."""

from dataclasses import replace

import pytest

from kthena_components.core.memory.copies import copied_weights
from kthena_components.core.memory.padding import loaded_weights
from kthena_components.core.memory.sizes import Split, expert_weights, fullest_weights
from kthena_components.core.models import ModelShape, find_model
from tests.support.for_each import for_each

SMALL, WIDE = "Qwen/Qwen3-30B-A3B-Instruct-2507", "Qwen/Qwen3-235B-A22B-Instruct-2507"


def known(name: str) -> ModelShape:
    shape = find_model(name)
    assert isinstance(shape, ModelShape)
    return shape


def grown(shape: ModelShape, split: Split, width: int | None) -> float:
    """Return by which share the experts grow."""
    gib = shape.weights_gib or 0
    more = loaded_weights(shape, split, gib, width) - fullest_weights(shape, split, gib)
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
    shape = replace(known(SMALL), dtype="fp8")
    assert grown(shape, Split(), 768) == pytest.approx(1 / 48)
    assert grown(shape, Split(), None) == 0
    assert grown(replace(shape, dtype="int4"), Split(), 768) == 0
