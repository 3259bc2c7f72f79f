"""Reads a KubeAI Model: an engine, its flags, and a multiple of a resource profile.

Source: substratusai/kubeai v0.21 api/k8s/v1/model_types.go, internal/modelcontroller/
model_controller.go (getModelConfig), charts/kubeai/values*.yaml.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.values.display import display
from kthena_components.core.values.read import count_or_unknown, unknown_in
from kthena_components.core.values.unknown import MaybeInt, Unknown

VLLM = "VLLM"
_NVIDIA = """
    nvidia-gpu-a100-40gb nvidia-gpu-a100-80gb nvidia-gpu-a16 nvidia-gpu-gh200 nvidia-gpu-h100
    nvidia-gpu-l4 nvidia-gpu-l40s nvidia-gpu-rtx4070-8gb nvidia-gpu-rtx4090-24gb nvidia-gpu-t4
"""
_TPU = "google-tpu-v5e-1x1 google-tpu-v5e-2x2 google-tpu-v5e-2x4"
PROFILES: Mapping[str, str | None] = {
    "cpu": None,
    "amd-gpu-mi300x": "amd.com/gpu",
    **dict.fromkeys(_NVIDIA.split(), "nvidia.com/gpu"),
    **dict.fromkeys(_TPU.split(), "google.com/tpu"),
}
"""Resource of the one device of each profile of the chart. Other profiles are the cluster's own."""
_COUNT_DIGITS = 4
"""Most digits of a multiple that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A KubeAI Model."""

    object: Object
    fields: Mapping[str, Any]
    resource: str | None
    """The resource of its devices. None: it has none, or they are unknown."""
    devices: MaybeInt
    """Devices of one pod."""
    replicas: MaybeInt


def read_model(found: Object) -> Model:
    """Read a Model, whatever the object contains."""
    fields = found.spec
    resource, devices = _devices(fields.get("resourceProfile"))
    return Model(
        object=found, fields=fields, resource=resource, devices=devices, replicas=_replicas(fields)
    )


def _devices(profile: object) -> tuple[str | None, MaybeInt]:
    if gap := unknown_in(profile):
        return None, gap
    name, _, times = profile.partition(":") if isinstance(profile, str) else ("", "", "")
    if not (times.isdecimal() and times.isascii() and len(times) <= _COUNT_DIGITS):
        return None, Unknown(f"resourceProfile is {display(profile)}, and not <name>:<count>")
    if name not in PROFILES:
        return None, Unknown(f"the configuration of KubeAI says what profile {display(name)} has")
    return PROFILES[name], 0 if PROFILES[name] is None else int(times)


def _replicas(fields: Mapping[str, Any]) -> MaybeInt:
    """Return the number of pods of a Model if it is fixed."""
    if fields.get("autoscalingDisabled") is True:
        return count_or_unknown(fields.get("replicas"), "replicas", 0)
    least = count_or_unknown(fields.get("minReplicas"), "minReplicas", 0)
    most = fields.get("maxReplicas")
    return least if most is not None and most == least else Unknown("KubeAI scales the Model")
