"""Reads how many accelerators a container gets, by resources and by claims."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.engines import CommandFacts
from kthena_components.core.facts.claims import ContainerClaims
from kthena_components.core.hardware import GpuFacts
from kthena_components.core.values.blanks import TO_REPLACE
from kthena_components.core.values.caches import cached_by_text
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_accelerator, parse_quantity
from kthena_components.core.values.read import MAX_COUNT, inside, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import (
    MaybeBool,
    MaybeInt,
    MaybeText,
    Unknown,
    is_unresolved,
)

NEURON = "aws.amazon.com/neuron"
"""Begin of the resources of AWS's accelerators: devices and cores."""
_ANY = "accelerators"
"""Placeholder for an unknown resource name."""

_TOOLKIT = "NVIDIA_VISIBLE_DEVICES"
"""The variable in which NVIDIA's device plugin tells the container toolkit which GPUs to mount."""
_NO_GPUS = (None, "", "none", "void")

_SLICE = regex(r"nvidia\.com/mig-(?:[0-9]+c\.)?[0-9]+g\.([0-9]{1,4})gb(?:[.+].*)?")
_SHARED = ".shared"
_GKE = "cloud.google.com/"
_VENDORS = frozenset(
    [
        *("nvidia.com", "amd.com", "intel.com", "habana.ai", "huawei.com", "google.com"),
        *("amazon.com", "rebellions.ai", "furiosa.ai"),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFacts:
    """Accelerators of one resource name in one container."""

    path: str = field(compare=False)
    container: str
    resource: str
    limit: MaybeInt | None
    request: MaybeInt | None
    late: bool = False
    """Whether it is not known yet which resource it is."""
    claim: str = ""
    """What tells devices of a claim from others of the pod; empty for a resource."""
    shared: str = ""
    """The ResourceClaim by which other pods get the same devices, for messages. Empty: none."""
    on_gke: bool = False
    """Whether the pod selects nodes of GKE, whose Autopilot adds a missing limit."""

    @property
    def part(self) -> str:
        """The part of a GPU that one device is, as in `a MIG device`. Empty: a whole GPU."""
        if self.resource.startswith("nvidia.com/mig-"):
            return "a MIG device"
        return "a share of a GPU" if self.resource.endswith(_SHARED) else ""

    @property
    def vendor(self) -> str:
        """The domain of the vendor, such as nvidia.com; empty if the name does not tell it."""
        return _vendor(self.resource)

    @property
    def count(self) -> MaybeInt:
        """Devices that the container gets: the limit, else the request."""
        return next((n for n in (self.limit, self.request) if n is not None), 0)


@cached_by_text
def _vendor(resource: str) -> str:
    domain = ".".join(resource.partition("/")[0].lower().split(".")[-2:])
    return domain if domain in _VENDORS and is_accelerator(resource) else ""


def name_in_pod(container: Mapping[str, Any]) -> str:
    """Return a container's name; `?` if it is unknown."""
    name = container.get("name")
    return name if isinstance(name, str) and not is_unresolved(name) else "?"


def selects_gke(spec: Mapping[str, Any]) -> bool:
    """Return whether a pod selects nodes by a label of GKE."""
    return any(str(label).startswith(_GKE) for label in mapping(spec.get("nodeSelector")))


def read_devices(
    container: Mapping[str, Any], path: str, claims: ContainerClaims, *, on_gke: bool = False
) -> Iterator[DeviceFacts]:
    """Read the accelerators of one container of a pod template, at the path of its resources."""
    name, resources = name_in_pod(container), mapping(container.get("resources"))
    limits, requests = resources.get("limits"), resources.get("requests")
    keys = (str(key) for key in (*mapping(limits), *mapping(requests)))
    named = sorted({key for key in keys if is_accelerator(key)})
    for resource in named:
        yield DeviceFacts(
            path=path,
            container=name,
            resource=resource,
            limit=_devices_in(limits, resource),
            request=_devices_in(requests, resource),
            on_gke=on_gke,
        )
    for each in claims.devices:
        resource, count = each.asked.resource, each.asked.count
        yield DeviceFacts(
            path=f"{path}.claims",
            container=name,
            resource=resource,
            limit=count,
            request=count,
            claim=each.key,
            shared=each.title if each.shared else "",
        )
    unnamed = None
    late = any(map(is_unresolved, (container.get("resources"), limits, requests)))
    if late:
        unnamed = Unknown(f"the resources of container '{name}' are not known yet")
    elif not named and not claims.devices and claims.gap is not None:
        unnamed = claimed(container, claims, "gets devices")
    elif not named and not claims.devices:
        unnamed = _unnamed(resources) or _by_toolkit(container)
    if unnamed is not None:
        yield DeviceFacts(
            path=path, container=name, resource=_ANY, limit=unnamed, request=None, late=late
        )


def claimed(
    container: Mapping[str, Any], claims: ContainerClaims, what: str = "may get more GPUs"
) -> Unknown | None:
    """Explain why a container may get other accelerators than are known: claims; else None."""
    if claims.gap is None:
        return None
    name, because = name_in_pod(container), claims.gap.because
    return Unknown(f"container '{name}' {what} by resource claims, and {because}")


def _by_toolkit(container: Mapping[str, Any]) -> Unknown | None:
    """Report GPUs that a container gets without a request, from NVIDIA's container toolkit."""
    for entry in map(mapping, sequence(container.get("env"))):
        if entry.get("name") == _TOOLKIT and entry.get("value") not in _NO_GPUS:
            name = name_in_pod(container)
            return Unknown(f"container '{name}' gets its GPUs by {_TOOLKIT}, without a request")
    return None


def _unnamed(resources: Mapping[str, Any]) -> Unknown | None:
    """Report what may be accelerators under unknown resource names."""
    keys = (*mapping(resources.get("limits")), *mapping(resources.get("requests")))
    texts = map(str, keys)
    other = next((key for key in texts if "/" in key or TO_REPLACE.fullmatch(key)), None)
    return Unknown(f"it is unknown which devices {other} provides") if other else None


def _devices_in(amounts: object, resource: str) -> MaybeInt | None:
    """Read the amount of an accelerator as a whole number; None if none is stated."""
    amount = amounts if is_unresolved(amounts) else mapping(amounts).get(resource)
    if amount is None:
        return None
    if is_unresolved(amount):
        return Unknown(f"the amount of {resource} is not known yet")
    if resource.startswith(NEURON) and not resource.endswith("core"):
        return Unknown(f"one {resource} has several cores, as many as its kind says")
    read = parse_quantity(amount)
    if read is None or not 0 <= read <= MAX_COUNT or read != read.to_integral_value():
        return Unknown(f"{display(amount)} is not a count of {resource}")
    return int(read)


def hidden_devices(path: str, because: Unknown) -> DeviceFacts:
    """Return the accelerators of containers that are unknown."""
    return DeviceFacts(
        path=path, container="", resource=_ANY, limit=because, request=None, late=True
    )


def sees_more(
    container: Mapping[str, Any], env: Mapping[str, MaybeText], claims: ContainerClaims
) -> Unknown | None:
    """Explain why a container may see other GPUs than those that it requests; else None.

    A container's own variables override those of the device plugin.

    Source: kubernetes pkg/kubelet/kubelet_pods.go GenerateRunContainerOptions;
    NVIDIA/nvidia-container-toolkit, NVIDIA_VISIBLE_DEVICES.
    """
    name = name_in_pod(container)
    if more := claimed(container, claims):
        return more
    privileged = inside(container.get("securityContext"), "privileged")
    if is_unresolved(privileged):
        return Unknown(f"it is not known yet whether container '{name}' is privileged")
    if privileged is True:
        return Unknown(f"container '{name}' is privileged and may see all GPUs of its node")
    listed = container.get("env")
    names = (mapping(item).get("name", item) for item in sequence(listed))
    if is_unresolved(listed) or any(map(is_unresolved, names)):
        return Unknown(f"the variables of container '{name}' are not known yet")
    if env.get(_TOOLKIT) in _NO_GPUS:
        return None
    return Unknown(f"{_TOOLKIT} of container '{name}' may show it other GPUs")


def slices(devices: Iterable[DeviceFacts]) -> GpuFacts | None:
    """Return the memory of MIG devices, rounded up as their names are; None for other devices."""
    names = [device.resource for device in devices]
    sizes = [_SLICE.fullmatch(name) for name in names]
    known = [size for size in sizes if size is not None]
    if not known or len(known) < len(names):
        return None
    largest = max(int(size[1]) for size in known)
    return GpuFacts(name=" or ".join(sorted(set(names))), memory_gib=float(largest))


# Tells whether an engine runs on CPUs, where its ranks use NUMA nodes instead of GPUs.
#
# vLLM and SGLang place one rank of a tensor group on each NUMA node. Source: vllm
# docs/getting_started/installation/cpu.md and vllm/v1/worker/cpu_worker.py; sglang
# docs/platforms/cpu_server.md.


_IMAGE = regex(r"(?:^|[/:_.-])(?:cpu|xeon)(?:[/:_.-]|$)", re.IGNORECASE)
"""Images for CPUs: vllm/vllm-openai-cpu, vllm-cpu-release-repo, lmsysorg/sglang:v0.5.2-xeon."""
_VARIABLE = regex(r"(?:VLLM|SGLANG)_CPU_[A-Z_]+|SGLANG_USE_CPU_ENGINE")
"""Variables that only the engines' workers on CPUs read."""
_TARGET = "VLLM_TARGET_DEVICE"
_DEVICE = "--device"
_LATE = Unknown("the image is not known yet, and may be one for CPUs")


def on_cpus(
    container: Mapping[str, Any], devices: Iterable[DeviceFacts], command: CommandFacts | None
) -> MaybeBool:
    """Return whether the engine in a container runs on CPUs.

    Args:
        devices: Its accelerators: with any, it does not.
        command: Its command line.
    """
    if any(devices) or command is None or command.engine is None:
        return False
    listed = [mapping(item) for item in sequence(container.get("env"))]
    named = {str(item.get("name")): item.get("value") for item in listed}
    image, device = container.get("image"), command.options.get(_DEVICE)
    stated = device == "cpu" or str(named.get(_TARGET)).lower() == "cpu"
    if stated or any(map(_VARIABLE.fullmatch, named)):
        return True
    if is_unresolved(image):
        return _LATE
    return isinstance(image, str) and _IMAGE.search(image) is not None
