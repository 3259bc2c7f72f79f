"""sglang-layout: sizes on one SGLang command line that do not fit each other."""

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.pod_template import read_pod
from kthena_components.core.facts.serving import EngineFacts, ServingFacts
from kthena_components.core.findings import Level, run_rule
from kthena_components.core.rules.registry import MODEL_RULES
from kthena_components.core.rules.sglang_layout import sglang_layout
from kthena_components.core.rules.tp_heads_ffn_pp_layers_moe import tp_divides_heads
from tests.support.for_each import for_each
from tests.support.specs import changed
from tests.support.startup import IMAGES, LAUNCH, levels, pod, told
from tests.support.strategies import LATE

NEWEST = "sglang 0.5.23"
TAKEN = [
    (NEWEST, "--dp-size 8"),
    (NEWEST, "--tp-size 16 --nnodes 2"),
    (NEWEST, "--tp-size 8 --attn-dp-size 4"),
    (NEWEST, "--tp-size 8 --attn-dp-size 2 --attn-cp-size 4"),
    (NEWEST, "--tp-size 8 --dp-size 2 --attn-cp-size 8"),
    (NEWEST, "--tp-size 8 --moe-dp-size 2 --ep-size 4 --attn-cp-size 2"),
    ("sglang 0.5.10", "--tp-size 8 --moe-dp-size 2 --ep-size 4"),
    ("sglang 0.5.10", "--tp-size 8 --pp-size 2 --attn-cp-size 2"),
    (NEWEST, "--tp-size 8 --moe-dense-tp-size 8"),
    ("sglang 0.4.6", "--tp-size 8 --moe-dense-tp-size 1"),
    (NEWEST, "--tp-size 8 --dwdp-size 8"),
    (NEWEST, "--pp-size 2 --speculative-algorithm EAGLE --disaggregation-mode prefill"),
    (NEWEST, "--pp-size 2 --speculative-algorithm DSPARK --disaggregation-mode prefill"),
    (NEWEST, "--tp-size 6 --nnodes 4 --elastic-ep-join-mode scale"),
]


@pytest.mark.parametrize(("release", "flags"), TAKEN)
def test_sizes_that_sglang_takes_are_right(release: str, flags: str) -> None:
    assert told(sglang_layout, release, f"m {flags}") == []


