"""The tables of GPUs and of cloud instance types, and a GPU by anything people call it.

What people call a GPU is a name, a node label, an instance type, a resource of pods, or a system of
AIConfigurator. Readers of node labels are stricter: a label is compared as a whole.
"""

import difflib
import json
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from kthena_components.core.findings import count_of
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

_LONGEST = 60
"""Maximum length of a name in a message."""
_SHARED = "-shared"
"""Suffix of a node's product label if several pods share one GPU in turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One kind of GPU, or of another accelerator."""

    name: str
    nominal_gb: float
    """Nominal GB."""
    memory_gib: float
    """GiB that its driver reports when idle: an engine's memory share refers to it.

    If drivers differ, the largest value that CUDA or nvidia-smi was seen to report, so that no rule
    reports what fits with some driver."""
    labels: tuple[str, ...]
    """Values of node labels that identify it."""
    names: tuple[str, ...]
    """Other names: AIConfigurator's systems, and short ones that people write."""
    resources: tuple[str, ...]
    """Extended resources by which pods request it, the usual one first."""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance type that KAITO knows."""

    name: str
    cloud: str
    """azure, aws or arc."""
    gpu: str
    """Kind of its GPUs, as the source names it."""
    gpus: int
    total_gib: float
    """GiB of all its GPUs together."""
    source: str

    @property
    def memory_gib(self) -> float:
        """Nominal GiB of one GPU, as the source states it; KAITO calculates with it."""
        return self.total_gib / self.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One instance type of a cloud that KAITO does not know."""

    name: str
    cloud: str
    """aws, gcp, azure or oci."""
    gpu: str
    """Name of its GPUs in the table of GPUs."""
    gpus: int
    source: str


def gpu_of_label(label: str) -> Gpu | Unknown:
    """Find a GPU by the value of a node label, ignoring case."""
    folded = label.casefold()
    if "-mig-" in folded:
        return Unknown(f"'{label[:_LONGEST]}' is a slice of a GPU")
    gpu = _gpus_by_label().get(folded.removesuffix(_SHARED))
    return gpu or Unknown(f"'{label[:_LONGEST]}' is not in the table of GPUs")


def find_instance(name: str) -> Instance | Unknown:
    """Find an instance type by its name, ignoring case."""
    instance = _instances_by_name().get(name.casefold())
    return instance or Unknown(f"'{name[:_LONGEST]}' is not in the table of instance types")


def gpu_of(instance: Instance) -> Gpu | None:
    """Find the GPU of an instance type; None if the table has none of its kind and size."""
    return next(
        (
            gpu
            for gpu in known_gpus()
            if gpu.nominal_gb == instance.memory_gib
            and instance.gpu in (gpu.name, gpu.name.rpartition(" ")[0], *gpu.names)
        ),
        None,
    )


@cache
def known_gpus() -> tuple[Gpu, ...]:
    """Return every GPU once."""
    return tuple(
        Gpu(**(row | {key: tuple(row[key]) for key in ("labels", "names", "resources")}))
        for row in _rows("gpus.json")
    )


@cache
def known_instances() -> tuple[Instance, ...]:
    """Return every instance type once."""
    return tuple(Instance(**row) for row in _rows("instances.json"))


@cache
def known_machines() -> tuple[Machine, ...]:
    """Return every instance type that KAITO does not know."""
    return tuple(Machine(**row) for row in _rows("machines.json"))


@cache
def _gpus_by_label() -> Mapping[str, Gpu]:
    return {label.casefold(): gpu for gpu in known_gpus() for label in gpu.labels}


@cache
def _instances_by_name() -> Mapping[str, Instance]:
    return {instance.name.casefold(): instance for instance in known_instances()}


def _rows(name: str) -> list[dict[str, Any]]:
    text = resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
    return [dict(row) for row in json.loads(text)]


_MAKERS = regex(r"nvidia|tesla|geforce|amd|instinct|intel|huawei|google|aws")
_SEPARATORS = regex(r"[\s_-]+")
_SLICE = regex(r"\bmig-|\b[1-7]g\.[0-9]+gb")
"""How a slice by Multi-Instance GPU is named: `nvidia.com/mig-3g.40gb`, `1g.10gb`."""
_NEAR = 3
"""Names in a message at most."""
_PRODUCTS = {
    "NVIDIA-": "nvidia.com/gpu.product",
    "Tesla-": "nvidia.com/gpu.product",
    "AMD_": "amd.com/gpu.product-name",
}
_OF_GKE = {"nvidia-": "cloud.google.com/gke-accelerator"}
_KEYS = {"product": _PRODUCTS, "gke": _OF_GKE}
PRODUCT_KEYS = frozenset(key for keys in _KEYS.values() for key in keys.values())
"""The labels that `node_label` may return."""


