"""Sizes on one command line that do not fit each other."""

import pytest

from kthena_components.backends.readers import judge_manifest
from kthena_components.core.checks import Check
from kthena_components.core.checks.layouts import data_parallel_layout
from kthena_components.core.checks.models import MODEL_RULES
from kthena_components.core.checks.sglang_layouts import sglang_layout
from kthena_components.core.facts import EngineFacts, ServingFacts, read_pod
from kthena_components.core.findings import Level
from kthena_components.core.known import MaybeInt, Unknown
from tests.support.specs import gpu_template
from tests.support.strategies import LATE

SGLANG = "python3 -m sglang.launch_server --model-path m"
NOBODY = Unknown("nobody says")


def said(check: Check, command: str, pods: MaybeInt = NOBODY) -> list[str]:
    """Judge an engine of some pods of 8 GPUs."""
    engine = EngineFacts(
        path="e",
        name="e",
        pods=pods,
        replicas=1,
        entry=read_pod(gpu_template(command), "t", command_path="here"),
        worker=None,
    )
    return [str(finding) for finding in check(ServingFacts(path="", name="s", engines=(engine,)))]


@pytest.mark.parametrize(
    "flags",
    [
        "",
        "-dp 8 -dpl 8",
        "-dp 8 -dpl 0",
        "-tp 8 -dcp 8",
        "-tp 8 -dp 2 -dpe -dpn 0",
        "-tp 8 -pp 2 --nnodes 2",
        "-tp 2 -dp 8 --nnodes 2",
        "-tp 2 -dp 8 -dpl 4 --nnodes 2",
        "-tp 16 -dp 2 -dpl 1 --nnodes 4",
        "-tp 16 -dp 2 --nnodes 4",
    ],
)
def test_sizes_that_fit_are_right(flags: str) -> None:
    assert said(data_parallel_layout, f"vllm serve m {flags}") == []


DATA = {
    "local": (
        "-dp 4 -dpl 8",
        (
            "has data 4 in all, but 8 in this pod (--data-parallel-size-local). Write "
            "--data-parallel-size-local 4 or less, or --data-parallel-size 8 or more"
        ),
    ),
    "outside": (
        "-tp 8 --data-parallel-external-lb",
        (
            "is balanced from outside with data 1, and vLLM wants several copies for that. Write "
            "--data-parallel-size, or remove --data-parallel-external-lb and --data-parallel-rank"
        ),
    ),
    "decode-context": (
        "-tp 8 -dcp 3",
        (
            "has decode context 3, which does not divide tensor 8. Write "
            "--decode-context-parallel-size 2"
        ),
    ),
    "wide-context": (
        "-tp 8 -dcp 16",
        (
            "has decode context 16, which does not divide tensor 8. Write "
            "--decode-context-parallel-size 8"
        ),
    ),
    "nodes": (
        "-tp 2 -pp 3 --nnodes 4",
        (
            "has tensor 2 × pipeline 3 = 6 ranks, which do not spread evenly over --nnodes 4. Make "
            "the ranks a multiple of 4, or change it"
        ),
    ),
    "copies-on-nodes": (
        "-tp 2 -dp 6 -dpl 2 --nnodes 4",
        (
            "has tensor 2 × pipeline 1 × data 6 = 12 ranks on --nnodes 4 with data 2 in a node, "
            "and a copy of the model needs a whole number of nodes with equally many of its 2 "
            "ranks. Change --data-parallel-size-local or --nnodes"
        ),
    ),
}


@pytest.mark.parametrize(("flags", "message"), DATA.values(), ids=DATA)
def test_sizes_that_do_not_fit_are_refused(flags: str, message: str) -> None:
    assert said(data_parallel_layout, f"vllm serve m {flags}") == [
        f"here: engine 'e' {message}. [data-parallel-layout]"
    ]


