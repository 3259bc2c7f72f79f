"""scheduler-sizes and memory-fraction-range: sizes of batches, and the share of a GPU's memory."""

import pytest

from kthena_components.core.rules.engine_sizes import memory_fraction_range, scheduler_sizes
from kthena_components.core.rules.serving import Check
from tests.support.startup import levels, told
from tests.support.strategies import LATE

WHOLE = "--no-enable-chunked-prefill --max-num-batched-tokens 2048 --max-model-len 8192"
TAKEN = [
    (scheduler_sizes, "vllm 0.33.0", "m --max-num-batched-tokens 256 --max-num-seqs 256"),
    (scheduler_sizes, "vllm 0.10.1", "m --max-num-batched-tokens 128"),
    (scheduler_sizes, "vllm 0.10.0", "m --max-num-batched-tokens 256"),
    (scheduler_sizes, "vllm 0.8.0", f"m {WHOLE}"),
    (scheduler_sizes, "vllm 0.11.0", f"m {WHOLE}"),
    (scheduler_sizes, "vllm 0.11.1", f"m {WHOLE.replace('2048', '8192')}"),
    (scheduler_sizes, "sglang 0.5.23", "m --chunked-prefill-size 1024 --page-size 64"),
    (scheduler_sizes, "sglang 0.5.23", "m --chunked-prefill-size -1 --page-size 64"),
    (memory_fraction_range, "vllm 0.33.0", "m --gpu-memory-utilization 1"),
    (memory_fraction_range, "vllm 0.11.0", "m --gpu-memory-utilization 0"),
    (memory_fraction_range, "sglang 0.5.23", "m --mem-fraction-static 1"),
]


@pytest.mark.parametrize(("check", "release", "line"), TAKEN)
def test_sizes_that_are_taken_are_right(check: Check, release: str, line: str) -> None:
    assert told(check, release, line) == []


REFUSED = {
    "fewer-tokens-than-sequences": (
        scheduler_sizes,
        "vllm 0.33.0",
        "m --max-num-batched-tokens 255 --max-num-seqs 256",
        (
            "has --max-num-batched-tokens 255 for --max-num-seqs 256, and each sequence needs a "
            "token. Write --max-num-batched-tokens 256 or more"
        ),
    ),
    "fewer-than-the-default": (
        scheduler_sizes,
        "vllm 0.10.0",
        "m --max-num-batched-tokens 128",
        (
            "has --max-num-batched-tokens 128, and vLLM 0.10.0 has at least 256 sequences at once. "
            "Write --max-num-seqs 128 or less, or --max-num-batched-tokens 256 or more"
        ),
    ),
    "prompts-that-are-not-chunked": (
        scheduler_sizes,
        "vllm 0.11.1",
        f"m {WHOLE}",
        (
            "has --max-num-batched-tokens 2048 and does not chunk a prefill, which may have 8192 "
            "tokens (--max-model-len). Write --max-num-batched-tokens 8192 or more, or chunk "
            "prefills"
        ),
    ),
    "nothing": (
        scheduler_sizes,
        "vllm 0.11.1",
        "m --max-num-seqs 0",
        "has --max-num-seqs 0, and vLLM 0.11.1 requires 1 or more. Write --max-num-seqs 1 or more",
    ),
    "no-tokens": (
        scheduler_sizes,
        "vllm 0.8.5",
        "m --max-num-batched-tokens 0",
        "has --max-num-batched-tokens 0, and each sequence needs a token. Write 1 or more",
    ),
    "active": (
        scheduler_sizes,
        "vllm 0.31.0",
        "m --max-num-seqs 64 --max-num-active-seqs 65",
        (
            "has --max-num-active-seqs 65, and --max-num-seqs 64 only. Write "
            "--max-num-active-seqs 64 or less"
        ),
    ),
    "pages": (
        scheduler_sizes,
        "sglang 0.5.23",
        "Qwen/Qwen3-32B --chunked-prefill-size 1000 --page-size 64",
        (
            "has --chunked-prefill-size 1000 and --page-size 64, and SGLang requires whole pages. "
            "Write --chunked-prefill-size 960"
        ),
    ),
    "pages-of-each-part": (
        scheduler_sizes,
        "sglang 0.5.23",
        "Qwen/Qwen3-32B --tp-size 8 --attn-dp-size 8 --chunked-prefill-size 1024 --page-size 256",
        (
            "has --chunked-prefill-size 1024 ÷ attention data 8 and --page-size 256, and SGLang "
            "requires whole pages. Write --chunked-prefill-size 2048"
        ),
    ),
    "per-cent": (
        memory_fraction_range,
        "vllm 0.6.0",
        "m --gpu-memory-utilization 90",
        "has --gpu-memory-utilization 90, and the whole memory is 1. Write 0.9",
    ),
    "no-memory": (
        memory_fraction_range,
        "vllm 0.11.1",
        "m --gpu-memory-utilization 0",
        "has --gpu-memory-utilization 0, and vLLM 0.11.1 requires more than 0. Write 0.9",
    ),
    "no-memory-for-sglang": (
        memory_fraction_range,
        "sglang",
        "m --mem-fraction-static 0",
        "has --mem-fraction-static 0, and SGLang 0.5.23 requires more than 0. Write 0.9",
    ),
}


@pytest.mark.parametrize(("check", "release", "line", "message"), REFUSED.values(), ids=REFUSED)
def test_sizes_that_are_not_taken_are_refused(
    check: Check, release: str, line: str, message: str
) -> None:
    assert told(check, release, line) == [message]
    assert levels(check, release, line) == ["mandatory"]


@pytest.mark.parametrize(
    ("check", "release", "line"),
    [
        (scheduler_sizes, "vllm", f"m {WHOLE}"),
        (scheduler_sizes, "sglang 0.5.23", "m --chunked-prefill-size 1000 --page-size 64"),
        (memory_fraction_range, "vllm", "m --gpu-memory-utilization 0"),
        (memory_fraction_range, "sglang 0.5.23", "m --mem-fraction-static 1.01"),
        (memory_fraction_range, "sglang", "m --mem-fraction-static 90"),
    ],
    ids=["release", "model", "share", "more-than-all", "per-cent"],
)
def test_what_may_be_taken_is_worth_a_look(check: Check, release: str, line: str) -> None:
    assert levels(check, release, line) == ["advisory"]


def test_sizes_that_are_not_known_are_not_judged() -> None:
    line = f"m --max-num-batched-tokens {LATE} --max-num-seqs 256"
    assert told(scheduler_sizes, "vllm 0.33.0", line) == []
    assert told(memory_fraction_range, "vllm 0.33.0", f"m --gpu-memory-utilization {LATE}") == []
