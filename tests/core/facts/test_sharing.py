"""Accelerators that a device plugin offers several times per device."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest
from kthena_components.core.facts.context import Context
from kthena_components.core.facts.pod_policies_and_sharing import Sharing
from tests.support.for_each import for_each

SLICES = """
version: v1
sharing:
  timeSlicing:
    resources:
    - name: nvidia.com/gpu
      replicas: 8
"""
RULE = "world-size-equals-gpus"


def config_map(text: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": text}}


def levels(config: object, tensor: int, gpus: int) -> list[str]:
    """Return what is said of a pod's GPUs if a file configures the device plugin."""
    sharing = Sharing()
    sharing.add(config, "plugin.yaml")
    command = ["vllm", "serve", "m", "--tensor-parallel-size", str(tensor)]
    limits = {"limits": {"nvidia.com/gpu": gpus}}
    container = {"name": "e", "image": "vllm/vllm-openai:v0.11.1", "command": command}
    pod = {"spec": {"containers": [{**container, "resources": limits}]}}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    found = check_manifest({**body, "spec": {"template": pod}}, context=Context(sharing=sharing))
    return [f"{f.level}: {f.seen}" for f in found if f.rule == RULE]


@pytest.mark.parametrize(
    "config",
    [
        config_map(SLICES),
        config_map(SLICES.replace("timeSlicing", "mps")),
        {"config": {"default": "x", "map": {"x": SLICES}}},
        {"spec": {"values": {"config": {"map": {"x": SLICES}}}}},
        {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}},
    ],
    ids=["object", "mps", "values", "release", "file"],
)
def test_a_pod_may_request_several_slices_of_one_gpu(config: object) -> None:
    (seen,) = levels(config, 1, 6)
    assert seen.startswith("unknown")
    assert "nvidia.com/gpu may be" in seen
    assert "of fewer devices (plugin.yaml)" in seen


@pytest.mark.parametrize(
    "text",
    [
        SLICES.replace("replicas: 8", "replicas: 1"),
        SLICES.replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"),
        SLICES.replace("replicas: 8", "rename: nvidia.com/gpu.part\n      replicas: 8"),
        SLICES.replace("timeSlicing:", "timeSlicing:\n    renameByDefault: true"),
        "not: [valid timeSlicing: sharing",
    ],
    ids=["one", "another", "renamed", "all-renamed", "broken"],
)
def test_other_configurations_say_nothing_about_it(text: str) -> None:
    (seen,) = levels(config_map(text), 1, 6)
    assert seen.startswith("mandatory")


def test_more_ranks_than_slices_have_no_device_at_all() -> None:
    (seen,) = levels(config_map(SLICES), 8, 4)
    assert seen.startswith("mandatory")


@for_each("value", [[], {}, [{}], "x", 1, None, True])
@for_each("field", ["rename", "name", "replicas", "resources", "timeSlicing"])
def test_no_value_in_a_configuration_makes_it_raise(field: str, value: object) -> None:
    item = {"name": "nvidia.com/gpu", "replicas": 2, field: value}
    part = {"resources": [item], **({field: value} if field == "resources" else {})}
    sharing = Sharing()
    sharing.add({"sharing": {"timeSlicing": value if field == "timeSlicing" else part}}, "a.yaml")
    assert sharing.of(iter(["amd.com/gpu"])) is None
