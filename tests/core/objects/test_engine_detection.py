"""Signs of engines and accelerators in objects whose fields nobody here knows."""

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.objects.engine_detection import may_hold_signs, signs_in
from kthena_components.core.values.quantity import ACCELERATOR
from tests.support.peers import LATE
from tests.support.strategies import json_trees

SERVE = ["sh", "-c", "exec vllm serve m"]
EIGHT = {"limits": {"nvidia.com/gpu": "8"}}


def _said(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [(sign.path, sign.what) for sign in signs_in(body)]


def test_signs_come_in_the_order_of_the_fields() -> None:
    body = {
        "spec": {"b": {"resources": EIGHT}, "a": [{"command": SERVE}], "c": {"NUM_SHARD": 2}},
        "data": "tritonserver --model-repository /m",
    }
    assert _said(body) == [
        ("spec.b", "asks for 8 nvidia.com/gpu"),
        ("spec.a[0].command", "starts vllm serve"),
        ("spec.c.NUM_SHARD", "states NUM_SHARD 2"),
        ("data", "starts tritonserver"),
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {"resources": {"limits": {"nvidia.com/gpu": 1}}},
        {"resources": {"limits": {"cpu": 64, "memory": "8Gi"}}},
        {"image": "vllm/vllm-openai:v0.11.1"},
        {"image": "vllm/vllm-openai:v0.11.1", "args": []},
        {"text": "docs say how to use vllm"},
        {"words": ["vllm", "bench"]},
        {"tensorParallelSize": 1},
        {"tensorParallelSize": None},
        {"parallelism": {"tensor": 1, "pods": 8}},
        {"parallelism": 8, "completions": 8},
        {"image": "example.com/parallel:--tensor-parallel-size=8"},
        {"template": {"metadata": {"annotations": {"note": "vllm serve m"}}}},
        {"enabled": False, "command": SERVE},
        {"mpi": ["-np", "8", "--report-tp"]},
    ],
)
def test_what_is_no_sign(spec: dict[str, Any]) -> None:
    assert _said({"spec": spec}) == []


def test_a_value_that_is_not_known_yet_is_a_sign_only_where_gpus_are_counted() -> None:
    assert _said({"spec": LATE, "data": {"resources": LATE}}) == []
    late = {"resources": {"requests": {"amd.com/gpu": LATE}}}
    assert _said({"spec": late}) == [("spec", "asks for an unknown number of amd.com/gpu")]


INNER = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"resources": EIGHT}}}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(INNER),
        yaml.safe_dump(INNER),
        f"kind: Service\n--- # the second one\n{yaml.safe_dump(INNER)}",
        f"a: |\n  {json.dumps(INNER)}\n  \n",
    ],
)
def test_a_document_in_a_field_is_looked_at(text: str) -> None:
    assert _said({"spec": {"values": text}}) == [("spec.values", "asks for 8 nvidia.com/gpu")]


def test_documents_inside_of_each_other_are_looked_at_to_a_limited_depth() -> None:
    text = json.dumps(INNER)
    for _ in range(300):
        text = "a: |\n" + "".join(f" {line}\n" for line in text.splitlines())

    assert _said({"spec": {"values": text}}) == []


@pytest.mark.parametrize("text", ["a: [\ntp_size: 8", "a: &x\n  tp_size: 8\nb: *x", "- tp_size: 8"])
def test_what_is_no_document_of_fields_is_no_sign(text: str) -> None:
    assert _said({"spec": {"values": f"{text}\n"}}) == []


def test_aliases_are_looked_at_once() -> None:
    shared: Any = {"command": SERVE}
    for _ in range(60):
        shared = {"left": shared, "right": shared}
    assert len(_said({"spec": shared})) == 1


def test_an_object_that_contains_itself_ends() -> None:
    spec: dict[str, Any] = {"command": SERVE}
    spec["again"] = [spec]
    assert _said({"spec": spec}) == [("spec.command", "starts vllm serve")]


@given(json_trees())
def test_anything_is_looked_at(tree: Any) -> None:
    found = _said({"spec": tree})
    assert not found or may_hold_signs(json.dumps(tree))


@given(st.from_regex(ACCELERATOR.pattern, alphabet=st.characters(codec="ascii")))
def test_no_text_with_an_accelerator_is_left_out(resource: str) -> None:
    assert may_hold_signs(resource)


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "ghcr.io/huggingface/tgi-gaudi:2.3.1", "args": ["--model-id", "m"]},
        {"image": "ghcr.io/huggingface/text-generation-inference:3.3.7", "args": ["--port", "80"]},
        {"image": "vllm/vllm-openai:v0.11.1", "args": ["--port", "80"]},
        {"a": "lmdeploy serve api_server m"},
        {"a": "/app/multi-node-serving.sh leader"},
        {"a": ["python3", "-m", "sglang.launch_server"]},
        {"a": ["trtllm-serve", "m"]},
        {"a": ["m", "-tp", "4"]},
        {"a": ["m", "--dp_size", "4"]},
        {"pipelineParallelism": 2},
        {"name": "NUM_SHARD", "value": "2"},
        {"name": "engine.config.tensorParallelSize", "value": "2"},
        {"extraArgs": {"tensor-parallel-size": 2}},
        {"extraArgs": {"--tp-size": "2"}},
        {"extraArgs": "--tensor-parallel-size=2"},
        {"extraArgs": [{"key": "--num-shard", "value": "2"}]},
        {"parallelism": {"tensor": 2}},
        {"values": "args:\n  tpSize: 2\n"},
    ],
)
def test_no_text_with_an_engine_is_left_out(fields: dict[str, Any]) -> None:
    assert _said({"spec": fields})
    assert may_hold_signs(json.dumps(fields))
