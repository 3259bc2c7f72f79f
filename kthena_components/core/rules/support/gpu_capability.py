"""The compute capability of older GPUs, for rules about what engines require of one."""

from kthena_components.core.facts.pod import PodFacts
from kthena_components.core.hardware import GpuFacts

Capability = tuple[int, int]
_BELOW_8: dict[str, Capability] = {
    "NVIDIA T4": (7, 5),
    "NVIDIA V100 16GB": (7, 0),
    "NVIDIA V100 32GB": (7, 0),
}
"""The compute capability of the GPUs below 8.0, by their names in the table of GPUs.

Source: NVIDIA's list of CUDA GPU compute capabilities.
"""


def old_gpu(pod: PodFacts) -> tuple[str, Capability] | None:
    """Return the name and the capability of the one kind of GPU of a pod, if it is below 8.0."""
    gpu = pod.gpu
    if not pod.asks_for_gpus or not pod.has_cuda:
        return None
    name = gpu.name.partition(" of ")[0] if isinstance(gpu, GpuFacts) and gpu.alone else ""
    return (name, _BELOW_8[name]) if name in _BELOW_8 else None


def shown(capability: Capability) -> str:
    """Write a capability as NVIDIA does: 7.5."""
    return ".".join(map(str, capability))
