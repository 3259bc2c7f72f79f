"""The GPUs that a user names for pods whose manifests do not name one."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache, lru_cache
from typing import Any

from kthena_components.core.hardware.gpu_table import Gpu, find_gpu, known_gpus
from kthena_components.core.hardware.placement import GpuFacts
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.unknown import Unknown

_LONGEST = 60
"""Maximum length of a name in a message."""


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
    """Read names of GPUs: `h100` for all pods, `POOL=h100` for those of a node selector's value.

    A text may have several, with commas.
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
                f"'{text[:_LONGEST]}' names no pool before the =: write for example "
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