SIZES = {
    "nodes": (
        NEWEST,
        "--tp-size 6 --nnodes 4",
        (
            "has tensor 6 × pipeline 1 = 6 ranks, which do not spread evenly over --nnodes 4. Make "
            "tensor × pipeline a multiple of 4, or change --nnodes"
        ),
    ),
    "copies": (
        NEWEST,
        "--tp-size 8 --dp-size 2 --nnodes 2",
        (
            "has data 2 over --nnodes 2, and SGLang supports copies within one node only. Write "
            "--dp-size 1 and run more engines, or use --attn-dp-size"
        ),
    ),
    "attention": (
        NEWEST,
        "--tp-size 8 --attn-dp-size 3",
        "has attention data 3, which does not divide tensor 8. Write --attn-dp-size 2",
    ),
    "old-attention": (
        "sglang 0.5.21",
        "--tp-size 8 --dp-size 3 --enable-dp-attention",
        "has attention data 3, which does not divide tensor 8. Write --dp-size 2",
    ),
    "new-attention": (
        "sglang 0.5.22",
        "--tp-size 8 --dp-size 3 --enable-dp-attention",
        "has attention data 3, which does not divide tensor 8. Write --attn-dp-size 2",
    ),
    "old-copies": (
        "sglang 0.5.21",
        "--tp-size 8 --dp-size 2 --nnodes 2",
        (
            "has data 2 over --nnodes 2, and SGLang supports copies within one node only. Write "
            "--dp-size 1 and run more engines, or use --enable-dp-attention"
        ),
    ),
    "both": (
        NEWEST,
        "--tp-size 4 --dp-size 2 --attn-dp-size 2",
        (
            "has both data 2 and attention data 2, and SGLang accepts only one of them. Remove "
            "--dp-size or --attn-dp-size"
        ),
    ),
    "context": (
        "sglang 0.5.9",
        "--tp-size 8 --attn-cp-size 3",
        "has attention context 3, which does not divide tensor 8. Write --attn-cp-size 2",
    ),
    "context-and-data": (
        NEWEST,
        "--tp-size 8 --attn-dp-size 4 --attn-cp-size 4",
        (
            "has attention data 4 × attention context 4 = 16, which does not divide tensor 8. "
            "Write --attn-cp-size 2"
        ),
    ),
    "context-and-copies": (
        "sglang 0.5.21",
        "--tp-size 8 --dp-size 2 --attn-cp-size 8",
        (
            "has data 2 × attention context 8 = 16, which does not divide tensor 8. Write "
            "--attn-cp-size 4"
        ),
    ),
    "context-and-stages": (
        "sglang 0.5.9",
        "--tp-size 8 --pp-size 2 --attn-cp-size 2",
        (
            "has attention context 2 with pipeline 2, and SGLang 0.5.9 accepts only one of them. "
            "Write --pp-size 1"
        ),
    ),
    "moe-data": (
        "sglang 0.5.10",
        "--tp-size 8 --moe-dp-size 2 --ep-size 2",
        "has MoE data 2 × expert parallel 2 = 4, which is not tensor 8. Change --moe-dp-size",
    ),
    "moe-data-and-stages": (
        "sglang 0.5.10",
        "--tp-size 8 --moe-dp-size 2 --pp-size 2",
        "has MoE data 2 with pipeline 2, and SGLang accepts only one of them. Write --pp-size 1",
    ),
    "moe-data-alone": (
        "sglang 0.5.11",
        "--tp-size 8 --moe-dp-size 2 --ep-size 4",
        (
            "has MoE data 2 with attention context 1, which must be equal. Write --attn-cp-size "
            "2, or --moe-dp-size 1"
        ),
    ),
    "dense": (
        NEWEST,
        "--tp-size 8 --moe-dense-tp-size 4",
        (
            "has --moe-dense-tp-size 4, and SGLang 0.5.23 accepts 1 or 8. Write "
            "--moe-dense-tp-size 1 or 8"
        ),
    ),
    "dense-as-tensor": (
        "sglang 0.5.12",
        "--tp-size 8 --moe-dense-tp-size 8",
        "has --moe-dense-tp-size 8, and SGLang 0.5.12 accepts 1. Write --moe-dense-tp-size 1",
    ),
    "dwdp": (
        "sglang 0.5.17",
        "--tp-size 8 --dwdp-size 4",
        (
            "has --dwdp-size 4 with tensor 8, and SGLang requires them to be equal. "
            "Write --dwdp-size 8"
        ),
    ),
    "dwdp-balanced": (
        NEWEST,
        "--tp-size 8 --dwdp-size 8 --enable-eplb",
        (
            "has --dwdp-size 8 with --enable-eplb, and SGLang accepts only one of them. "
            "Remove one of them"
        ),
    ),
    "drafting": (
        "sglang 0.5.20",
        "--pp-size 2 --speculative-algorithm EAGLE --disaggregation-mode prefill",
        (
            "drafts tokens (EAGLE) over pipeline 2, and SGLang 0.5.20 accepts only one of them. "
            "Write --pp-size 1, or do not draft"
        ),
    ),
    "drafting-otherwise": (
        "sglang 0.5.21",
        "--pp-size 2 --speculative-algorithm NGRAM",
        (
            "drafts tokens (NGRAM) over pipeline 2, and SGLang 0.5.21 supports only EAGLE there. "
            "Write --pp-size 1, or draft with EAGLE"
        ),
    ),
    "drafting-everywhere": (
        "sglang 0.5.21",
        "--pp-size 2 --speculative-algorithm EAGLE",
        (
            "drafts tokens (EAGLE) over pipeline 2, which SGLang supports on prefill nodes, or "
            "with SGLANG_ENABLE_PP_SPEC=1. Write --pp-size 1, or set that"
        ),
    ),
    "drafting-on-decode-nodes": (
        NEWEST,
        "--pp-size 2 --speculative-algorithm NEXTN --disaggregation-mode decode",
        (
            "drafts tokens (NEXTN) over pipeline 2, which SGLang supports on prefill nodes. Write "
            "--pp-size 1"
        ),
    ),
    "drafting-on-prefill-nodes-only": (
        NEWEST,
        "--pp-size 2 --speculative-algorithm DSPARK",
        (
            "drafts tokens (DSPARK) over pipeline 2, which SGLang supports on prefill nodes. Write "
            "--pp-size 1"
        ),
    ),
}


