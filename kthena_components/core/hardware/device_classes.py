"""The DeviceClasses by which pods claim accelerators, and the resources of the same devices."""

from collections.abc import Mapping

MIG = "nvidia.com/mig-"
NVIDIA = "gpu.nvidia.com"
CLASSES: Mapping[str, str] = {
    NVIDIA: "nvidia.com/gpu",
    "mig.nvidia.com": MIG,
    "compute-domain-default-channel.nvidia.com": "",
    "compute-domain-daemon.nvidia.com": "",
    "gpu.amd.com": "amd.com/gpu",
    "gpu.intel.com": "gpu.intel.com/xe",
    "tpu.google.com": "google.com/tpu",
}
"""The classes that drivers install, with the resource by which a device plugin offers the same
devices; empty for devices that are no accelerators.

Source: kubernetes-sigs/dra-driver-nvidia-gpu, ROCm/k8s-gpu-dra-driver,
intel/intel-resource-drivers-for-kubernetes and kubernetes-sigs/dra-driver-google-tpu, their
DeviceClasses.
"""
CLASS_OF: Mapping[str, str] = {
    resource: name for name, resource in CLASSES.items() if resource not in {"", MIG}
}
"""The class of the whole devices that a resource counts."""
