"""context-parallel-layout: decode and prefill context beside tensor, copies and the model's heads.

test_parallel_verdicts.py holds it to what the releases themselves refuse.
"""

import pytest

from kthena_components.core.findings import Level
from kthena_components.core.rules.context_parallel import context_parallel_layout
from tests.support.startup import judged, levels, told
from tests.support.strategies import LATE

NAMELESS = "org/model"
LATENT, FEW, MORE = "deepseek-ai/DeepSeek-V3", "Qwen/Qwen3-235B-A22B", "Qwen/Qwen3-32B"
"""Latent attention; 64 heads and 4 KV heads; 64 heads and 8 KV heads."""

TAKEN = [
    ("vllm 0.10.2", f"{NAMELESS} -tp 8 -dcp 8"),
    ("vllm 0.33.0", f"{LATENT} -tp 8 -dcp 8"),
    ("vllm 0.33.0", f"{FEW} -tp 8 -dcp 2"),
    ("vllm 0.11.0", f"{MORE} -tp 8 -dcp 2"),
    ("vllm 0.26.0", f"{NAMELESS} -tp 8 -pcp 2 -dcp 2"),
    ("vllm 0.26.0", f"{NAMELESS} -tp 8 -pcp 2 -dcp 16"),
    ("vllm 0.30.0", f"{LATENT} -tp 8 -pcp 2 -dp 2"),
    ("sglang 0.5.23", f"{NAMELESS} --tp-size 8 --dcp-size 4"),
]


@pytest.mark.parametrize(("release", "line"), TAKEN)
def test_groups_that_fit_are_right(release: str, line: str) -> None:
    assert told(context_parallel_layout, release, line) == []


REFUSED = {
    "no-divisor": (
        "vllm 0.33.0",
        f"{NAMELESS} -tp 8 -dcp 3",
        (
            "has decode context 3, which does not divide tensor 8. Write "
            "--decode-context-parallel-size 2"
        ),
    ),
    "too-wide": (
        "vllm 0.10.2",
        f"{NAMELESS} -tp 8 -dcp 16",
        (
            "has decode context 16, which does not divide tensor 8. Write "
            "--decode-context-parallel-size 8"
        ),
    ),
    "as-many-kv-heads": (
        "vllm 0.11.1",
        f"{MORE} -tp 8 -dcp 2",
        (
            "has decode context 2, which needs more than tensor 8 for 8 KV heads. Write "
            "--decode-context-parallel-size 1"
        ),
    ),
    "more-than-copies": (
        "vllm 0.33.0",
        f"{MORE} -tp 16 -dcp 4",
        (
            "has decode context 4, but tensor 16 has only 2 copies of each of 8 KV heads. Write "
            "--decode-context-parallel-size 2"
        ),
    ),
    "no-prefill-context": (
        "vllm 0.25.1",
        f"{LATENT} -tp 8 -pcp 2",
        (
            "has prefill context 2, which no attention of vLLM 0.25.1 supports. Remove "
            "--prefill-context-parallel-size, or use vLLM 0.26 or later"
        ),
    ),
    "not-across": (
        "vllm 0.26.0",
        f"{LATENT} -tp 8 -pcp 2 -dcp 4",
        (
            "has decode context 4 with tensor 8 and prefill context 2, and vLLM 0.26.0 accepts 1, "
            "2 or 16. Write --decode-context-parallel-size 2"
        ),
    ),
    "prefill-and-copies": (
        "vllm 0.29.0",
        f"{LATENT} -tp 8 -pcp 2 -dp 2",
        (
            "has prefill context 2 and data 2, and vLLM 0.29.0 accepts only one of them. Write "
            "--data-parallel-size 1, or use vLLM 0.30 or later"
        ),
    ),
    "no-latent-attention": (
        "vllm 0.33.0",
        f"{MORE} -tp 8 -pcp 2",
        (
            "has prefill context 2, which vLLM supports for latent attention only, and "
            "Qwen/Qwen3-32B has another one. Remove --prefill-context-parallel-size"
        ),
    ),
    "sglang": (
        "sglang 0.5.15",
        f"{NAMELESS} --tp-size 8 --dcp-size 3",
        "has decode context 3, which does not divide tensor 8. Write --dcp-size 2",
    ),
}


@pytest.mark.parametrize(("release", "line", "message"), REFUSED.values(), ids=REFUSED)
def test_groups_that_do_not_fit_are_refused(release: str, line: str, message: str) -> None:
    assert told(context_parallel_layout, release, line) == [message]
    assert levels(context_parallel_layout, release, line) == ["mandatory"]


def test_a_release_that_is_not_stated_makes_advice_of_what_differs() -> None:
    (line,) = told(context_parallel_layout, "vllm", f"{MORE} -tp 8 -dcp 2")
    assert "(checked against vLLM " in line
    assert levels(context_parallel_layout, "vllm", f"{MORE} -tp 8 -dcp 2") == ["advisory"]
    assert levels(context_parallel_layout, "vllm", f"{NAMELESS} -tp 8 -dcp 3") == ["mandatory"]


def test_a_size_that_is_not_known_is_told() -> None:
    (finding,) = judged(context_parallel_layout, "vllm 0.33.0", f"m -tp 8 -dcp {LATE}", pods=1)
    assert finding.level is Level.UNKNOWN
