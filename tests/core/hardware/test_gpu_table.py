"""The table of GPUs: what each is found by, how much memory its driver reports, who asks for it."""

import re
from collections import Counter

import pytest

from kthena_components.core.hardware import (
    Gpu,
    GpuFacts,
    Instance,
    gpu_of,
    gpu_of_label,
    known_gpus,
    known_instances,
    stated_gpu,
)
from kthena_components.core.values.quantity import is_accelerator
from kthena_components.core.values.unknown import Unknown
from tests.support.for_each import for_each

NVIDIA, AMD = "nvidia.com/gpu", "amd.com/gpu"

# Label, GB by which it is sold, GiB that its driver reports, resource.
SOLD = [
    ("Tesla-T4", 16, 15, NVIDIA),
    ("TESLA-T4", 16, 15, NVIDIA),
    ("nvidia-tesla-t4", 16, 15, NVIDIA),
    ("t4", 16, 15, NVIDIA),
    ("Tesla-V100-SXM2-16GB", 16, 16, NVIDIA),
    ("Tesla-V100-PCIE-16GB", 16, 16, NVIDIA),
    ("nvidia-tesla-v100", 16, 16, NVIDIA),
    ("Tesla-V100-SXM2-32GB", 32, 32, NVIDIA),
    ("Tesla-V100-PCIE-32GB", 32, 32, NVIDIA),
    ("NVIDIA-A2", 16, 15, NVIDIA),
    ("NVIDIA-A16", 16, 15, NVIDIA),
    ("NVIDIA-A10", 24, 22.49, NVIDIA),
    ("NVIDIA-A10G", 24, 22.49, NVIDIA),
    ("NVIDIA-L4", 24, 22.49, NVIDIA),
    ("nvidia-l4", 24, 22.49, NVIDIA),
    ("NVIDIA-A30", 24, 24, NVIDIA),
    ("NVIDIA-L40", 48, 47.99, NVIDIA),
    ("NVIDIA-L40S", 48, 44.99, NVIDIA),
    ("NVIDIA-L20", 48, 44.99, NVIDIA),
    ("NVIDIA-RTX-6000-Ada-Generation", 48, 47.99, NVIDIA),
    ("NVIDIA-A40", 48, 44.99, NVIDIA),
    ("NVIDIA-RTX-A6000", 48, 47.99, NVIDIA),
    ("NVIDIA-GeForce-RTX-4090", 24, 23.99, NVIDIA),
    ("NVIDIA-GeForce-RTX-5090", 32, 31.84, NVIDIA),
    ("Tesla-V100-SXM3-32GB", 32, 32, NVIDIA),
    ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 96, 95.59, NVIDIA),
    ("NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition", 96, 95.59, NVIDIA),
    ("NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition", 96, 95.59, NVIDIA),
    ("nvidia-rtx-pro-6000", 96, 95.59, NVIDIA),
    ("A100-SXM4-40GB", 40, 40, NVIDIA),
    ("nvidia-tesla-a100", 40, 40, NVIDIA),
    ("NVIDIA-A100-SXM4-80GB", 80, 80, NVIDIA),
    ("NVIDIA-A800-SXM4-40GB", 40, 40, NVIDIA),
    ("NVIDIA-A800-40GB-Active", 40, 40, NVIDIA),
    ("NVIDIA-A800-SXM4-80GB", 80, 80, NVIDIA),
    ("NVIDIA-A800-80GB-PCIe", 80, 80, NVIDIA),
    ("NVIDIA-H100-80GB-HBM3", 80, 79.65, NVIDIA),
    ("nvidia-h100-80gb", 80, 79.65, NVIDIA),
    ("NVIDIA-H100-NVL", 94, 93.58, NVIDIA),
    ("NVIDIA-H800", 80, 79.65, NVIDIA),
    ("NVIDIA-H20", 96, 95.58, NVIDIA),
    ("NVIDIA-H20-3e", 141, 140.4, NVIDIA),
    ("NVIDIA-H200", 141, 140.4, NVIDIA),
    ("NVIDIA-GH200-480GB", 96, 95.58, NVIDIA),
    ("NVIDIA-GH200-120GB", 96, 95.58, NVIDIA),
    ("GH200_480GB", 96, 95.58, NVIDIA),
    ("NVIDIA-GH200-144G-HBM3e", 144, 143.39, NVIDIA),
    ("NVIDIA-GB10", 128, 121.69, NVIDIA),
    ("NVIDIA-B200", 180, 179.06, NVIDIA),
    ("NVIDIA-GB200", 186, 185.03, NVIDIA),
    ("NVIDIA-B300-SXM6-AC", 288, 268.59, NVIDIA),
    ("NVIDIA-GB300", 288, 277.55, NVIDIA),
    ("AMD_Instinct_MI300X_OAM", 192, 191.98, AMD),
    ("AMD_Instinct_MI300X_VF", 192, 191.98, AMD),
    ("74a1", 192, 191.98, AMD),
    ("AMD_Instinct_MI325_OAM", 256, 255.98, AMD),
    ("74a5", 256, 255.98, AMD),
    ("AMD_Instinct_MI355_OAM", 288, 287.98, AMD),
    ("75a3", 288, 287.98, AMD),
    ("huawei-Ascend910", 64, 64, "huawei.com/Ascend910"),
    ("910B3", 64, 64, "huawei.com/Ascend910"),
    ("910B4-1", 64, 64, "huawei.com/Ascend910"),
    ("910B4", 32, 32, "huawei.com/Ascend910"),
    ("NVIDIA-GeForce-RTX-3090", 24, 24, NVIDIA),
    ("NVIDIA-GeForce-RTX-4080", 16, 15.99, NVIDIA),
    ("AMD_Instinct_MI210", 64, 63.98, AMD),
    ("AMD_Instinct_MI250X_MI250", 64, 63.98, AMD),
    ("74a0", 128, 128, AMD),
    ("75a0", 288, 287.98, AMD),
    ("tpu-v4-podslice", 32, 30.75, "google.com/tpu"),
    ("tpu-v5p-slice", 96, 95.74, "google.com/tpu"),
    ("tpu7x", 96, 94.75, "google.com/tpu"),
    ("trainium2", 96, 96, "aws.amazon.com/neuron"),
    ("inferentia2", 32, 32, "aws.amazon.com/neuron"),
    ("tpu-v5-lite-podslice", 16, 15.75, "google.com/tpu"),
    ("tpu-v5-lite-device", 16, 15.75, "google.com/tpu"),
    ("tpu-v6e-slice", 32, 31.25, "google.com/tpu"),
    ("NVIDIA-RTX-A4000", 16, 15.99, NVIDIA),
    ("NVIDIA-RTX-A4500", 20, 19.99, NVIDIA),
    ("NVIDIA-RTX-A5000", 24, 23.99, NVIDIA),
    ("NVIDIA-RTX-A5500", 24, 23.99, NVIDIA),
    ("NVIDIA-RTX-4000-Ada-Generation", 20, 19.99, NVIDIA),
    ("NVIDIA-RTX-5000-Ada-Generation", 32, 31.99, NVIDIA),
    ("NVIDIA-RTX-PRO-4000-Blackwell", 24, 23.89, NVIDIA),
    ("NVIDIA-RTX-PRO-4500-Blackwell-Server-Edition", 32, 31.86, NVIDIA),
    ("NVIDIA-RTX-PRO-5000-Blackwell", 48, 47.79, NVIDIA),
    ("NVIDIA-GeForce-RTX-5080", 16, 15.92, NVIDIA),
    ("NVIDIA-GeForce-RTX-5070-Ti", 16, 15.92, NVIDIA),
]


