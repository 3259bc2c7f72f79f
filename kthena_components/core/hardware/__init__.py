"""GPUs and their machines: their memory, and the GPU that a pod's placement states.

Rules that compare memory are in `core/rules`.
"""

from kthena_components.core.hardware.placement import GpuFacts, parted_chips, stated_gpu
from kthena_components.core.hardware.table import (
    Gpu,
    Instance,
    find_gpu,
    find_instance,
    gpu_of,
    known_gpus,
    known_instances,
)

__all__ = [
    "Gpu",
    "GpuFacts",
    "Instance",
    "find_gpu",
    "find_instance",
    "gpu_of",
    "known_gpus",
    "known_instances",
    "parted_chips",
    "stated_gpu",
]
