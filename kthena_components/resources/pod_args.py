"""The args types about the pods of an engine, besides its command line."""

from typing import NotRequired, TypedDict

import pulumi


class ResourcesArgs(TypedDict):
    """What each pod of an engine requests. Stated amounts are also its limits; defaults are not."""

    gpus_per_pod: NotRequired[int]
    """GPUs in one pod. Default 1. Multiplied by the pods of the engine it must equal the
    parallelism.
    """
    gpu_resource: NotRequired[str]
    """Extended resource that counts the GPUs. Default nvidia.com/gpu."""
    cpu: NotRequired[str]
    """Processors, as a Kubernetes quantity: 125 or 500m. Default: one for each process of the
    engine, 2 and one per GPU. Source: vLLM's docs/configuration/optimization.md.
    """
    memory: NotRequired[str]
    """Memory, as a Kubernetes quantity: 1124Gi. Default: 4Gi, 4Gi per GPU, and the pod's part of
    the weights, if the model is known. /dev/shm counts into it.
    """
    ephemeral_storage: NotRequired[str]
    """Local disk, as a Kubernetes quantity. Default: none stated."""
    shm: NotRequired[str]
    """Maximum size of /dev/shm, as a Kubernetes quantity. Default: 2Gi per GPU, at least 2Gi. NCCL
    inside a pod needs a few gibibytes."""


class CacheArgs(TypedDict):
    """Where the pods keep the weights of the model: exactly one of claim, host_path and size.

    It is mounted into the engine, and HF_HOME names it.
    """

    claim: NotRequired[pulumi.Input[str]]
    """Name of a PersistentVolumeClaim in the serving's namespace. Several pods need one that is
    ReadWriteMany or ReadOnlyMany. Default: none."""
    host_path: NotRequired[str]
    """Folder of each node, such as a local disk. It stays when the pods are deleted. The engine
    then runs as root, because only root may write there. Default: none."""
    size: NotRequired[str]
    """Size of a volume of each pod, as a Kubernetes quantity. It is deleted with the pod. Default:
    none."""
    mount_path: NotRequired[str]
    """Path in the engine's container. Default /var/cache/huggingface."""
    download: NotRequired[bool]
    """Whether an init container downloads the model before the engine starts. Its time does not
    count into startup_seconds. Default false: the engine downloads it."""


class RdmaArgs(TypedDict):
    """RDMA devices of each pod. Its engine gets the capability IPC_LOCK, and runs as root."""

    resource: str
    """Extended resource of the device plugin, such as rdma/hca or vpc.amazonaws.com/efa."""
    count: NotRequired[int]
    """Devices of each pod. Default 1."""


class NetworkArgs(TypedDict):
    """The network between the pods of an engine."""

    interface: NotRequired[str]
    """Network interface: NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME. Default: NCCL's choice."""
    rdma: NotRequired[RdmaArgs]
    """RDMA devices. Default: none."""
    hca: NotRequired[str]
    """RDMA adapters that NCCL uses, NCCL_IB_HCA. Default: NCCL's choice."""
