"""The GPUs that a user names, for all pods or by a value of node selectors."""

from typing import Any

import pytest
from hypothesis import given

from kthena_components.core.hardware.pod_gpu import (
    GpuChoice,
    GpuFacts,
    OtherGpu,
    largest_gpu,
    parse_choice,
)
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each
from tests.support.strategies import json_trees, law

H100 = GpuFacts(name="NVIDIA H100", memory_gib=79.65)
H200 = GpuFacts(name="NVIDIA H200", memory_gib=140.4)
POOL = {"nodeSelector": {"cloud.google.com/gke-nodepool": "big"}}
NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"

# Options, spec of the pod, its resources, the GPU.
CHOICES: list[tuple[list[str], dict[str, Any], list[str], GpuFacts | Unknown | None]] = [
    (["h100"], {}, [], H100),
    (["h100"], {}, [NVIDIA], H100),
    (["h100"], {}, ["nvidia.com/gpu.shared"], H100),
    (["h100"], {}, ["example.com/gpu"], H100),
    (["h100"], {}, [AMD], OtherGpu("it requests amd.com/gpu, which is no NVIDIA H100")),
    (["h100"], POOL, [NVIDIA], H100),
    (["h100", "big=h200"], POOL, [NVIDIA], H200),
    (["h100, big=h200"], POOL, [NVIDIA], H200),
    (["big=h200", "h100"], POOL, [NVIDIA], H200),
    (["h100", "big=h200"], {"nodeSelector": {"pool": "small"}}, [NVIDIA], H100),
    (["big=h200"], {"nodeSelector": {"pool": "small"}}, [NVIDIA], None),
    (["big=h200"], {}, [NVIDIA], None),
    (["big=h200", "big=NVIDIA-H200"], POOL, [NVIDIA], H200),
    ([], POOL, [NVIDIA], None),
]

WRONG = {
    ("h10",): "'h10' is not in the table of GPUs; near names: h100, h20, a10",
    ("big=h10",): "'h10' is not in the table of GPUs; near names: h100, h20, a10",
    ("a100",): "'a100' may be a100-40gb or a100-80gb",
    ("=h100",): (
        "'=h100' names no pool before the =: write, for example, POOL=h100, or only h100 for all "
        "pods"
    ),
    ("big=",): "'big=' names no GPU: write a name such as h200",
    ("h100", "h200"): "all pods have two GPUs, NVIDIA H100 and NVIDIA H200: keep one of them",
    ("big=h100", "big=h200"): (
        "the pool 'big' has two GPUs, NVIDIA H100 and NVIDIA H200: keep one of them"
    ),
}


@for_each(("options", "spec", "resources", "wanted"), CHOICES, ids=str)
def test_the_named_gpu_is_the_pods(
    options: list[str], spec: dict[str, Any], resources: list[str], wanted: object
) -> None:
    choice = parse_choice(options)
    assert isinstance(choice, GpuChoice)
    assert choice.of(spec, resources) == wanted
    assert bool(choice) == bool(options)


@for_each(("options", "because"), list(WRONG.items()), ids=str)
def test_a_wrong_option_says_why(options: tuple[str, ...], because: str) -> None:
    assert parse_choice(options) == Unknown(because)


@pytest.mark.parametrize(
    ("resources", "name"),
    [
        ([], "AMD Instinct MI350X"),
        ([NVIDIA], "NVIDIA GB300"),
        ([AMD], "AMD Instinct MI350X"),
        (["habana.ai/gaudi"], "Intel Gaudi 3"),
        (["google.com/tpu"], "Google TPU v5p"),
        (["example.com/gpu"], "AMD Instinct MI350X"),
        ([NVIDIA, AMD], "AMD Instinct MI350X"),
    ],
)
def test_the_largest_gpu_is_one_that_the_pod_may_request(resources: list[str], name: str) -> None:
    assert largest_gpu(resources).name == name


@pytest.mark.property
@law
@given(json_trees())
def test_any_placement_is_read(tree: Any) -> None:
    choice = parse_choice(["big=h200", "h100"])
    assert isinstance(choice, GpuChoice)
    assert choice.of({"nodeSelector": tree}, [NVIDIA]) in (H100, H200)
