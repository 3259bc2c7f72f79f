"""The tables of GPUs and of cloud instance types, with a source for each row."""

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from kthena_components.core.values.dataclass import dataclass
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
