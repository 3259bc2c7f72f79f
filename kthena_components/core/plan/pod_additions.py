"""What the package adds to pods: /dev/shm, caches, networks, resource claims, and defaults.

Each value that a user states wins. docs/production.md gives the reasons and the sources.

The name of a ResourceClaimTemplate ends with a hash of its content: Kubernetes accepts no change of
one, and a pod keeps the devices of the template that it was created with.

Source: kubernetes staging/src/k8s.io/api/resource/v1/types.go ResourceClaimTemplateSpec.
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any

from kthena_components.core.engines import Launch, stated_release
from kthena_components.core.facts.claims import TEMPLATE
from kthena_components.core.facts.context import ReferencedObjects
from kthena_components.core.hardware.gpu_table import CLASS_OF
from kthena_components.core.models import find_model, shape_from_config
from kthena_components.core.spec.serving_spec import (
    ENDPOINT_SECONDS,
    ENGINE_CONTAINER,
    CacheSpec,
    ResourceClaimSpec,
    ResourcesSpec,
    RoleSpec,
    drain_seconds,
    engine_image,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.images import read_image
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown

STARTUP_SECONDS = 3600
"""Seconds that the entry may load weights before its container is restarted."""
READY_SECONDS = 1800
"""Seconds that `up` waits for templates, whose start the package does not know."""
NON_ROOT_SINCE = (0, 22, 0)
"""The first vLLM whose image has a user besides root. Source: docker/Dockerfile of its releases."""
NON_ROOT = {"runAsNonRoot": True, "runAsUser": 2000, "runAsGroup": 0, "fsGroup": 0}
"""User `vllm` of those images. It is in group 0, which may write to the image's folders."""
RECOMMENDED = "app.kubernetes.io/"
"""Prefix of the labels that Kubernetes recommends."""
_PROBE_SECONDS = 10
_PER_PROCESS, _PER_GPU, _SHM_PER_GPU = 4, 4, 2
"""GiB of the server with its scheduler, and of each GPU's process; GiB of /dev/shm per GPU."""


def default_requests(role: RoleSpec, launch: Launch) -> dict[str, str]:
    """Return the requests of a pod for what the user states neither as request nor as limit.

    A processor for each process that vLLM starts: server, scheduler and one per GPU. Memory for
    these processes and for the pod's part of the weights, which pass through the page cache.
    Source: vllm docs/configuration/optimization.md, CPU Resources for GPU Deployments.
    """
    stated = role.resources or ResourcesSpec()
    limits = mapping(mapping(_own_container(role).get("resources")).get("limits"))
    found: dict[str, str] = {}
    if stated.cpu is None and "cpu" not in limits:
        found["cpu"] = str(_processes(launch))
    if stated.memory is None and "memory" not in limits:
        found["memory"] = f"{_memory_gib(role, launch)}Gi"
    return found


