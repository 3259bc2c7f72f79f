"""Where pods go that name their GPU: by a label of the nodes, or anywhere, with an annotation."""

from typing import Any

from kthena_components.core.facts.context import GPU
from kthena_components.core.hardware import Gpu, find_gpu, node_label
from kthena_components.core.spec.enums import GpuLabel
from kthena_components.core.spec.serving_spec import RoleSpec


def gpu_selector(role: RoleSpec) -> dict[str, str]:
    """Return the node selector for the GPU of a role; empty if it has none."""
    resources = role.resources
    if resources is None or resources.gpu is None or resources.gpu_label is GpuLabel.NONE:
        return {}
    gpu = find_gpu(resources.gpu)
    label = node_label(gpu, resources.gpu_label) if isinstance(gpu, Gpu) else None
    return dict([label]) if label else {}


def gpu_annotations(role: RoleSpec) -> dict[str, Any]:
    """Return the annotation that names the GPU where no node selector does."""
    resources = role.resources
    if resources is None or resources.gpu is None or resources.gpu_label is not GpuLabel.NONE:
        return {}
    return {GPU: str(resources.gpu)}