@for_each(("label", "sold", "memory", "resource"), SOLD)
def test_a_label_finds_the_memory_that_the_driver_reports(
    label: str, sold: float, memory: float, resource: str
) -> None:
    gpu = gpu_of_label(label)
    assert isinstance(gpu, Gpu)
    assert (gpu.nominal_gb, gpu.memory_gib) == (sold, memory)
    assert gpu.resources[0] == resource


@for_each("gpu", known_gpus(), ids=lambda gpu: gpu.name)
def test_a_gpu_has_a_source_and_is_found_by_each_of_its_labels(gpu: Gpu) -> None:
    assert "/" in gpu.source
    for label in gpu.labels:
        assert gpu_of_label(label) is gpu is gpu_of_label(label.upper())
        assert gpu_of_label(label.lower()) is gpu


@for_each("gpu", known_gpus(), ids=lambda gpu: gpu.name)
def test_a_driver_reports_nearly_all_memory_and_never_more(gpu: Gpu) -> None:
    assert 0.9 * gpu.nominal_gb <= gpu.memory_gib <= gpu.nominal_gb


@for_each("gpu", known_gpus(), ids=lambda gpu: gpu.name)
def test_the_memory_is_the_most_that_the_source_states(gpu: Gpu) -> None:
    stated = [int(number) / 1024 for number in re.findall(r"(\d+) MiB", gpu.source)]
    stated += [float(number) for number in re.findall(r"(\d+\.\d+) ?G", gpu.source)]
    stated += [float(number) for number in re.findall(r"(?<![.\d])(\d+) GiB", gpu.source)]
    assert gpu.memory_gib == pytest.approx(max(stated), abs=0.01), stated


