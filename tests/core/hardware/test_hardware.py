"""GPUs and instance types by their names, and what a pod's placement states of them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from kthena_components.core.hardware import (
    GpuFacts,
    Instance,
    find_instance,
    known_instances,
    parted_chips,
    stated_gpu,
)
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each
from tests.support.strategies import json_trees, law

LATE = "\ue0007\ue001"
H100 = GpuFacts(name="NVIDIA H100", memory_gib=79.65)
H200 = GpuFacts(name="NVIDIA H200", memory_gib=140.4)
TPU = "cloud.google.com/gke-tpu-accelerator"
PRODUCT, TYPE = "nvidia.com/gpu.product", "node.kubernetes.io/instance-type"


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    """Give a required node affinity of alternative terms."""
    listed = [{"matchExpressions": term} for term in terms]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"affinity": {"nodeAffinity": required}}


def is_in(key: str, *values: Any) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


@for_each("instance", known_instances(), ids=lambda instance: instance.name)
def test_an_instance_type_has_a_source_and_is_found_in_any_case(instance: Instance) -> None:
    assert instance.source.startswith("kaito-project/kaito pkg/sku/")
    assert instance.cloud in {"azure", "aws", "arc"}
    assert find_instance(instance.name.upper()) is instance


SKUS = {
    "Standard_NV36ads_A10_v5": (1, 24),
    "Standard_NC48ads_A100_v4": (2, 160),
    "Standard_NC80adis_H100_v5": (2, 188),
    "Standard_ND96isr_H100_v5": (8, 640),
    "Standard_ND96isr_H200_v5": (8, 1128),
    "p4d.24xlarge": (8, 320),
    "p5en.48xlarge": (8, 1128),
    "g6.12xlarge": (4, 96),
    "g5.48xlarge": (8, 192),
    "inf2.24xlarge": (6, 192),
    "trn1n.32xlarge": (16, 512),
    "Standard_NC32_A16": (2, 32),
}


@pytest.mark.parametrize("name", SKUS)
def test_an_instance_type_has_its_gpus(name: str) -> None:
    found = find_instance(name)
    assert isinstance(found, Instance)
    assert (found.gpus, found.total_gib) == SKUS[name]


STATED = {
    "product": ({"nodeSelector": {PRODUCT: "NVIDIA-H100-80GB-HBM3"}}, H100),
    "shared": ({"nodeSelector": {PRODUCT: "NVIDIA-H100-80GB-HBM3-SHARED"}}, H100),
    "gke": ({"nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h200-141gb"}}, H200),
    "coreweave": ({"nodeSelector": {"gpu.nvidia.com/model": "H200"}}, H200),
    "memory": (
        {"nodeSelector": {"nvidia.com/gpu.memory": "81920"}},
        GpuFacts(name="a GPU of 81920 MiB", memory_gib=80),
    ),
    "instance": (
        {"nodeSelector": {TYPE: "p5.48xlarge"}},
        GpuFacts(name="NVIDIA H100 of p5.48xlarge", memory_gib=79.65),
    ),
    "instance-of-another-maker": (
        {"nodeSelector": {TYPE: "trn1.2xlarge"}},
        GpuFacts(name="AWS Trainium accelerators of trn1.2xlarge", memory_gib=32),
    ),
    "instance-that-kaito-does-not-know": (
        {"nodeSelector": {TYPE: "g6e.12xlarge"}},
        GpuFacts(name="NVIDIA L40S of g6e.12xlarge", memory_gib=44.99),
    ),
    "affinity": (affinity([is_in(PRODUCT, "NVIDIA-H200")]), H200),
    "several-values": (
        affinity([is_in(PRODUCT, "NVIDIA-H200", "NVIDIA-H100-PCIe")]),
        replace(H200, alone=False),
    ),
    "several-terms": (
        affinity([is_in(PRODUCT, "NVIDIA-H100-PCIe")], [is_in(PRODUCT, "NVIDIA-H200")]),
        replace(H200, alone=False),
    ),
    "one-term-leaves-it-open": (affinity([is_in(PRODUCT, "NVIDIA-H200")], []), None),
    "beside-an-open-term": (
        {"nodeSelector": {PRODUCT: "NVIDIA-H200"}, **affinity([is_in("zone", "a")])},
        H200,
    ),
    "both-must-hold": (
        {"nodeSelector": {PRODUCT: "NVIDIA-H100-PCIe"}, **affinity([is_in(TYPE, "p5e.48xlarge")])},
        H100,
    ),
    "ruled-out": (affinity([{**is_in(PRODUCT, "NVIDIA-H200"), "operator": "NotIn"}]), None),
    "nothing": ({}, None),
    "another-label": ({"nodeSelector": {"disk": "fast"}}, None),
}


@pytest.mark.parametrize("case", STATED)
def test_placement_states_a_gpu(case: str) -> None:
    spec, wanted = STATED[case]
    assert stated_gpu(spec) == wanted


UNKNOWN: dict[str, dict[str, Any]] = {
    "the node selector is not known yet": {"nodeSelector": LATE},
    f"the node label {PRODUCT} is not known yet": {"nodeSelector": {PRODUCT: LATE}},
    "the node affinity is not known yet": {"affinity": LATE},
    "'NVIDIA-Z9' is not in the table of GPUs": {"nodeSelector": {PRODUCT: "NVIDIA-Z9"}},
    "'m9.large' is not in the table of instance types": affinity([is_in(TYPE, "m9.large")]),
    "'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb' is a slice of a GPU": {
        "nodeSelector": {PRODUCT: "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"}
    },
    "'80GB' is not a size in MiB": {"nodeSelector": {"nvidia.com/gpu.memory": "80GB"}},
}


@pytest.mark.parametrize("because", UNKNOWN)
def test_placement_that_cannot_be_read_says_why(because: str) -> None:
    assert stated_gpu(UNKNOWN[because]) == Unknown(because)


def test_one_label_that_is_known_is_enough() -> None:
    spec = {"nodeSelector": {PRODUCT: "NVIDIA-H200", TYPE: "m9.large"}}
    assert stated_gpu(spec) == H200


@pytest.mark.property
@law
@given(json_trees(), json_trees())
def test_any_placement_is_read(tree: Any, inner: Any) -> None:
    nested = {"nodeSelectorTerms": [{"matchExpressions": [is_in(PRODUCT, inner), tree]}, tree]}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    for affine in (tree, {"nodeAffinity": tree}, {"nodeAffinity": {key: tree}}):
        stated_gpu({"nodeSelector": tree, "affinity": affine})
    stated_gpu({"nodeSelector": {PRODUCT: tree}, "affinity": {"nodeAffinity": {key: nested}}})
    stated_gpu({"nodeSelector": {"nvidia.com/gpu.memory": tree, TYPE: inner}})
    stated_gpu({"nodeSelector": {"amd.com/gpu.vram": tree, "accelerator": inner}})


@pytest.mark.parametrize(
    ("spec", "parted"),
    [
        ({"nodeSelector": {TPU: "tpu7x"}}, True),
        (affinity([is_in(TPU, "tpu-v6e-slice", "tpu7x")]), True),
        ({"nodeSelector": {TPU: "tpu-v6e-slice"}}, False),
        ({"nodeSelector": LATE, "affinity": LATE}, False),
        ({"nodeSelector": {PRODUCT: "tpu7x"}}, False),
        ({}, False),
    ],
)
def test_a_chip_of_tpu_v7_is_two_devices(spec: dict[str, Any], parted: bool) -> None:
    assert (parted_chips(spec) is not None) is parted
