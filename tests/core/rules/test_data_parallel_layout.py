"""data-parallel-layout: copies, nodes and load balancers on one vLLM command line.

test_parallel_verdicts.py holds it to what the releases themselves refuse.
"""

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.findings import Level
from kthena_components.core.rules.data_parallel_layout import data_parallel_layout
from kthena_components.core.rules.registry import MODEL_RULES
from tests.support.for_each import for_each
from tests.support.startup import IMAGES, levels, pod, told
from tests.support.strategies import LATE

NEWEST = "vllm 0.33.0"
DENSE, EXPERTS = "Qwen/Qwen3-32B", "deepseek-ai/DeepSeek-V3"
TAKEN = [
    (NEWEST, ""),
    (NEWEST, "-dp 8 -dpl 8"),
    (NEWEST, "-dp 8 -dpl 0"),
    (NEWEST, "-tp 8 -dp 2 -dpe -dpn 0"),
    (NEWEST, "-tp 8 -pp 2 --nnodes 2"),
    (NEWEST, "-tp 2 -dp 8 --nnodes 2"),
    (NEWEST, "-tp 2 -dp 8 -dpl 4 --nnodes 2"),
    (NEWEST, "-tp 16 -dp 2 -dpl 1 --nnodes 4"),
    (NEWEST, "-tp 16 -dp 2 --nnodes 4"),
    # Prefill context counts among the ranks of the nodes.
    ("vllm 0.30.0", "-tp 1 -pcp 16 --nnodes 2"),
    ("vllm 0.26.0", "-tp 8 -pcp 2 --nnodes 2"),
    # Who balances.
    ("vllm 0.14.1", "-dp 4 -dpn 1 -dph"),
    ("vllm 0.14.1", "-dp 4 -dpn 1 -dpr 1"),
    ("vllm 0.11.1", "-dp 2 -dpe --nnodes 2 --node-rank 1"),
    ("vllm 0.30.0", "-dp 2 -dpe --nnodes 2 -dpn 7"),
    (NEWEST, "-dp 8 -dpl 4 -dph"),
    (NEWEST, "-tp 8 -dp 8 -dph --nnodes 4"),
    (NEWEST, "-dp 8 -dpl 4 -dpr 4"),
    (NEWEST, "-dp 8 -dpl 4 -dpm --node-rank 1"),
    ("vllm 0.27.1", "-dp 1 -dpl 1 -dpr 0"),
]


@for_each(("release", "flags"), TAKEN)
def test_sizes_that_fit_are_right(release: str, flags: str) -> None:
    assert told(data_parallel_layout, release, f"m {flags}") == []


