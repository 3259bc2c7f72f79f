"""Reads NIMServices, alone or in a NIMPipeline: a NIM on one pod, or a stage on each of several.

Source: NVIDIA/k8s-nim-operator v3.1 api/apps/v1alpha1/nimservice_types.go (GetLWSSize) and
nimpipeline_types.go, internal/controller/platform/standalone/nimservice.go (addGPUResources).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.values.read import (
    count_or_unknown,
    is_name,
    mapping,
    name_of,
    sequence,
    unknown_in,
)
from kthena_components.core.values.unknown import MaybeInt, Unknown

GROUP, SERVICE, PIPELINE = "apps.nvidia.com", "NIMService", "NIMPipeline"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nim:
    """One NIM."""

    path: str
    """Path of its spec, in the object."""
    name: str
    fields: Mapping[str, Any]
    tensor: MaybeInt | None
    """Tensor size of a NIM on several nodes. None: it is on one, and the NIM chooses."""
    stages: MaybeInt
    """Pods of one replica, each of which runs a pipeline stage."""

    @property
    def replicas(self) -> MaybeInt:
        """Return its replicas; with autoscaling, the least."""
        hpa = mapping(mapping(self.fields.get("scale")).get("hpa"))
        stated = hpa.get("minReplicas") if hpa else self.fields.get("replicas")
        return count_or_unknown(stated, "replicas", 1)

    @property
    def gpus(self) -> object:
        """Return the GPUs of a pod as stated, or else as the operator adds them.

        None: as many as the tensor size of the NIM's profile.
        """
        resources = mapping(self.fields.get("resources"))
        for key in ("limits", "requests"):
            stated = mapping(resources.get(key)).get(GPU)
            if stated is not None:
                return stated
        if sequence(self.fields.get("draResources")):
            return Unknown("its pods get devices by draResources")
        return self.tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Nims:
    """A NIMService, or the NIMServices of a NIMPipeline."""

    object: Object
    services: tuple[Nim, ...]


def read_nims(found: Object) -> Nims:
    """Read the NIMs, whatever the object contains."""
    if found.kind != PIPELINE:
        return Nims(object=found, services=(_nim("spec", found.spec, name_of(found.body)),))
    listed = [mapping(item) for item in sequence(found.spec.get("services"))]
    return Nims(
        object=found,
        services=tuple(
            _nim(f"spec.services[{index}].spec", mapping(item.get("spec")), item.get("name"))
            for index, item in enumerate(listed)
            if item.get("enabled") is not False
        ),
    )


def _nim(path: str, fields: Mapping[str, Any], name: object) -> Nim:
    sizes = mapping(mapping(fields.get("multiNode")).get("parallelism"))
    gap = unknown_in(fields.get("multiNode"))
    stages: MaybeInt = gap or count_or_unknown(sizes.get("pipeline"), "pipeline", 1) or 1
    tensor: MaybeInt = gap or count_or_unknown(sizes.get("tensor"), "tensor", 1) or 1
    several = fields.get("multiNode") is not None
    return Nim(
        path=path,
        name=name if is_name(name) else "?",
        fields=fields,
        tensor=tensor if several else None,
        stages=stages if several else 1,
    )
