"""What the rules about models' shapes cannot judge, where they speak, and that they never raise."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from kthena_components.core.models import all_names
from tests.support.models import DEEPSEEK, FP8, QWEN, SGLANG, findings, rules, told
from tests.support.specs import gpu_template
from tests.support.strategies import LATE, law

BY_TENSOR = ("tp-divides-heads", "tp-divides-kv-heads", "ffn-divisible")
NO_TP = "TP has no literal value in this container's env"
UNKNOWN: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "model": ("vllm serve m/m -tp 6", "'m/m' is not in the table of models", BY_TENSOR[:1]),
    "path": (
        "vllm serve /models/Qwen3-32B -tp 6",
        "'/models/Qwen3-32B' is not in the table of models",
        BY_TENSOR[:1],
    ),
    "no-model": ("vllm serve -tp 8", "its command line names no model", BY_TENSOR[:1]),
    "late-model": (
        f"vllm serve {LATE} -tp 8",
        "its value is a Pulumi Output, which is known only after the deployment",
        BY_TENSOR[:1],
    ),
    "tensor": (f"vllm serve {QWEN} -tp $TP", NO_TP, BY_TENSOR),
    "tensor-in-blocks": (f"vllm serve {DEEPSEEK} -tp $TP", NO_TP, (
        "tp-divides-heads", "ffn-divisible", "fp8-block-multiple")),
    "pipeline": (f"vllm serve {QWEN} -pp $TP", NO_TP, ("pp-within-layers",)),
    "expert-size": (f"{SGLANG} {FP8} --tp-size 4 --ep-size $TP", NO_TP, (
        "moe-expert-shape", "ffn-divisible", "fp8-block-multiple")),
    "redundant-experts": (
        f"{SGLANG} {FP8} --tp-size 4 --ep-size 4 --ep-num-redundant-experts $TP",
        NO_TP,
        ("moe-expert-shape",),
    ),
    "exchange": (f"{SGLANG} {FP8} --tp-size 4 --moe-a2a-backend $TP", NO_TP, (
        "moe-expert-shape", "ffn-divisible", "fp8-block-multiple")),
    "attention-data": (
        f"{SGLANG} {QWEN} --tp-size 8 --attn-dp-size 3",
        "tensor 8 is not a multiple of attention data 3",
        BY_TENSOR[:2],
    ),
    "expert-size-that-does-not-divide": (
        f"trtllm-serve {FP8} --tp_size 8 --ep_size 3",
        "tensor 8 is not a multiple of expert parallel 3",
        ("ffn-divisible", "fp8-block-multiple"),
    ),
    "experts": (
        "vllm serve Nemotron-Cascade-2-30B-A3B -tp 8 --enable-expert-parallel",
        "the table of models has no experts of nvidia/Nemotron-Cascade-2-30B-A3B",
        ("moe-expert-shape",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_not_known_is_said_once_for_each_rule_and_stops_nothing(case: str) -> None:
    command, because, named = UNKNOWN[case]
    assert told(command) == [f"was not checked, because {because}. [{rule}]" for rule in named]
    assert {finding.level for finding in findings(command)} == {Level.UNKNOWN}


def test_a_command_line_that_the_engine_refuses_is_not_spoken_of_again() -> None:
    assert told(f"vllm serve {QWEN} -tp8") == []
    assert told(f"vllm serve {QWEN} -tp 0") == []


def test_an_engine_that_cannot_be_read_at_all_is_left_to_the_rule_about_ranks() -> None:
    assert told(f"vllm serve {LATE} {LATE}") == []


def test_another_manifest_says_the_same_in_its_own_coordinates() -> None:
    template = gpu_template(f"vllm serve {QWEN} -tp 6", 6)
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "chat"},
        "spec": {"template": template},
    }
    (finding,) = (f for f in check_manifest(body) if f.rule == "tp-divides-heads")
    assert str(finding) == (
        "spec.template.spec.containers[0].command: engine 'chat' splits 64 attention heads over "
        "tensor 6, which leaves a remainder of 4. Set tensor to 2 and pipeline to 3. "
        "[tp-divides-heads]"
    )


NAMED = re.compile(r"(?:set tensor to|or) (\d+)(?: and pipeline to (\d+))?")


@pytest.mark.property
@law
@given(st.sampled_from(all_names()), st.integers(1, 200), st.integers(1, 200), st.booleans())
def test_the_sizes_that_a_remedy_names_are_right(
    model: str, tensor: int, pipeline: int, expert: bool
) -> None:
    end = "--enable-expert-parallel" if expert else ""
    for finding in findings(f"vllm serve {model} -tp {tensor} -pp {pipeline} {end}"):
        named = finding.remedy if finding.remedy.startswith("set tensor") else ""
        for size, stages in NAMED.findall(named):
            found = rules(f"vllm serve {model} -tp {size} -pp {stages or pipeline} {end}")
            assert finding.rule not in found


@pytest.mark.property
@law
@given(st.text(), st.text(max_size=20), st.sampled_from(["vllm serve", SGLANG, "trtllm-serve"]))
def test_no_command_line_makes_a_rule_raise(model: str, rest: str, program: str) -> None:
    findings(f"{program} '{model}' -tp 6 {rest}")
    findings(f"{program} {QWEN} -tp {rest}")
