"""The GPUs in a comment are those of all pods, as the rule gpu-budget counts them."""

import json
from typing import Any

import pytest

from kthena_components.cli.review.preview import parse_preview
from kthena_components.cli.review.stack import gpus_of, pairs_of


def pods(limit: object = 8, **more: Any) -> dict[str, Any]:
    asked = {"limits": {"nvidia.com/gpu": limit}}
    container = {"name": "c", "image": "vllm/vllm-openai:v0.11.0", "resources": asked}
    return {"spec": {"containers": [container], **more}}


def counted(kind: str, body: dict[str, Any]) -> str:
    inputs = {"metadata": {"name": "a"}, **body}
    made = {
        "op": "create",
        "urn": f"urn:pulumi:s::p::kubernetes:{kind}::a",
        "new": {"inputs": inputs},
    }
    event = {"sequence": 1, "resourcePreEvent": {"metadata": made}}
    return str(gpus_of(pairs_of(parse_preview("s", json.dumps(event)))))


BESIDE = {"name": "i", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 7}}}
MORE = "plus 1 role with an unknown number"
FOUR = {"parallelism": 4, "template": pods(restartPolicy="Never")}


@pytest.mark.parametrize(
    ("kind", "body", "told"),
    [
        ("apps/v1:Deployment", {"spec": {"replicas": 4, "template": pods()}}, "0 → 32 (+32)"),
        ("batch/v1:Job", {"spec": FOUR}, "0 → 32 (+32)"),
        ("batch/v1:CronJob", {"spec": {"jobTemplate": {"spec": FOUR}}}, "0 → 32 (+32)"),
        ("apps/v1:DaemonSet", {"spec": {"template": pods()}}, f"0, {MORE}"),
        ("core/v1:Pod", pods(1, initContainers=[BESIDE]), "0 → 7 (+7)"),
        (
            "core/v1:Pod",
            pods(1, initContainers=[{**BESIDE, "restartPolicy": "Always"}]),
            "0 → 8 (+8)",
        ),
        ("core/v1:PodTemplate", {"template": pods()}, "0"),
    ],
)  # fmt: skip
def test_all_pods_of_an_object_are_counted(kind: str, body: dict[str, Any], told: str) -> None:
    assert counted(kind, body) == told
