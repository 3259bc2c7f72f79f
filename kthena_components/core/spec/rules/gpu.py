"""Rules about the GPU that a role names, and the resource by which its pods request it."""

from collections.abc import Iterator

from kthena_components.core.findings import Finding
from kthena_components.core.hardware import (
    Gpu,
    GpuFacts,
    find_gpu,
    is_counted_by,
    known_gpus,
    node_label,
    stated_gpu,
)
from kthena_components.core.remedies import either, remove, write
from kthena_components.core.spec.enums import GpuLabel
from kthena_components.core.spec.serving_spec import ResourcesSpec, RoleSpec
from kthena_components.core.values.display import display

_RULE = "gpu-agrees"


def gpu_agrees(role: RoleSpec) -> Iterator[Finding]:
    """The resource, the label and the overlay of a role fit the GPU that its resources name.

    An overlay may name another product of the same GPU, such as NVIDIA-H100-PCIe for h100.

    Pass: gpu mi300x, gpu_resource amd.com/gpu; gpu h100, and an overlay with a node selector for
    NVIDIA-H100-PCIe.
    Fail: gpu mi300x, gpu_resource nvidia.com/gpu; gpu mi300x, gpu_label gke; gpu_label gke without
    a gpu; gpu h100, and an overlay with a node selector for NVIDIA-L4.
    Level: mandatory.
    Source: this package: the rules about memory would compare with one GPU, and the pods get
    another one.
    """
    resources = role.resources or ResourcesSpec()
    gpu = find_gpu(resources.gpu) if resources.gpu else None
    if not isinstance(gpu, Gpu):
        if "gpu_label" in resources.model_fields_set:
            yield Finding(
                path="resources.gpu_label",
                seen=f"is {resources.gpu_label}, but resources.gpu names no GPU",
                remedy=either(remove(), "name the GPU in resources.gpu"),
                rule=_RULE,
            )
        return
    if not is_counted_by(resources.gpu_resource, gpu):
        yield Finding(
            path="resources.gpu_resource",
            seen=f"is {resources.gpu_resource}, but resources.gpu is {resources.gpu}, which pods "
            f"request as {gpu.resources[0]}",
            remedy=write(gpu.resources[0]),
            rule=_RULE,
        )
    label = resources.gpu_label
    if label is not GpuLabel.NONE and node_label(gpu, label) is None:
        yield Finding(
            path="resources.gpu_label",
            seen=f"is {label}, but no such label for {resources.gpu} is known",
            remedy=either(write("none"), "name the nodes by a node selector in overlay"),
            rule=_RULE,
        )
    yield from _overlay(role, gpu)


def _overlay(role: RoleSpec, gpu: Gpu) -> Iterator[Finding]:
    """Report an overlay whose node selector or affinity requires a GPU with other memory."""
    spec = (role.overlay or {}).get("spec") or {}
    for field in ("nodeSelector", "affinity"):
        other = stated_gpu({field: spec[field]}) if spec.get(field) else None
        if isinstance(other, GpuFacts) and other.memory_gib != gpu.memory_gib:
            yield Finding(
                path=f"overlay.spec.{field}",
                seen=f"requires {other.name} with {other.memory_gib:g} GiB, but resources.gpu is "
                f"{gpu.name} with {gpu.memory_gib:g} GiB",
                remedy=either(remove(), "write the same GPU in resources.gpu"),
                rule=_RULE,
            )


def gpu_resource(role: RoleSpec) -> Iterator[Finding]:
    """The resource of a known GPU has its vendor's whole domain: nvidia.com/gpu, not nvidia/gpu.

    Pass: nvidia.com/gpu; acme.example/gpu.
    Fail: gpu_resource nvidia/gpu.
    Level: mandatory.
    Source: Kubernetes documentation, Device Plugins: a plugin registers vendor-domain/resourcetype.
    """
    stated = role.resources.gpu_resource if role.resources else ""
    known = {name.replace(".com/", "/"): name for gpu in known_gpus() for name in gpu.resources}
    if known.get(stated, stated) != stated:
        yield Finding(
            path="resources.gpu_resource",
            seen=f"is {display(stated)}, which no node offers: the vendor's domain is not complete",
            remedy=write(known[stated]),
            rule="gpu-resource",
        )
