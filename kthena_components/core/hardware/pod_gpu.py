"""The GPU of a pod: what its node selector and affinity state, or what the user names.

A reader never raises. Preferences and exclusions of a pod state nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, lru_cache
from typing import Any

from kthena_components.core.hardware.gpu_table import (
    Gpu,
    find_gpu,
    find_instance,
    gpu_of,
    gpu_of_label,
    gpu_of_type,
    known_gpus,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import is_map, mapping
from kthena_components.core.values.unknown import Unknown, is_unresolved

_MIB = 1024
_HALF = 0.5
_HUAWEI = "huawei-"
_LONGEST_NUMBER = 9
_TPU = "cloud.google.com/gke-tpu-accelerator"
_PARTED = "tpu7x"
_LONGEST = 60
"""Maximum length of a name in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """The GPU of a pod, as far as its placement states it."""

    name: str
    """Kind of the GPU, or the label that states its memory."""
    memory_gib: float
    """GiB of one GPU; the largest if several kinds are allowed."""
    alone: bool = True
    """Whether no other kind is allowed."""


def _by_label(value: str) -> GpuFacts | Unknown:
    """Return the GPU that the value of a node label names."""
    gpu = gpu_of_label(value)
    return gpu if isinstance(gpu, Unknown) else _facts(gpu)


def _by_huawei(value: str) -> GpuFacts | Unknown | None:
    """Read a label that clusters also use for their own words: unknown words state nothing."""
    return _by_label(value) if value.casefold().startswith(_HUAWEI) else None


def _facts(gpu: Gpu) -> GpuFacts:
    return GpuFacts(name=gpu.name, memory_gib=gpu.memory_gib)


def _by_instance(value: str) -> GpuFacts | Unknown:
    instance = find_instance(value)
    if isinstance(instance, Unknown):
        gpu = gpu_of_type(value)
        return instance if gpu is None else replace(_facts(gpu), name=f"{gpu.name} of {value}")
    gpu = gpu_of(instance)
    memory = instance.memory_gib if gpu is None else gpu.memory_gib
    return GpuFacts(name=f"{instance.gpu} of {instance.name}", memory_gib=memory)


def _by_memory(value: str) -> GpuFacts | Unknown:
    size = _number(value)
    if not size:
        return Unknown(f"'{value[:_LONGEST_NUMBER]}' is not a size in MiB")
    return GpuFacts(name=f"a GPU of {size} MiB", memory_gib=size / _MIB)


def _by_rounded(value: str) -> GpuFacts | Unknown:
    """Read a number of GiB that was rounded: the largest size that rounds to it."""
    size = _number(value.removesuffix("G")) if value.endswith("G") else None
    if not size:
        return Unknown(f"'{value[:_LONGEST_NUMBER]}' is not a size such as 192G")
    return GpuFacts(name=f"a GPU of {size}G", memory_gib=size + _HALF)


def _number(text: str) -> int | None:
    fits = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_NUMBER
    return int(text) if fits else None


_READERS: Mapping[str, Callable[[str], GpuFacts | Unknown | None]] = {
    "nvidia.com/gpu.product": _by_label,
    "nvidia.com/gpu.memory": _by_memory,
    "cloud.google.com/gke-accelerator": _by_label,
    _TPU: _by_label,
    "gpu.nvidia.com/model": _by_label,
    "gpu.nvidia.com/class": _by_label,
    "karpenter.k8s.aws/instance-gpu-name": _by_label,
    "karpenter.k8s.aws/instance-gpu-memory": _by_memory,
    "amd.com/gpu.product-name": _by_label,
    "amd.com/gpu.device-id": _by_label,
    "amd.com/gpu.vram": _by_rounded,
    "beta.amd.com/gpu.product-name": _by_label,
    "beta.amd.com/gpu.device-id": _by_label,
    "beta.amd.com/gpu.vram": _by_rounded,
    "node.kubernetes.io/npu.chip.name": _by_label,
    "accelerator": _by_huawei,
    "node.kubernetes.io/instance-type": _by_instance,
    "beta.kubernetes.io/instance-type": _by_instance,
}
"""Node labels that identify a GPU.

Sources: NVIDIA/k8s-device-plugin docs/gpu-feature-discovery (product; memory in MiB of one GPU);
GKE documentation on GPUs and TPUs (gke-accelerator, gke-tpu-accelerator); CoreWeave documentation
on node labels (gpu.nvidia.com/model, class before); aws/karpenter-provider-aws documentation on
scheduling (instance-gpu-name; instance-gpu-memory, MiB of one GPU); ROCm/k8s-device-plugin
cmd/k8s-node-labeller (product-name, device-id and vram, each with and without beta);
MindCluster's documentation on labels of nodes (npu.chip.name; accelerator, huawei-Ascend910);
kubernetes reference of well-known labels (instance-type).
"""


