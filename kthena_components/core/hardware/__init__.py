"""GPUs and the machines that hold them: how much memory there is, and which of them a pod states.

Nothing here judges whether it is enough: that is in `core/rules`.
"""

from kthena_components.core.hardware.placement import GpuFacts, stated_gpu
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
    "stated_gpu",
]
