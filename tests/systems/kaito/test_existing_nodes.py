"""Nodes that exist: KAITO reads their GPUs from the labels of GPU feature discovery."""

from typing import Any

import pytest

from kthena_components.checker.manifest import check_manifest, read_demand
from kthena_components.core.facts.serving import GpuDemand
from kthena_components.core.hardware import Instance
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kaito.estimator import NO_INSTANCE, node_of
from tests.support.peers import LATE, Manifest
from tests.support.specs import changed

PRODUCT, COUNT = "nvidia.com/gpu.product", "nvidia.com/gpu.count"
H100 = {PRODUCT: "NVIDIA-H100-80GB-HBM3", COUNT: "8"}
PRESET = {
    "name": "meta-llama/Llama-3.1-405B-Instruct",
    "presetOptions": {"modelAccessSecret": "hf-token"},
}
WORKSPACE: Manifest = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "Workspace",
    "metadata": {"name": "llama"},
    "resource": {"count": 2, "labelSelector": {"matchLabels": H100}},
    "inference": {"preset": PRESET},
}
SET: Manifest = {
    "apiVersion": "kaito.sh/v1beta1",
    "kind": "InferenceSet",
    "metadata": {"name": "llama"},
    "spec": {
        "replicas": 3,
        "labelSelector": {"matchLabels": H100},
        "template": {"resource": {"instanceType": ""}, "inference": {"preset": PRESET}},
    },
}


@pytest.mark.parametrize(
    ("product", "each"),
    [
        ("NVIDIA-H100-80GB-HBM3", 80),  # 81559 MiB
        ("NVIDIA-L40S", 45),  # 46068 MiB, as KAITO 0.11 counted it on a real cluster
        ("NVIDIA-H200", 140),  # 143771 MiB
    ],
)
def test_the_memory_of_a_gpu_is_rounded_as_kaito_does(product: str, each: int) -> None:
    node = node_of("", {PRODUCT: product, COUNT: "8"})
    assert isinstance(node, Instance)
    assert (node.gpus, node.memory_gib) == (8, each)


@pytest.mark.parametrize(
    ("labels", "because"),
    [
        ({}, NO_INSTANCE.because),
        ({PRODUCT: "NVIDIA-L40S"}, NO_INSTANCE.because),
        ({**H100, COUNT: "0"}, NO_INSTANCE.because),
        ({**H100, COUNT: "9" * 5000}, NO_INSTANCE.because),
        ({**H100, COUNT: 8}, NO_INSTANCE.because),
        ({**H100, PRODUCT: "H1000"}, "'H1000' is not in the table of GPUs"),
    ],
)
def test_labels_that_say_too_little(labels: dict[str, Any], because: str) -> None:
    assert node_of(None, labels) == Unknown(because)


def test_a_label_that_is_not_known_yet() -> None:
    assert isinstance(node_of("", {**H100, PRODUCT: LATE}), Unknown)


def told(body: Manifest, changes: dict[str, Any] | None = None) -> list[str]:
    """Say what the rules report with numbers."""
    found = check_manifest(changed(body, changes))
    return [str(finding) for finding in found if finding.rule == "kaito-capacity"]


def test_too_few_existing_nodes_are_reported() -> None:
    assert told(WORKSPACE) == told(SET) == []
    assert told(WORKSPACE, {"resource.count": 1}) == [
        (
            "resource.count: is 1, but KAITO counts 13 GPUs for the 755.96 GiB of "
            "meta-llama/Llama-3.1-405B-Instruct, and needs 2 nodes of 8 GPUs of 80 GiB. Write 2, "
            "or leave it out, or select nodes with more GPU memory. [kaito-capacity]"
        )
    ]


def test_gpus_of_existing_nodes_that_are_too_small_are_reported_where_they_are_stated() -> None:
    small = {PRODUCT: "NVIDIA-L4", COUNT: "1"}
    (found,) = told(SET, {"spec.labelSelector.matchLabels": small})
    assert found.startswith("spec.labelSelector.matchLabels: makes KAITO start")


def test_the_gpus_of_existing_nodes_are_counted() -> None:
    gpus = frozenset({"nvidia.com/gpu"})
    assert read_demand(WORKSPACE) == GpuDemand(gpus=16, resources=gpus)
    assert read_demand(SET) == GpuDemand(gpus=48, resources=gpus)