@pytest.mark.parametrize(
    ("check", "command"),
    [
        (data_parallel_layout, "vllm serve m -tp 1 -pp 3 --nnodes 2"),
        (sglang_layout, f"{SGLANG} --tp-size 1 --pp-size 3 --nnodes 2"),
    ],
    ids=["vllm", "sglang"],
)
def test_ranks_that_are_not_the_gpus_are_refused_for_that_alone(check: Check, command: str) -> None:
    assert said(check, command, pods=2) == []
    assert len(said(check, command)) == 1


@pytest.mark.parametrize(
    "flags", ["--dp-size 8", "--tp-size 16 --nnodes 2", "--tp-size 8 --attn-dp-size 4"]
)
def test_sizes_that_sglang_takes_are_right(flags: str) -> None:
    assert said(sglang_layout, f"{SGLANG} {flags}") == []


SIZES = {
    "nodes": (
        "--tp-size 6 --nnodes 4",
        (
            "has tensor 6 × pipeline 1 = 6 ranks, which do not spread evenly over --nnodes 4. Make "
            "tensor × pipeline a multiple of 4, or change --nnodes"
        ),
    ),
    "copies": (
        "--tp-size 8 --dp-size 2 --nnodes 2",
        (
            "has data 2 over --nnodes 2, and SGLang has copies within one node only. Write "
            "--dp-size 1 and run more engines, or use --attn-dp-size"
        ),
    ),
    "attention": (
        "--tp-size 8 --attn-dp-size 3",
        "has attention data 3, which does not divide tensor 8. Write --attn-dp-size 2",
    ),
    "old-attention": (
        "--tp-size 8 --dp-size 3 --enable-dp-attention",
        "has attention data 3, which does not divide tensor 8. Write --attn-dp-size 2",
    ),
    "both": (
        "--tp-size 4 --dp-size 2 --attn-dp-size 2",
        (
            "has both data 2 and attention data 2, and SGLang takes one of them. Remove --dp-size "
            "or --attn-dp-size"
        ),
    ),
}


@pytest.mark.parametrize(("flags", "message"), SIZES.values(), ids=SIZES)
def test_sizes_that_sglang_refuses_are_refused(flags: str, message: str) -> None:
    assert said(sglang_layout, f"{SGLANG} {flags}") == [
        f"here: engine 'e' {message}. [sglang-layout]"
    ]


@pytest.mark.parametrize(
    ("check", "command"),
    [
        (data_parallel_layout, f"vllm serve m -tp 8 -dcp {LATE}"),
        (data_parallel_layout, f"vllm serve m -tp 8 -dpl {LATE}"),
        (data_parallel_layout, f"vllm serve m -tp 8 --nnodes {LATE}"),
        (sglang_layout, f"{SGLANG} --tp-size 8 --attn-dp-size {LATE} --nnodes {LATE}"),
    ],
    ids=["decode-context", "local", "nodes", "attention"],
)
def test_a_size_that_is_not_known_is_told_once(check: Check, command: str) -> None:
    (line,) = said(check, command, pods=1)
    assert "engine 'e' was not checked, because it is an output that only the deployment" in line


@pytest.mark.parametrize("size", ["-tp", "-dp"])
def test_a_size_that_the_ranks_depend_on_is_told_by_their_rule(size: str) -> None:
    assert said(data_parallel_layout, f"vllm serve m {size} {LATE} -dpl 1", pods=1) == []


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("vllm serve m -tp 8 -dcp 3", "data-parallel-layout"),
        (f"{SGLANG} --tp-size 8 --attn-dp-size 3", "sglang-layout"),
    ],
    ids=["vllm", "sglang"],
)
def test_a_manifest_of_anyone_is_judged(command: str, rule: str) -> None:
    body = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": gpu_template(command)}}
    told = [(f.rule, f.level) for f in judge_manifest(body) if f.rule not in MODEL_RULES]
    assert told == [(rule, Level.MANDATORY)]
