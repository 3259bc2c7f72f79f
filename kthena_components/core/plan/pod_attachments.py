"""What is attached to an engine's pods: /dev/shm, the cache of the weights, and the network."""

from dataclasses import field
from typing import Any

from kthena_components.core.plan.production import shared_memory
from kthena_components.core.spec.launch import engine_image
from kthena_components.core.spec.serving_spec import CacheSpec, RoleSpec
from kthena_components.core.values.dataclass import dataclass

_CACHE = "cache"
_DOWNLOAD = (
    "from huggingface_hub import snapshot_download; import sys; "
    "snapshot_download(sys.argv[1], ignore_patterns=['original/**/*'])"
)
"""vLLM leaves out the same files (vllm/config/load.py, ignore_patterns)."""


@dataclass(slots=True)
class Attached:
    """Parts of a pod and of its engine's container."""

    env: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    volumes: list[dict[str, Any]] = field(default_factory=list)
    devices: dict[str, str] = field(default_factory=dict)
    """Extended resources besides the GPUs."""
    capabilities: list[str] = field(default_factory=list)


def attached_to(role: RoleSpec) -> Attached:
    """Return what the pods of a role with an engine have besides it."""
    made = Attached()
    memory = {"medium": "Memory", "sizeLimit": shared_memory(role.resources)}
    made.volumes.append({"name": "dshm", "emptyDir": memory})
    made.mounts.append({"name": "dshm", "mountPath": "/dev/shm"})  # noqa: S108 - NCCL's shared memory
    if role.cache is not None:
        made.volumes.append({"name": _CACHE, **_source(role.cache)})
        made.mounts.append({"name": _CACHE, "mountPath": role.cache.mount_path})
        made.env.append({"name": "HF_HOME", "value": role.cache.mount_path})
    _connect(role, made)
    return made


def _source(cache: CacheSpec) -> dict[str, Any]:
    if cache.claim is not None:
        return {"persistentVolumeClaim": {"claimName": cache.claim}}
    if cache.host_path is not None:
        return {"hostPath": {"path": cache.host_path, "type": "DirectoryOrCreate"}}
    return {"emptyDir": {"sizeLimit": cache.size}}


def _connect(role: RoleSpec, made: Attached) -> None:
    """Add the interface and the RDMA devices. Locked memory is what RDMA registers buffers in."""
    network = role.network
    if network is None:
        return
    if network.interface is not None:
        names = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
        made.env += [{"name": name, "value": network.interface} for name in names]
    if network.hca is not None:
        made.env.append({"name": "NCCL_IB_HCA", "value": network.hca})
    if network.rdma is not None:
        made.devices[network.rdma.resource] = str(network.rdma.count)
        made.capabilities.append("IPC_LOCK")


def download(role: RoleSpec, made: Attached, token: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the init container that downloads the model into the cache, if there is one.

    A download that fails is then repeated and reported on its own, and the time for it does not
    count for the startup probe.
    """
    if role.engine is None or role.cache is None or not role.cache.download:
        return []
    mounts = [mount for mount in made.mounts if mount["name"] == _CACHE]
    env = [each for each in made.env if each["name"] == "HF_HOME"]
    command = ["python3", "-c", _DOWNLOAD, role.engine.model]
    image = engine_image(role, role.engine)
    return [
        {
            "name": "download",
            "image": image,
            "command": command,
            "env": [*token, *env],
            "volumeMounts": mounts,
        }
    ]
