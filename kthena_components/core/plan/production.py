"""Defaults that a production review asks for, for the pods that the package writes.

Each value that a user states wins. docs/production.md gives the reasons and the sources.
"""

import math
from collections.abc import Mapping
from typing import Any

from kthena_components.core.engines import Launch, stated_release
from kthena_components.core.models import find_model, shape_from_config
from kthena_components.core.spec.launch import (
    ENDPOINT_SECONDS,
    ENGINE_CONTAINER,
    drain_seconds,
    engine_image,
)
from kthena_components.core.spec.serving_spec import ResourcesSpec, RoleSpec
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
        role: The role.
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