def stated_gpu(spec: Mapping[str, Any]) -> GpuFacts | Unknown | None:
    """Read the GPU that a pod's spec requires of its node; None if nothing states it.

    Terms of an affinity are alternatives: the result is the GPU with the most memory, and None if
    one term leaves it open. The node selector applies to all terms.
    """
    selector = spec.get("nodeSelector")
    if is_unresolved(selector):
        return Unknown("the node selector is not known yet")
    always = [(key, [value]) for key, value in _map(selector).items() if key in _READERS]
    terms = _terms(spec)
    if not always and not terms:
        return None
    if isinstance(terms, Unknown):
        return _all_of(always) or terms
    found = [_all_of([*always, *term]) for term in terms or [[]]]
    if any(gpu is None for gpu in found):
        return None
    return largest_of([gpu for gpu in found if gpu is not None])


def parted_chips(spec: Mapping[str, Any]) -> Unknown | None:
    """Explain why an engine sees several devices in each accelerator of its pod; else None.

    Source: GKE documentation on TPUs: one google.com/tpu of version 7 has two devices.
    """
    terms = _terms(spec)
    known = [] if isinstance(terms, Unknown) else terms
    stated = [values for term in known for key, values in term if key == _TPU]
    stated.append([_map(spec.get("nodeSelector")).get(_TPU)])
    if all(_PARTED not in values for values in stated):
        return None
    return Unknown("each chip of TPU v7 is two devices for an engine")


_LATE_AFFINITY = Unknown("the node affinity is not known yet")


def _terms(spec: Mapping[str, Any]) -> list[list[tuple[str, Sequence[object]]]] | Unknown:
    """List the node selector terms of a required node affinity; each is a list of expressions."""
    place: object = spec
    for key in ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"):
        place = _map(place).get(key)
        if place is None:
            return []
        if is_unresolved(place):
            return _LATE_AFFINITY
    items = _map(place).get("nodeSelectorTerms")
    if is_unresolved(items) or any(map(is_unresolved, _list(items))):
        return _LATE_AFFINITY
    return [list(_expressions(_map(term))) for term in _list(items)]


def _expressions(term: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[object]]]:
    for item in map(_map, _list(term.get("matchExpressions"))):
        key, values = item.get("key"), item.get("values")
        if isinstance(key, str) and key in _READERS and item.get("operator") == "In":
            yield key, [values] if is_unresolved(values) else _list(values)


def _all_of(stated: Sequence[tuple[str, Sequence[object]]]) -> GpuFacts | Unknown | None:
    """Return the GPU on which several labels agree: the one with the least memory."""
    return least_of(_one_of(key, values) for key, values in stated)


def least_of(found: Iterable[GpuFacts | Unknown | None]) -> GpuFacts | Unknown | None:
    """Return the known GPU with the least memory; else why none is known; None without any."""
    stated = [gpu for gpu in found if gpu is not None]
    known = [gpu for gpu in stated if isinstance(gpu, GpuFacts)]
    if known:
        return min(known, key=lambda gpu: gpu.memory_gib)
    return stated[0] if stated else None


def _one_of(key: str, values: Sequence[object]) -> GpuFacts | Unknown | None:
    if any(map(is_unresolved, values)):
        return Unknown(f"the node label {key} is not known yet")
    texts = [str(v) for v in values if isinstance(v, str) or _is_short(v)]
    return largest_of([_READERS[key](text) for text in texts])


def _is_short(value: object) -> bool:
    return type(value) is int and 0 <= value < 10**_LONGEST_NUMBER


def largest_of(found: Sequence[GpuFacts | Unknown | None]) -> GpuFacts | Unknown | None:
    """Return the GPU with the most memory; None if one is left open."""
    if None in found:
        return None
    unknown = next((gpu for gpu in found if isinstance(gpu, Unknown)), None)
    known = [gpu for gpu in found if isinstance(gpu, GpuFacts)]
    largest = max(known, key=lambda gpu: gpu.memory_gib, default=None)
    if unknown or largest is None:
        return unknown
    return largest if len(set(known)) == 1 else replace(largest, alone=False)


def _map(value: object) -> Mapping[str, Any]:
    return value if is_map(value) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else []


