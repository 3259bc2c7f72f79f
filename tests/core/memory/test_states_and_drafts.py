"""What SGLang leaves for the KV cache beside states and drafts."""

from dataclasses import replace

import pytest

from kthena_components.core.engines import CommandFacts
from kthena_components.core.memory import Split
from kthena_components.core.memory.sizes import GIB
from kthena_components.core.memory.states_and_drafts import (
    States,
    cache_beside_states,
    drafted_tokens,
    left_in_sglang,
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
