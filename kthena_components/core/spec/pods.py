"""Inputs about the pods of an engine, besides its command line: resources, cache and network."""

from kthena_components.core.spec.fields import (
    Count,
    Device,
    ObjectName,
    Path,
    Positive,
    Quantity,
    ResourceName,
    Spec,
)


class ResourcesSpec(Spec):
    """What each pod of an engine requests; stated limits equal requests."""

    gpus_per_pod: Count = 1
    gpu_resource: ResourceName = "nvidia.com/gpu"
    cpu: Quantity | None = None
    memory: Quantity | None = None
    ephemeral_storage: Quantity | None = None
    shm: Quantity | None = None


class CacheSpec(Spec):
    """Where the pods keep the weights of the model: exactly one of claim, host_path and size."""

    claim: ObjectName | None = None
    host_path: Path | None = None
    size: Quantity | None = None
    mount_path: Path = "/var/cache/huggingface"
    download: bool = False


class RdmaSpec(Spec):
    """RDMA devices of each pod."""

    resource: ResourceName
    count: Positive = 1


class NetworkSpec(Spec):
    """The network between the pods of an engine."""

    interface: Device | None = None
    rdma: RdmaSpec | None = None
    hca: Device | None = None