@for_each("gpu", known_gpus(), ids=lambda gpu: gpu.name)
def test_a_pod_asks_for_a_gpu_by_a_resource_that_counts_as_one(gpu: Gpu) -> None:
    assert gpu.resources
    assert all(map(is_accelerator, gpu.resources))


def test_no_name_and_no_label_stands_for_two_gpus() -> None:
    words = Counter(
        word
        for gpu in known_gpus()
        for word in {gpu.name.casefold(), *(label.casefold() for label in gpu.labels)}
    )
    assert [word for word, times in words.items() if times > 1] == []


@pytest.mark.parametrize("name", ["Intel Gaudi 2", "Intel Gaudi 3"])
def test_gaudi_is_asked_for_by_its_resource_and_no_label_tells_which(name: str) -> None:
    (gpu,) = (gpu for gpu in known_gpus() if gpu.name == name)
    assert gpu.resources == ("habana.ai/gaudi",)
    assert gpu.labels == ()


@pytest.mark.parametrize(
    "label", ["a100", "v100", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "NVIDIA-H100", "gaudi"]
)
def test_a_label_that_leaves_the_memory_open_finds_nothing(label: str) -> None:
    assert isinstance(gpu_of_label(label), Unknown)


# Instance type: the row that its GPU is.
KINDS = {
    "Standard_ND96asr_A100_v4": "NVIDIA A100 40GB",
    "Standard_NC24ads_A100_v4": "NVIDIA A100 80GB",
    "Standard_NC40ads_H100_v5": "NVIDIA H100 NVL",
    "p5.48xlarge": "NVIDIA H100",
    "p5en.48xlarge": "NVIDIA H200",
    "g5.xlarge": "NVIDIA A10G",
    "g6.xlarge": "NVIDIA L4",
    "trn1.2xlarge": "AWS Trainium",
    "g4ad.xlarge": None,
}


@pytest.mark.parametrize("name", KINDS)
def test_an_instance_type_has_a_gpu_of_the_table(name: str) -> None:
    (instance,) = (one for one in known_instances() if one.name == name)
    gpu = gpu_of(instance)
    assert (gpu.name if gpu else None) == KINDS[name]


