"""fp8-block-multiple: which releases refuse parts of FP8 blocks, and of which layers."""

import pytest

from kthena_components.core.rules.fp8_blocks import fp8_block_multiple
from tests.support.startup import levels, told

EXPERTS, DENSE = "Qwen/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-32B-FP8"
"""Experts of 1536, and dense layers of 25600, both in blocks of 128."""
CUT = (
    "gives its ranks parts of FP8 blocks, but each rank needs a multiple of 128: expert "
    "feed-forward layer 1536 ÷ 8 = 192. Set tensor to 4, or enable expert parallelism"
)


@pytest.mark.parametrize("version", ["0.6.6", "0.25.1", "0.28.0"])
def test_parts_of_experts_are_refused_up_to_vllm_0_28(version: str) -> None:
    assert told(fp8_block_multiple, f"vllm {version}", f"{EXPERTS} -tp 8") == [CUT]
    assert levels(fp8_block_multiple, f"vllm {version}", f"{EXPERTS} -tp 8") == ["mandatory"]


def test_scales_of_experts_are_refined_from_vllm_0_29_on() -> None:
    assert told(fp8_block_multiple, "vllm 0.29.0", f"{EXPERTS} -tp 8") == []
    # 1536 ÷ 64 = 24, and blocks of 8 are too fine.
    assert levels(fp8_block_multiple, "vllm 0.29.0", f"{EXPERTS} -tp 64") == ["mandatory"]
    assert levels(fp8_block_multiple, "vllm 0.33.0", f"{EXPERTS} -tp 32") == ["mandatory"]
    assert told(fp8_block_multiple, "vllm 0.33.0", f"{EXPERTS} -tp 16") == []


def test_parts_of_a_dense_layer_are_refused_by_every_vllm() -> None:
    line = f"{DENSE} -tp 16"
    assert levels(fp8_block_multiple, "vllm 0.6.5", line) == []
    for version in ("0.6.6", "0.14.0", "0.28.0", "0.29.0", "0.33.0"):
        assert told(fp8_block_multiple, f"vllm {version}", line) == [
            (
                "gives its ranks parts of FP8 blocks, but each rank needs a multiple of 128: "
                "feed-forward layer 25600 ÷ 16 = 1600. Set tensor to 8"
            )
        ]
        assert levels(fp8_block_multiple, f"vllm {version}", line) == ["mandatory"]


def test_expert_parallelism_leaves_experts_whole() -> None:
    line = f"{EXPERTS} -tp 8 --enable-expert-parallel"
    assert told(fp8_block_multiple, "vllm 0.28.0", line) == []


@pytest.mark.parametrize("version", ["0.4.6", "0.5.23"])
def test_sglang_refuses_parts_of_experts_in_every_release(version: str) -> None:
    assert levels(fp8_block_multiple, f"sglang {version}", f"{EXPERTS} --tp-size 8") == [
        "mandatory"
    ]
    fewer = f"{EXPERTS} --tp-size 8 --ep-size 2"
    assert told(fp8_block_multiple, f"sglang {version}", fewer) == []


@pytest.mark.parametrize(
    ("tag", "expected"),
    [("0.5.10-rocm720", ["mandatory"]), ("0.5.11-rocm720", []), ("0.5.11-cu129", ["mandatory"])],
)
def test_sglang_pads_experts_on_amd(tag: str, expected: list[str]) -> None:
    assert levels(fp8_block_multiple, f"sglang {tag}", f"{EXPERTS} --tp-size 8") == expected
    dense = f"{DENSE} --tp-size 16"
    assert levels(fp8_block_multiple, f"sglang {tag}", dense) == ["mandatory"]


def test_all_layers_that_are_cut_are_told_together() -> None:
    line = "deepseek-ai/DeepSeek-V3 --tp-size 32"
    assert told(fp8_block_multiple, "sglang 0.5.23", line) == [
        (
            "gives its ranks parts of FP8 blocks, but each rank needs a multiple of 128: "
            "feed-forward layer 18432 ÷ 32 = 576, expert feed-forward layer 2048 ÷ 32 = 64. Set "
            "tensor to 16"
        )
    ]


def test_a_release_that_is_not_stated_makes_advice() -> None:
    (line,) = told(fp8_block_multiple, "vllm", f"{EXPERTS} -tp 8")
    assert "(checked against vLLM " in line
    for command in (f"{EXPERTS} -tp 8", f"{DENSE} -tp 16"):
        assert levels(fp8_block_multiple, "vllm", command) == ["advisory"]


def test_layers_that_moe_options_of_sglang_leave_whole_are_right() -> None:
    model = "deepseek-ai/DeepSeek-V3"  # dense layers of 18432, experts of 2048
    wide = f"{model} --tp-size 32 --ep-size 32"
    assert levels(fp8_block_multiple, "sglang 0.5.23", wide) == ["mandatory"]
    assert told(fp8_block_multiple, "sglang 0.5.23", f"{wide} --moe-dense-tp-size 1") == []
    split = f"{model} --tp-size 32 --moe-dense-tp-size 1 --moe-dp-size 2 --attn-cp-size 2"
    assert told(fp8_block_multiple, "sglang 0.5.23", split) == []
