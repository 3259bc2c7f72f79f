"""expert-balance: what vLLM and SGLang want of an engine that moves its experts."""

import pytest

from kthena_components.core.findings import Level
from kthena_components.core.rules.expert_balance import expert_balance
from tests.support.startup import checked, levels, told
from tests.support.strategies import LATE

EP = "--enable-expert-parallel"
TAKEN = [
    ("vllm 0.33.0", f"m --enable-eplb {EP} -tp 8"),
    ("vllm 0.9.2", "m --enable-eplb -tp 8"),
    ("vllm 0.26.0", f"m --enable-eplb {EP} -pcp 2"),
    ("vllm 0.33.0", "m --eplb-config.num_redundant_experts 0"),
    ("vllm 0.33.0", f"m --enable-eplb {EP} -dp 2 --enable-elastic-ep -dpn 0"),
    ("sglang 0.5.23", "m --tp-size 8 --ep-size 8 --enable-eplb"),
    ("sglang 0.5.23", "m --tp-size 8 --moe-a2a-backend deepep --enable-eplb"),
    ("sglang 0.4.10", "m --tp-size 8 --enable-eplb"),
    ("sglang 0.5.23", "m --tp-size 8 --enable-eplb --elastic-ep-join-mode scale"),
]


@pytest.mark.parametrize(("release", "line"), TAKEN)
def test_experts_that_can_move_are_right(release: str, line: str) -> None:
    assert told(expert_balance, release, line) == []


REFUSED = {
    "no-expert-parallel": (
        "vllm 0.10.0",
        "m --enable-eplb -tp 8",
        (
            "balances experts (--enable-eplb) without expert parallelism. Add "
            "--enable-expert-parallel, or remove --enable-eplb"
        ),
    ),
    "one-rank": (
        "vllm 0.33.0",
        f"m --enable-eplb {EP} -pp 2",
        "balances experts (--enable-eplb) over one rank: tensor 1 and data 1. Remove --enable-eplb",
    ),
    "prefill-context-does-not-count": (
        "vllm 0.25.1",
        f"m --enable-eplb {EP} -pcp 2",
        "balances experts (--enable-eplb) over one rank: tensor 1 and data 1. Remove --enable-eplb",
    ),
    "redundant": (
        "vllm 0.33.0",
        f"m {EP} -tp 8 --eplb-config.num_redundant_experts 32",
        (
            "has 32 redundant experts, and vLLM supports them with --enable-eplb only. Add "
            "--enable-eplb, or remove them"
        ),
    ),
    "redundant-as-json": (
        "vllm 0.12.0",
        """m -tp 8 --eplb-config '{"num_redundant_experts": 8}'""",
        (
            "has 8 redundant experts, and vLLM supports them with --enable-eplb only. Add "
            "--enable-eplb and --enable-expert-parallel, or remove them"
        ),
    ),
    "redundant-by-its-own-option": (
        "vllm 0.11.2",
        "m -tp 8 --num-redundant-experts 8 --eplb-config.num_redundant_experts 0",
        (
            "has 8 redundant experts, and vLLM supports them with --enable-eplb only. Add "
            "--enable-eplb and --enable-expert-parallel, or remove them"
        ),
    ),
    "elastic": (
        "vllm 0.17.0",
        f"m {EP} -tp 8 --enable-elastic-ep",
        (
            "has elastic expert parallelism, which vLLM supports with --enable-eplb only. Add "
            "--enable-eplb, or remove --enable-elastic-ep"
        ),
    ),
    "elastic-stages": (
        "vllm 0.33.0",
        f"m {EP} -tp 8 -pp 2 --enable-eplb --enable-elastic-ep",
        (
            "has elastic expert parallelism with pipeline 2, and it supports one stage. Write "
            "--pipeline-parallel-size 1"
        ),
    ),
    "elastic-from-outside": (
        "vllm 0.32.0",
        f"m {EP} -dp 2 -dpn 0 --enable-eplb --enable-elastic-ep",
        (
            "has elastic expert parallelism and is balanced externally, and vLLM 0.32.0 accepts "
            "only one of them. Remove --data-parallel-external-lb, or use vLLM 0.33 or later"
        ),
    ),
    "elastic-most": (
        "vllm 0.30.0",
        f"m {EP} -dp 4 --enable-eplb --enable-elastic-ep --elastic-ep-max-dp-size 2",
        (
            "has data 4, and grows to 2 at most (--elastic-ep-max-dp-size). Write "
            "--elastic-ep-max-dp-size 4 or more"
        ),
    ),
    "sglang": (
        "sglang 0.5.1",
        "m --tp-size 8 --enable-eplb",
        (
            "balances experts (--enable-eplb) over one rank. Write --ep-size and the ranks that "
            "share the experts, or remove --enable-eplb"
        ),
    ),
}


@pytest.mark.parametrize(("release", "line", "message"), REFUSED.values(), ids=REFUSED)
def test_experts_that_cannot_move_are_refused(release: str, line: str, message: str) -> None:
    assert told(expert_balance, release, line) == [message]
    assert levels(expert_balance, release, line) == ["mandatory"]


def test_a_release_that_is_not_stated_makes_advice_of_what_differs() -> None:
    assert levels(expert_balance, "vllm", "m --enable-eplb -tp 8") == ["advisory"]


def test_a_size_that_is_not_known_is_told() -> None:
    line = f"m --tp-size 8 --enable-eplb --ep-size {LATE}"
    (finding,) = checked(expert_balance, "sglang 0.5.23", line)
    assert finding.level is Level.UNKNOWN


def test_a_size_that_the_ranks_depend_on_is_told_by_their_rule() -> None:
    assert told(expert_balance, "vllm 0.33.0", f"m --enable-eplb {EP} -tp {LATE}") == []


@pytest.mark.parametrize("switch", ["--enable-ep-moe", "--enable-deepep-moe"])
@pytest.mark.parametrize("release", ["sglang 0.5.4", "sglang 0.5.23", "sglang"])
def test_a_switch_that_spreads_experts_over_the_tensor_group_is_no_single_rank(
    release: str, switch: str
) -> None:
    assert told(expert_balance, release, f"m --tp-size 8 --enable-eplb {switch}") == []