@dataclass(frozen=True, slots=True)
class OtherGpu(Unknown):
    """The GPU of a pod that cannot be the one named for it, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuChoice:
    """A GPU for all pods, and GPUs for those whose node selector has a value."""

    default: Gpu | None = None
    pools: Mapping[str, Gpu] = field(default_factory=dict)
    """GPUs by a value of node selectors, such as the name of a node pool."""

    def __bool__(self) -> bool:
        """Return whether any GPU is named."""
        return self.default is not None or bool(self.pools)

    def smaller_than(self, other: "GpuChoice") -> Iterator[tuple[str, Gpu, Gpu | None]]:
        """Yield the pools whose GPU has less memory than in another choice, with both GPUs.

        '' stands for all other pods. The other GPU is None if that choice names none for them.
        """
        for pool in ("", *sorted({*self.pools, *other.pools})):
            mine, theirs = (choice.pools.get(pool, choice.default) for choice in (self, other))
            if mine is not None and (theirs is None or theirs.memory_gib > mine.memory_gib):
                yield pool, mine, theirs

    def of(self, spec: Mapping[str, Any], resources: Iterable[str]) -> GpuFacts | Unknown | None:
        """Return the GPU of a pod; None if none is named for it.

        Args:
            spec: The spec of the pod, for its node selector.
            resources: The resources by which it requests accelerators.
        """
        values = mapping(spec.get("nodeSelector")).values()
        pools = (self.pools[value] for value in values if _is_pool(value, self.pools))
        gpu = next(pools, self.default)
        if gpu is None:
            return None
        other = next((name for name in resources if not is_counted_by(name, gpu)), None)
        if other is not None:
            return OtherGpu(f"it requests {other}, which is no {gpu.name}")
        return GpuFacts(name=gpu.name, memory_gib=gpu.memory_gib)


NO_CHOICE = GpuChoice()
"""No GPU is named."""


def parse_choice(stated: Iterable[str]) -> GpuChoice | Unknown:
    """Read the words of --gpu: `h100` for all pods, `POOL=h100` for pods of one node pool.

    POOL is a value in the node selector of these pods. A string may have several words, separated
    by commas. Unknown: a word is wrong; its reason says why.
    """
    default: Gpu | None = None
    pools: dict[str, Gpu] = {}
    for text in (part.strip() for each in stated for part in each.split(",")):
        pool, equals, name = text.rpartition("=")
        if not name:
            return Unknown(f"'{text[:_LONGEST]}' names no GPU: write a name such as h200")
        gpu = find_gpu(name)
        if isinstance(gpu, Unknown):
            return gpu
        if equals and not pool:
            return Unknown(
                f"'{text[:_LONGEST]}' names no pool before the =: write, for example, "
                f"POOL={name[:_LONGEST]}, or only {name[:_LONGEST]} for all pods"
            )
        taken = pools.get(pool) if equals else default
        if taken is not None and taken is not gpu:
            whose = f"the pool '{pool[:_LONGEST]}' has" if equals else "all pods have"
            return Unknown(f"{whose} two GPUs, {taken.name} and {gpu.name}: keep one of them")
        if equals:
            pools[pool] = gpu
        else:
            default = gpu
    return GpuChoice(default=default, pools=pools)


def largest_gpu(resources: Iterable[str]) -> GpuFacts:
    """Return the GPU with the most memory that pods may request by some resources."""
    return _largest(tuple(resources))


@lru_cache(maxsize=256)  # most pods request one of a few resources
def _largest(wanted: tuple[str, ...]) -> GpuFacts:
    fit = [gpu for gpu in known_gpus() if all(is_counted_by(name, gpu) for name in wanted)]
    gpu = max(fit or known_gpus(), key=lambda gpu: gpu.memory_gib)
    return GpuFacts(name=gpu.name, memory_gib=gpu.memory_gib)


def _is_pool(value: object, pools: Mapping[str, Gpu]) -> bool:
    return isinstance(value, str) and value in pools


def is_counted_by(resource: str, gpu: Gpu) -> bool:
    """Return whether a resource may count a GPU: it has the maker's domain, or no known one."""
    return _domain(resource) not in _makers() or _domain(resource) in map(_domain, gpu.resources)


@cache
def _makers() -> frozenset[str]:
    """Return the domains of all makers: the table does not change."""
    return frozenset(_domain(name) for row in known_gpus() for name in row.resources)


def _domain(resource: str) -> str:
    return resource.partition("/")[0]


_CUDA, _KEPT, _KEPT_SHARE = ("NVIDIA", "a GPU"), 0.4, 0.0015
"""GPUs whose driver keeps memory, and how much: a base and a share, in GiB."""
_WHOLE, _WHOLE_SHARE = ("NVIDIA A100", "NVIDIA A800"), 0.0045
"""GPUs of which nvidia-smi states the whole memory, so CUDA's total is 79.1 to 79.3 of 80 GiB."""
_GRACE, _OF_HOST = ("GB10", "GH200"), 1.0
"""GPUs of which firmware and host take more, and how much: of GB10, 119.61 to 121.69 GiB are seen,
the middle here; of GH200's 95.58 and 143.39, CUDA reports 94.5 and 142.5."""


def usable_memory(gpu: GpuFacts) -> float:
    """Return the GiB of a GPU that CUDA reports: the driver keeps the rest.

    Ten GPUs of 16 to 180 GiB are within 0.25 GiB of this. ROCm reports the whole memory.
    """
    if not gpu.name.startswith(_CUDA):
        return gpu.memory_gib
    if any(name in gpu.name for name in _GRACE):
        return gpu.memory_gib - _OF_HOST
    share = _WHOLE_SHARE if gpu.name.startswith(_WHOLE) else _KEPT_SHARE
    return gpu.memory_gib - _KEPT - share * gpu.memory_gib
