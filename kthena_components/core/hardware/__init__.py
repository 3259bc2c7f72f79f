"""GPUs and their machines: their memory, names, and the GPU that a pod's placement states.

Rules that compare memory are in `core/rules`.
"""

from kthena_components.core.hardware.gpu_table import (
    PRODUCT_KEYS,
    Gpu,
    Instance,
    find_gpu,
    find_instance,
    gpu_of,
    gpu_of_label,
    known_gpus,
    known_instances,
    node_label,
    short_name,
)
from kthena_components.core.hardware.pod_gpu import (
    NO_CHOICE,
    GpuChoice,
    GpuFacts,
    OtherGpu,
    is_counted_by,
    largest_gpu,
    parse_choice,
    parted_chips,
    stated_gpu,
    usable_memory,
)

__all__ = [
    "NO_CHOICE",
    "PRODUCT_KEYS",
    "Gpu",
    "GpuChoice",
    "GpuFacts",
    "Instance",
    "OtherGpu",
    "find_gpu",
    "find_instance",
    "gpu_of",
    "gpu_of_label",
    "is_counted_by",
    "known_gpus",
    "known_instances",
    "largest_gpu",
    "node_label",
    "parse_choice",
    "parted_chips",
    "short_name",
    "stated_gpu",
    "usable_memory",
]