COPIES = {
    "local": (
        NEWEST,
        "-dp 4 -dpl 8",
        (
            "has data 4 in all, but 8 in this pod (--data-parallel-size-local). Write "
            "--data-parallel-size-local 4 or less, or --data-parallel-size 8 or more"
        ),
    ),
    "nodes": (
        NEWEST,
        "-tp 2 -pp 3 --nnodes 4",
        (
            "has tensor 2 × pipeline 3 = 6 ranks, which do not spread evenly over --nnodes 4. Make "
            "the ranks a multiple of 4, or change it"
        ),
    ),
    "copies-on-nodes": (
        NEWEST,
        "-tp 2 -dp 6 -dpl 2 --nnodes 4",
        (
            "has tensor 2 × pipeline 1 × data 6 = 12 ranks on --nnodes 4 with data 2 in a node, "
            "and a copy of the model needs a whole number of nodes with equally many of its 2 "
            "ranks. Change --data-parallel-size-local or --nnodes"
        ),
    ),
    "prefill-context-left-out": (
        "vllm 0.29.0",
        "-tp 1 -pcp 16 --nnodes 2",
        (
            "has tensor 1 × pipeline 1 = 1 rank (vLLM 0.29.0 leaves prefill context out), which do "
            "not spread evenly over --nnodes 2. Make the ranks a multiple of 2, or change it"
        ),
    ),
    "ray-on-nodes": (
        NEWEST,
        "-tp 8 -pp 2 --nnodes 2 -dpb ray",
        (
            "has --nnodes 2 with --data-parallel-backend ray, and vLLM connects such nodes without "
            "Ray. Remove --data-parallel-backend, or --nnodes, --node-rank and --master-addr"
        ),
    ),
    "node-rank": (
        NEWEST,
        "-tp 8 -pp 2 --nnodes 2 --node-rank 2",
        "has --node-rank 2, and counts its 2 nodes from 0 to 1. Write a rank below 2",
    ),
}
BALANCE = {
    "one-copy": (
        NEWEST,
        "-tp 8 --data-parallel-external-lb",
        (
            "is balanced externally with data 1, and vLLM requires several copies for that. Write "
            "--data-parallel-size, or remove --data-parallel-external-lb and --data-parallel-rank"
        ),
    ),
    "one-copy-for-each-pod": (
        NEWEST,
        "-tp 8 -dph -dpl 1",
        (
            "is balanced externally with data 1, and vLLM requires several copies for that. Write "
            "--data-parallel-size, or remove --data-parallel-hybrid-lb"
        ),
    ),
    "no-rank": (
        "vllm 0.11.1",
        "-dp 4 -dpe",
        (
            "is balanced externally and has no rank among its copies. Write "
            "--data-parallel-rank, from 0 on"
        ),
    ),
    "several-here": (
        NEWEST,
        "-dp 4 -dpn 0 -dpl 2",
        (
            "is balanced externally with 2 copies in this pod, and vLLM requires one. Write "
            "--data-parallel-size-local 1, or remove it"
        ),
    ),
    "rank": (
        "vllm 0.9.2",
        "-dp 8 -dpn 8",
        (
            "has --data-parallel-rank 8, and its 8 copies are counted from 0 to 7. Write a rank "
            "below 8"
        ),
    ),
    "start-rank": (
        "vllm 0.10.0",
        "-dp 8 -dpl 4 -dpr 8",
        (
            "has --data-parallel-start-rank 8, and its 8 copies are counted from 0 to 7. Write a "
            "rank below 8"
        ),
    ),
    "start-rank-of-one": (
        "vllm 0.28.0",
        "-dp 1 -dpl 1 -dpr 0",
        (
            "has --data-parallel-start-rank 0 with data 1, and vLLM requires several copies for "
            "that. Write --data-parallel-size, or remove --data-parallel-start-rank"
        ),
    ),
    "start-rank-of-a-head": (
        "vllm 0.9.2",
        "-dp 8 -dpl 4 -dpr 4",
        (
            "has --data-parallel-start-rank 4, and vLLM 0.9.2 accepts it with --headless only. Add "
            "--headless, or remove it"
        ),
    ),
    "both": (
        "vllm 0.11.1",
        "-dp 4 -dpe -dph -dpn 0",
        (
            "is balanced by --data-parallel-hybrid-lb and --data-parallel-external-lb, and vLLM "
            "accepts only one of them. Keep one of them"
        ),
    ),
    "rank-and-hybrid": (
        "vllm 0.15.0",
        "-dp 4 -dpn 1 -dph",
        (
            "is balanced by --data-parallel-hybrid-lb and --data-parallel-rank, and vLLM accepts "
            "only one of them. Keep one of them"
        ),
    ),
    "rank-and-start-rank": (
        "vllm 0.15.0",
        "-dp 4 -dpn 1 -dpr 1",
        (
            "has both --data-parallel-rank and --data-parallel-start-rank, and vLLM accepts only "
            "one. Remove --data-parallel-start-rank"
        ),
    ),
    "which-copy": (
        "vllm 0.31.0",
        "-tp 2 -dp 4 -dpe --nnodes 2",
        (
            "has data 4 on --nnodes 2, and a node's rank does not identify its copy. Write "
            "--data-parallel-rank for each"
        ),
    ),
    "hybrid-alone": (
        "vllm 0.10.0",
        "-dp 4 --data-parallel-hybrid-lb",
        (
            "is balanced for each pod (hybrid), and does not state the copies in a pod. Add "
            "--data-parallel-size-local"
        ),
    ),
    "hybrid-headless": (
        NEWEST,
        "-dp 4 -dpl 2 -dph --headless",
        (
            "is balanced for each pod (hybrid), and serves nothing (--headless). Remove "
            "--data-parallel-hybrid-lb or --headless"
        ),
    ),
    "ports-alone": (
        "vllm 0.22.0",
        "-dp 4 -dpm",
        (
            "serves each copy at its own port with no copies in a pod stated. Write "
            "--data-parallel-size-local 2 or more"
        ),
    ),
    "ports-uneven": (
        NEWEST,
        "-dp 8 -dpl 3 -dpm",
        (
            "serves each copy at its own port with data 8, of which 3 are in each pod. Change "
            "--data-parallel-size-local"
        ),
    ),
    "ports-behind-the-last": (
        NEWEST,
        "-dp 8 -dpl 4 -dpm -dpr 6",
        (
            "serves each copy at its own port with 4 copies from rank 6 on, of 8. Write a "
            "smaller --data-parallel-start-rank or --node-rank"
        ),
    ),
}