@for_each("instance", known_instances(), ids=lambda instance: instance.name)
def test_every_instance_type_has_a_gpu_of_the_table(instance: Instance) -> None:
    assert (gpu_of(instance) is not None) == instance.gpu.startswith(("NVIDIA ", "AWS "))


def gpu(name: str) -> GpuFacts:
    """Give what a placement says of a GPU of the table."""
    (row,) = (gpu for gpu in known_gpus() if gpu.name == name)
    return GpuFacts(name=row.name, memory_gib=row.memory_gib)


TPU = "cloud.google.com/gke-tpu-accelerator"
STATED = [
    ({TPU: "tpu-v6e-slice"}, gpu("Google TPU v6e")),
    ({"cloud.google.com/gke-accelerator": "nvidia-gb300"}, gpu("NVIDIA GB300")),
    ({"gpu.nvidia.com/class": "H100_NVLINK_80GB"}, gpu("NVIDIA H100")),
    ({"gpu.nvidia.com/model": "GH200_480GB"}, gpu("NVIDIA GH200 96GB")),
    ({"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, gpu("AMD Instinct MI300X")),
    ({"beta.amd.com/gpu.product-name": "AMD_Instinct_MI355_OAM"}, gpu("AMD Instinct MI355X")),
    ({"amd.com/gpu.device-id": "74a5"}, gpu("AMD Instinct MI325X")),
    ({"beta.amd.com/gpu.device-id": "75a3"}, gpu("AMD Instinct MI355X")),
    # The labeller rounds to whole GiB.
    ({"amd.com/gpu.vram": "192G"}, GpuFacts(name="a GPU of 192G", memory_gib=192.5)),
    ({"beta.amd.com/gpu.vram": "192G"}, GpuFacts(name="a GPU of 192G", memory_gib=192.5)),
    ({"amd.com/gpu.vram": "192G", "amd.com/gpu.device-id": "74a1"}, gpu("AMD Instinct MI300X")),
    ({"karpenter.k8s.aws/instance-gpu-name": "l40s"}, gpu("NVIDIA L40S")),
    ({"accelerator": "huawei-Ascend910"}, gpu("Huawei Ascend 910 64GB")),
    ({"node.kubernetes.io/npu.chip.name": "910B4"}, gpu("Huawei Ascend 910 32GB")),
    (
        {"accelerator": "huawei-Ascend910", "node.kubernetes.io/npu.chip.name": "910B4"},
        gpu("Huawei Ascend 910 32GB"),
    ),
    # Everyone labels nodes with a word such as accelerator.
    ({"accelerator": "fast"}, None),
    ({"accelerator": "h100"}, None),
    (
        {"accelerator": "huawei-Ascend310P"},
        Unknown("'huawei-Ascend310P' is not in the table of GPUs"),
    ),
    ({"accelerator": "fast", TPU: "tpu-v6e-slice"}, gpu("Google TPU v6e")),
    ({"amd.com/gpu.vram": "192"}, Unknown("'192' is not a size such as 192G")),
    ({"amd.com/gpu.vram": "0G"}, Unknown("'0G' is not a size such as 192G")),
    ({"amd.com/gpu.vram": "٣G"}, Unknown("'٣G' is not a size such as 192G")),
    ({"amd.com/gpu.device-id": "ffff"}, Unknown("'ffff' is not in the table of GPUs")),
]


@for_each(("labels", "wanted"), STATED, ids=str)
def test_a_label_of_a_node_states_a_gpu(
    labels: dict[str, str], wanted: GpuFacts | Unknown | None
) -> None:
    assert stated_gpu({"nodeSelector": labels}) == wanted


def test_alternatives_one_of_which_is_somebodys_own_word_state_nothing() -> None:
    term = {"key": "accelerator", "operator": "In", "values": ["huawei-Ascend910", "fast"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [term]}]}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    assert stated_gpu({"affinity": {"nodeAffinity": {key: required}}}) is None