def _processes(launch: Launch) -> int:
    copies = max(1, launch.data // launch.pods)
    return 2 * copies + launch.gpus_per_pod + (1 if copies > 1 else 0)


def _memory_gib(role: RoleSpec, launch: Launch) -> int:
    weights = _weights_gib(role, launch)
    share = min(1.0, launch.gpus_per_pod / launch.copy)
    return math.ceil(_PER_PROCESS + _PER_GPU * launch.gpus_per_pod + weights * share)


def _weights_gib(role: RoleSpec, launch: Launch) -> float:
    config = role.engine.hf_config if role.engine else None
    shape = find_model(launch.model) if config is None else shape_from_config(config)
    if isinstance(shape, Unknown):
        return 0.0
    return shape.files_gib or shape.weights_gib or 0.0


def shared_memory(resources: ResourcesSpec | None) -> str:
    """Return the size limit of /dev/shm: as stated, or by GPUs."""
    stated = resources or ResourcesSpec()
    return stated.shm or f"{_SHM_PER_GPU * max(1, stated.gpus_per_pod)}Gi"


def startup_seconds(role: RoleSpec, ready_timeout: int | None) -> int:
    """Return how long the entry of a role may take to start.

    Args:
        ready_timeout: How long `up` waits, as stated. Whoever makes it wait longer than the default
            has engines that load longer.
    """
    if role.engine is None:
        return READY_SECONDS
    return role.startup_seconds or max(STARTUP_SECONDS, ready_timeout or 0)


def startup_probe(seconds: int) -> dict[str, int]:
    """Return how often the startup probe may fail."""
    failures = math.ceil(seconds / _PROBE_SECONDS)
    return {"periodSeconds": _PROBE_SECONDS, "failureThreshold": failures}


def pre_stop(role: RoleSpec, *, is_entry: bool) -> dict[str, Any]:
    """Return what a pod does before SIGTERM: it waits.

    The workers outlive the requests of their entry, which they compute.
    """
    seconds = ENDPOINT_SECONDS + (0 if is_entry else drain_seconds(role))
    return {"preStop": {"sleep": {"seconds": seconds}}}


def user_of(role: RoleSpec) -> dict[str, Any]:
    """Return the security context of a pod: a user besides root, where that works.

    Not if the pods could then not use what is mounted, or their RDMA devices: a user besides root
    cannot lock memory, whatever capabilities are added.
    """
    name = engine_image(role, role.engine) if role.engine else ""
    release = stated_release("vllm", name)
    if release is None or release < NON_ROOT_SINCE or not read_image(name).is_vllm:
        return {}
    own = _own_container(role)
    on_the_node = role.cache is not None and role.cache.host_path is not None
    rdma = role.network is not None and role.network.rdma is not None
    stated = "securityContext" in own or "securityContext" in _overlaid(role)
    return {} if on_the_node or rdma or stated or own.get("volumeMounts") else dict(NON_ROOT)


def labels_of(role: RoleSpec, serving: str) -> dict[str, str]:
    """Return Kubernetes' recommended labels for the pods of a role."""
    kind = role.engine.kind if role.engine else ""
    named = {"name": str(kind), "instance": serving, "component": role.name}
    return {f"{RECOMMENDED}{key}": value for key, value in named.items()}


def _overlaid(role: RoleSpec) -> Mapping[str, Any]:
    return mapping(mapping(role.overlay).get("spec"))


def _own_container(role: RoleSpec) -> Mapping[str, Any]:
    """Return what the overlay changes in the engine's container."""
    for container in sequence(_overlaid(role).get("containers")):
        if mapping(container).get("name") == ENGINE_CONTAINER:
            return mapping(container)
    return {}


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


_CLAIM_VERSION = f"{TEMPLATE[0]}/v1"
"""Served since Kubernetes 1.34."""
_DIGITS = 8


def pod_claims(role: RoleSpec, owner: str) -> list[dict[str, Any]]:
    """Return the resourceClaims of each pod of a role.

    Args:
        owner: The serving, or the group of it, that begins the names of its templates.
    """
    return [
        {"name": claim.name, "resourceClaimTemplateName": _template_name(role, claim, owner)}
        for claim in _claims(role)
    ]


def claim_templates(role: RoleSpec, namespace: str, owner: str) -> tuple[dict[str, Any], ...]:
    """Write the ResourceClaimTemplates of the claims that name a device class."""
    requests = ((claim, _request(role, claim)) for claim in _claims(role))
    return tuple(
        _template(_template_name(role, claim, owner), namespace, request)
        for claim, request in requests
        if claim.template is None
    )


def stated_claims(role: RoleSpec, written: Iterable[Mapping[str, Any]]) -> ReferencedObjects:
    """Return what is known of the templates that the pods of a role name.

    An existing template is not read: its devices are those that the role states.
    """
    known = ReferencedObjects(kinds=(TEMPLATE,))
    for body in written:
        known.add(body)
    resources = role.resources or ResourcesSpec()
    for claim in resources.claims:
        if claim.template is not None:
            request = _request(role, claim, CLASS_OF.get(resources.gpu_resource, ""))
            listed = request if claim.gpus else None
            known.add(_template(claim.template, "", listed))
    return known


def _claims(role: RoleSpec) -> list[ResourceClaimSpec]:
    return (role.resources or ResourcesSpec()).claims if role.engine else []


def _request(role: RoleSpec, claim: ResourceClaimSpec, usual: str = "") -> dict[str, Any]:
    """Write one request of a claim in the form of resource.k8s.io: class, count and selectors."""
    resources = role.resources or ResourcesSpec()
    exactly: dict[str, Any] = {
        "deviceClassName": claim.device_class or usual,
        "count": resources.gpus_per_pod if claim.gpus else claim.count or 1,
    }
    if claim.selectors:
        exactly["selectors"] = [{"cel": {"expression": text}} for text in claim.selectors]
    return {"name": claim.name, "exactly": exactly}


def _template_name(role: RoleSpec, claim: ResourceClaimSpec, owner: str) -> str:
    if claim.template is not None:
        return claim.template
    text = json.dumps(_request(role, claim), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    return f"{owner}-{role.name}-{claim.name}-{digest}"


def _template(name: str, namespace: str, request: Mapping[str, Any] | None) -> dict[str, Any]:
    space = {"namespace": namespace} if namespace else {}
    return {
        "apiVersion": _CLAIM_VERSION,
        "kind": TEMPLATE[1],
        "metadata": {"name": name, **space},
        "spec": {"spec": {"devices": {"requests": [request] if request else []}}},
    }