REFUSED = COPIES | BALANCE


@for_each(("release", "flags", "message"), REFUSED.values(), ids=REFUSED)
def test_sizes_that_do_not_fit_are_refused(release: str, flags: str, message: str) -> None:
    assert told(data_parallel_layout, release, f"m {flags}") == [message]
    assert levels(data_parallel_layout, release, f"m {flags}") == ["mandatory"]


def test_copies_of_a_dense_model_are_not_balanced_from_outside() -> None:
    line = "-tp 8 -dp 2 -dpn 0"
    assert told(data_parallel_layout, "vllm 0.20.2", f"{DENSE} {line}") == []
    assert told(data_parallel_layout, "vllm 0.21.0", f"{EXPERTS} {line}") == []
    assert told(data_parallel_layout, "vllm 0.21.0", f"{DENSE} {line}") == [
        (
            "is balanced externally with data 2, and vLLM 0.21.0 requires a model with experts for "
            "that. Run separate engines, without --data-parallel-size"
        )
    ]
    assert levels(data_parallel_layout, "vllm", f"{DENSE} {line}") == ["advisory"]


def test_nodes_that_are_left_over_are_advice_where_the_release_does_not_look() -> None:
    line = "m -tp 3 -dp 2 -dpl 1 --nnodes 3"
    assert levels(data_parallel_layout, "vllm 0.30.0", line) == ["advisory"]
    assert levels(data_parallel_layout, "vllm 0.31.0", line) == ["mandatory"]


def test_ranks_that_are_not_the_gpus_are_refused_for_that_alone() -> None:
    line = "m -tp 1 -pp 3 --nnodes 2"
    assert told(data_parallel_layout, NEWEST, line, pods=2) == []
    assert len(told(data_parallel_layout, NEWEST, line)) == 1


@pytest.mark.parametrize("flags", [f"-tp 8 -dpl {LATE}", f"-tp 8 --nnodes {LATE}"])
def test_a_size_that_is_not_known_is_told_once(flags: str) -> None:
    (line,) = told(data_parallel_layout, NEWEST, f"m {flags}", pods=1)
    assert line.startswith("was not checked, because its value is a Pulumi Output")


@pytest.mark.parametrize("size", ["-tp", "-dp"])
def test_a_size_that_the_ranks_depend_on_is_told_by_their_rule(size: str) -> None:
    assert told(data_parallel_layout, NEWEST, f"m {size} {LATE} -dpl 1", pods=1) == []


def test_a_manifest_of_anyone_is_checked() -> None:
    template = pod("vllm serve m -tp 8 --data-parallel-external-lb", f"{IMAGES['vllm']}:v0.33.0")
    body = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}
    found = [(f.rule, f.level) for f in check_manifest(body) if f.rule not in MODEL_RULES]
    assert ("data-parallel-layout", Level.MANDATORY) in found