def find_gpu(name: str) -> Gpu | Unknown:
    """Find a GPU by a name, label, instance type or resource, ignoring case and separators.

    Examples: `h200`, `NVIDIA-H100-80GB-HBM3`, `h200_sxm`, `a3-ultragpu-8g`, `p5.48xlarge`,
    `huawei.com/Ascend910B4`. If several GPUs have the name, or none has it, the reason names them
    or the nearest names.
    """
    word = name.strip().casefold()
    if _SLICE.search(word):
        return Unknown(f"'{name[:_LONGEST]}' is a slice of a GPU")
    word = word.removesuffix(_SHARED)
    plain = _plain(word)
    found = _by_word().get(word) or _family(plain) or _by_plain_word().get(plain)
    found = found or _requested(word)
    if len(found) == 1:
        return found[0]
    if found:
        return Unknown(f"'{name[:_LONGEST]}' may be {_listed(found)}")
    return Unknown(f"'{name[:_LONGEST]}' is not in the table of GPUs{_near(plain)}")


def short_name(gpu: Gpu) -> str:
    """Return the name that people write, such as `a100-80gb`."""
    return _SEPARATORS.sub("-", _MAKERS.sub("", gpu.name.casefold()).strip())


def node_label(gpu: Gpu, by: str) -> tuple[str, str] | None:
    """Return the key and the value of the label; None if the nodes have none.

    Of several products, the first one in the table of GPUs is the most common one.

    Args:
        by: Who labels the nodes: `product` for GPU feature discovery or AMD's node labeller, `gke`.
    """
    for label in gpu.labels:
        for start, key in _KEYS[by].items():
            if label.startswith(start):
                return key, label
    return None


def _plain(word: str) -> str:
    return _SEPARATORS.sub("", _MAKERS.sub("", word))


def _family(plain: str) -> tuple[Gpu, ...]:
    """Return the GPUs whose names are a family's name with a size of memory or a generation."""
    size = re.compile(re.escape(plain) + r"(?:\d+gb|\d)")
    found = tuple(gpu for gpu in known_gpus() if size.fullmatch(_plain(gpu.name.casefold())))
    return found if plain and len(found) > 1 else ()


def _requested(word: str) -> tuple[Gpu, ...]:
    """Return the GPUs that pods request by a resource."""
    return tuple(gpu for gpu in known_gpus() if word in map(str.casefold, gpu.resources))


def _listed(gpus: tuple[Gpu, ...]) -> str:
    names = [short_name(gpu) for gpu in gpus]
    if len(names) > _NEAR:
        return f"any of {count_of(len(names), 'GPU')}, such as {', '.join(names[:_NEAR])}"
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _near(plain: str) -> str:
    words = {_plain(short_name(gpu)): short_name(gpu) for gpu in known_gpus()}
    words |= {name: name for name in _types()}
    close = difflib.get_close_matches(plain, words, n=_NEAR, cutoff=0.6)
    return f"; near names: {', '.join(words[word] for word in close)}" if close else ""


@cache
def _by_word() -> Mapping[str, tuple[Gpu, ...]]:
    """Return the GPU of each label, name and instance type."""
    found = {name: (gpu,) for name, gpu in _types().items()}
    for gpu in known_gpus():
        for name in (gpu.name, short_name(gpu), *gpu.labels, *gpu.names):
            found[name.casefold()] = (gpu,)
    return found


@cache
def _by_plain_word() -> Mapping[str, tuple[Gpu, ...]]:
    """Return the same words without makers and separators."""
    return {_plain(word): gpus for word, gpus in _by_word().items()}


def gpu_of_type(name: str) -> Gpu | None:
    """Find the GPU of an instance type, ignoring case, whether KAITO knows the type or not."""
    return _types().get(name.casefold())


@cache
def _types() -> Mapping[str, Gpu]:
    """Return the GPU of each instance type."""
    by_name = {gpu.name: gpu for gpu in known_gpus()}
    found = {machine.name.casefold(): by_name[machine.gpu] for machine in known_machines()}
    for instance in known_instances():
        if (gpu := gpu_of(instance)) is not None:
            found[instance.name.casefold()] = gpu
    return found


# The DeviceClasses by which pods claim accelerators, and the resources of the same devices.


MIG = "nvidia.com/mig-"
NVIDIA = "gpu.nvidia.com"
CLASSES: Mapping[str, str] = {
    NVIDIA: "nvidia.com/gpu",
    "mig.nvidia.com": MIG,
    "compute-domain-default-channel.nvidia.com": "",
    "compute-domain-daemon.nvidia.com": "",
    "gpu.amd.com": "amd.com/gpu",
    "gpu.intel.com": "gpu.intel.com/xe",
    "tpu.google.com": "google.com/tpu",
}
"""The classes that drivers install, with the resource by which a device plugin offers the same
devices; empty for devices that are not accelerators.

Source: kubernetes-sigs/dra-driver-nvidia-gpu, ROCm/k8s-gpu-dra-driver,
intel/intel-resource-drivers-for-kubernetes and kubernetes-sigs/dra-driver-google-tpu, their
DeviceClasses.
"""
CLASS_OF: Mapping[str, str] = {
    resource: name for name, resource in CLASSES.items() if resource not in {"", MIG}
}
"""The class of the whole devices that a resource counts."""