@for_each(("release", "flags", "message"), SIZES.values(), ids=SIZES)
def test_sizes_that_sglang_refuses_are_refused(release: str, flags: str, message: str) -> None:
    assert told(sglang_layout, release, f"m {flags}") == [message]
    assert levels(sglang_layout, release, f"m {flags}") == ["mandatory"]


@pytest.mark.parametrize(
    ("release", "flags"),
    [
        ("sglang", "--pp-size 2 --speculative-algorithm EAGLE"),
        ("sglang", "--tp-size 8 --moe-dense-tp-size 4"),
        ("sglang", "--tp-size 8 --moe-dp-size 2 --ep-size 4"),
    ],
    ids=["drafting", "dense", "moe-data"],
)
def test_what_a_release_decides_is_worth_a_look(release: str, flags: str) -> None:
    assert levels(sglang_layout, release, f"m {flags}") == ["advisory"]


EVERYWHERE = "drafts tokens (EAGLE) over pipeline 2 with SGLANG_ENABLE_PP_SPEC, which SGLang does"


@pytest.mark.parametrize(
    ("value", "flags", "messages"),
    [
        ("1", "EAGLE", []),
        ("yes", "EAGLE", []),
        ("0", "EAGLE --disaggregation-mode prefill", []),
        ("1", "EAGLE --disaggregation-mode prefill", [f"{EVERYWHERE} not accept with --disagg"]),
        ("1", "EAGLE --tp-size 8 --attn-dp-size 8", [f"{EVERYWHERE} not accept with attention d"]),
        ("0", "EAGLE", ["drafts tokens (EAGLE) over pipeline 2, which SGLang supports on prefill"]),
        (LATE, "EAGLE", ["was not checked, because "]),
    ],
)
def test_a_variable_lets_all_stages_draft(value: str, flags: str, messages: list[str]) -> None:
    line = f"{LAUNCH['sglang']} m --pp-size 2 --speculative-algorithm {flags}"
    template = pod(line, f"{IMAGES['sglang']}:v0.5.23")
    env = [{"name": "SGLANG_ENABLE_PP_SPEC", "value": value}]
    entry = read_pod(changed(template, {"spec.containers[0].env": env}), "t", command_path="here")
    engine = EngineFacts(path="e", name="e", pods=1, replicas=1, entry=entry, worker=None)
    found = [*run_rule(sglang_layout, ServingFacts(path="", name="s", engines=(engine,)))]
    assert len(found) == len(messages)
    for finding, message in zip(found, messages, strict=True):
        assert str(finding).removeprefix("here: engine 'e' ").startswith(message)


def test_ranks_that_are_not_the_gpus_are_refused_for_that_alone() -> None:
    line = "m --tp-size 1 --pp-size 3 --nnodes 2"
    assert told(sglang_layout, NEWEST, line, pods=2) == []
    assert len(told(sglang_layout, NEWEST, line)) == 1


def test_a_size_that_is_not_known_is_told_once() -> None:
    (line,) = told(sglang_layout, NEWEST, f"m --tp-size 8 --attn-dp-size {LATE}", pods=1)
    assert line.startswith("was not checked, because its value is a Pulumi Output")


def test_a_manifest_of_anyone_is_checked() -> None:
    command = "python3 -m sglang.launch_server --model-path m --tp-size 8 --attn-dp-size 3"
    template = pod(command, f"{IMAGES['sglang']}:v0.5.23")
    template = changed(template, {"spec.restartPolicy": "Never"})
    body = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}
    found = [(f.rule, f.level) for f in check_manifest(body) if f.rule not in MODEL_RULES]
    assert found == [("sglang-layout", Level.MANDATORY)]


def test_attention_context_takes_ranks_from_the_attention_heads() -> None:
    model = "Qwen/Qwen3-32B"  # 64 heads
    assert told(tp_divides_heads, NEWEST, f"{model} --tp-size 96 --attn-cp-size 3") == []
    (line,) = told(
        tp_divides_heads, NEWEST, f"{model} --tp-size 24 --attn-dp-size 2 --attn-cp-size 4"
    )
    assert line.startswith(
        "splits 64 attention heads over tensor 24 ÷ attention data 2 ÷ attention context 4 = 3, "
        "which leaves a remainder of 1"
    )
