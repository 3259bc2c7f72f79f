"""A GPU is found by what people call it: names, labels, instance types, resources."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kthena_components.core.hardware import known_gpus, known_instances
from kthena_components.core.hardware.gpu_table import (
    Gpu,
    Machine,
    find_gpu,
    known_machines,
    short_name,
)
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each
from tests.support.strategies import law

NAMES = {
    "h200": "NVIDIA H200",
    "H200": "NVIDIA H200",
    "NVIDIA H200": "NVIDIA H200",
    " nvidia_h200 ": "NVIDIA H200",
    "NVIDIA-H100-80GB-HBM3": "NVIDIA H100",
    "NVIDIA-H100-80GB-HBM3-SHARED": "NVIDIA H100",
    "nvidia-tesla-a100": "NVIDIA A100 40GB",
    "a100-80gb": "NVIDIA A100 80GB",
    "a10": "NVIDIA A10",
    "rtx4090": "NVIDIA GeForce RTX 4090",
    "RTX 3090": "NVIDIA GeForce RTX 3090",
    "l40s-48gb": "NVIDIA L40S",
    "gaudi2": "Intel Gaudi 2",
    "740c": "AMD Instinct MI250",
    "v5e": "Google TPU v5e",
    "tpu7x": "Google TPU v7",
    "trainium": "AWS Trainium",
    # Systems of AIConfigurator.
    "h100_sxm": "NVIDIA H100",
    "h200_sxm": "NVIDIA H200",
    "b200_sxm": "NVIDIA B200",
    "b300_sxm": "NVIDIA B300",
    "a100_sxm": "NVIDIA A100 80GB",
    "gb200": "NVIDIA GB200",
    "l40s": "NVIDIA L40S",
    "rtx_pro_6000_server": "NVIDIA RTX PRO 6000",
    # Instance types.
    "a3-ultragpu-8g": "NVIDIA H200",
    "p5.48xlarge": "NVIDIA H100",
    "standard_nd96isr_h100_v5": "NVIDIA H100",
    "Standard_NC40ads_H100_v5": "NVIDIA H100 NVL",
    "trn1.2xlarge": "AWS Trainium",
    "BM.GPU.MI300X.8": "AMD Instinct MI300X",
    # A resource that only one GPU has.
    "huawei.com/Ascend910B3": "Huawei Ascend 910 64GB",
}

REASONS = {
    "a100": "'a100' may be a100-40gb or a100-80gb",
    "NVIDIA-V100": "'NVIDIA-V100' may be v100-16gb or v100-32gb",
    "habana.ai/gaudi": "'habana.ai/gaudi' may be gaudi-2 or gaudi-3",
    "h10": "'h10' is not in the table of GPUs; near names: h100, h20, a10",
    "p5.48xlrge": "'p5.48xlrge' is not in the table of GPUs; "
    "near names: p5.48xlarge, p5e.48xlarge, p5.4xlarge",
    "zzzz": "'zzzz' is not in the table of GPUs",
    "": "'' is not in the table of GPUs",
    "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb": "'NVIDIA-A100-SXM4-40GB-MIG-1g.5gb' is a slice of a GPU",
}


@for_each(("name", "wanted"), list(NAMES.items()))
def test_a_name_finds_its_gpu(name: str, wanted: str) -> None:
    gpu = find_gpu(name)
    assert isinstance(gpu, Gpu), gpu
    assert gpu.name == wanted


@for_each(("name", "because"), list(REASONS.items()))
def test_a_name_without_one_gpu_says_what_it_may_be(name: str, because: str) -> None:
    assert find_gpu(name) == Unknown(because)


def test_a_resource_of_many_gpus_names_a_few() -> None:
    found = find_gpu("nvidia.com/gpu")
    assert isinstance(found, Unknown)
    assert "may be any of" in found.because
    assert "such as t4, v100-16gb, v100-32gb" in found.because


@for_each("gpu", known_gpus(), ids=lambda gpu: gpu.name)
def test_every_name_in_the_table_finds_its_row(gpu: Gpu) -> None:
    for name in (gpu.name, short_name(gpu), *gpu.labels, *gpu.names):
        assert find_gpu(name) is gpu, name
        assert find_gpu(name.upper()) is gpu, name


@for_each("machine", known_machines(), ids=lambda machine: machine.name)
def test_an_instance_type_has_a_gpu_of_the_table_and_a_source(machine: Machine) -> None:
    gpu = find_gpu(machine.name)
    assert isinstance(gpu, Gpu)
    assert gpu.name == machine.gpu
    assert machine.gpus >= 1
    assert "/" in machine.source
    assert machine.cloud in {"aws", "gcp", "azure", "oci"}


def test_no_two_gpus_have_the_same_name_without_makers_and_separators() -> None:
    names: dict[str, set[str]] = {}
    for gpu in known_gpus():
        for name in (gpu.name, short_name(gpu), *gpu.labels, *gpu.names):
            plain = re.sub(r"nvidia|tesla|geforce|amd|instinct|[\s_-]", "", name.casefold())
            names.setdefault(plain, set()).add(gpu.name)
    assert [name for name, gpus in names.items() if len(gpus) > 1] == []


def test_no_instance_type_is_in_both_tables() -> None:
    both = {machine.name.casefold() for machine in known_machines()}
    assert both.isdisjoint(instance.name.casefold() for instance in known_instances())
    assert len(both) == len(known_machines())


@pytest.mark.property
@law
@given(st.text(max_size=80))
def test_any_text_is_looked_up(name: str) -> None:
    assert isinstance(find_gpu(name), Gpu | Unknown)
