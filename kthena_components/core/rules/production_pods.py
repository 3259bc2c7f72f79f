"""What a production review asks of the containers of engines: amounts, users and weights."""

import re
from collections.abc import Iterator

from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.facts.context import namespace_of
from kthena_components.core.facts.files import HUB_NAME, OFFLINE, may_hold_model
from kthena_components.core.findings import Finding, advise
from kthena_components.core.objects.engine_containers import EngineContainer, Reviewed
from kthena_components.core.objects.object import Object
from kthena_components.core.rules.support.messages import Lack, named, report_lacks
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import inside, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

_REQUESTS = {
    "cpu": Lack("CPU request", "resources.requests.cpu"),
    "memory": Lack("memory request", "resources.requests.memory"),
}
_SIZE = Lack(f"limit of {SHM_PATH} below the node's memory", "emptyDir.sizeLimit")
_USER = Lack("stated user", "runAsNonRoot or runAsUser")
_ESCALATION = Lack("allowPrivilegeEscalation: false", "allowPrivilegeEscalation: false")
_SECCOMP = Lack("seccompProfile", "seccompProfile.type: RuntimeDefault")
_ADMIN = frozenset({"SYS_ADMIN", "CAP_SYS_ADMIN"})
"""A capability with which a container always may gain privileges, whatever it states."""
_LOCK = frozenset({"IPC_LOCK", "CAP_IPC_LOCK"})
"""Capabilities that an engine is given to lock memory."""
_RDMA = regex(r"rdma|infiniband|roce|mlnx|mellanox|/(?:ib|hca)", re.IGNORECASE)
"""Names of extended resources that device plugins give to RDMA devices."""


def production_resources(view: Reviewed) -> Iterator[Finding]:
    """An engine's container requests CPU and memory, and its shared memory has a size.

    The scheduler counts requests. Without them, an engine shares the CPUs of its node with whatever
    else is there, and is among the first to be evicted when the node's memory runs short. A
    memory-backed volume without a size limit may take all memory that the pod may use, and so
    all memory of the node, if a container has no memory limit. Amounts count if the pod, a limit or
    a LimitRange among the files states them.

    Pass: requests of cpu and memory; an emptyDir with medium Memory and sizeLimit 16Gi.
    Fail: limits of nvidia.com/gpu only; an emptyDir with medium Memory and nothing else.
    Level: advisory, and only if asked for, as in prod.
    Source: Kubernetes documentation, Resource Management for Pods and Containers, Node-pressure
    Eviction; kubernetes pkg/volume/emptydir/empty_dir.go calculateEmptyDirMemorySize.
    """
    found = ((each, tuple(_amounts(view.object, each))) for each in view.engines)
    yield from report_lacks(
        found, "its node may have too little for the engine", "production-resources"
    )


def _amounts(found: Object, container: EngineContainer) -> Iterator[Lack]:
    for resource, lack in _REQUESTS.items():
        if not any(_has(found, container, each, resource) for each in ("requests", "limits")):
            yield lack
    if _shm_unlimited(container) and not _memory_limited(found, container):
        yield _SIZE


def _has(found: Object, container: EngineContainer, kind: str, resource: str) -> bool:
    """Return whether a container or its pod has an amount, or may get one."""
    return any(
        mapping(mapping(each.get("resources")).get(kind)).get(resource) is not None
        for each in (container.fields, container.pod)
    ) or found.context.limits.gives(kind, resource, namespace_of(found.body))


def _memory_limited(found: Object, container: EngineContainer) -> bool:
    """Return whether a pod has a memory limit: all of its containers must have one."""
    listed = container.pod.get("containers")
    limits = (mapping(mapping(c).get("resources")).get("limits") for c in sequence(listed))
    return _has(found, container, "limits", "memory") and (
        mapping(mapping(container.pod.get("resources")).get("limits")).get("memory") is not None
        or found.context.limits.gives("limits", "memory", namespace_of(found.body))
        or all(mapping(each).get("memory") is not None for each in limits)
    )


def _shm_unlimited(container: EngineContainer) -> bool:
    """Return whether a memory-backed volume without a size is mounted at /dev/shm."""
    mounts = map(mapping, sequence(container.fields.get("volumeMounts")))
    names = [m.get("name") for m in mounts if str(m.get("mountPath")).rstrip("/") == SHM_PATH]
    return any(
        volume.get("name") in names
        and mapping(volume.get("emptyDir")).get("medium") == "Memory"
        and mapping(volume.get("emptyDir")).get("sizeLimit") is None
        for volume in map(mapping, sequence(container.pod.get("volumes")))
    )


def production_security(view: Reviewed) -> Iterator[Finding]:
    """An engine's container states its user, and neither gains privileges nor every system call.

    These are fields that the restricted Pod Security Standard requires. Engines' images run as root
    unless a user is stated. Privileged containers, as some networks need them, are asked for a user
    only. Engines with RDMA devices, or with the capability IPC_LOCK, are not asked for a user: one
    besides root cannot lock the memory that RDMA registers, whatever capabilities are added.

    Pass: runAsNonRoot true, allowPrivilegeEscalation false, seccompProfile RuntimeDefault; rdma/hca
    without a user.
    Fail: no securityContext in the container and in the pod.
    Level: advisory, and only if asked for, as in prod.
    Source: Kubernetes documentation, Pod Security Standards; kubernetes
    pkg/apis/core/validation/validation.go ValidateSecurityContext; capabilities(7), Transformation
    of capabilities during execve().
    """
    found = ((each, tuple(_rights(each))) for each in view.engines)
    yield from report_lacks(
        found, "the engine has more rights than it needs", "production-security"
    )


def _rights(container: EngineContainer) -> Iterator[Lack]:
    """List missing limits of a container's rights; RDMA and capabilities may need root."""
    own, pod = (mapping(each.get("securityContext")) for each in (container.fields, container.pod))
    users = [each.get(key) for each in (own, pod) for key in ("runAsUser", "runAsNonRoot")]
    added = inside(own.get("capabilities"), "add")
    listed = sequence(added)
    locks = not _LOCK.isdisjoint(map(str, listed)) or _has_rdma(container)
    if all(user is None or user is False for user in users) and not locks:
        yield _USER
    if own.get("privileged") not in (None, False):
        return
    may = any(map(is_unresolved, (added, *listed))) or not _ADMIN.isdisjoint(map(str, listed))
    if own.get("allowPrivilegeEscalation") is None and not may:
        yield _ESCALATION
    if own.get("seccompProfile") is None and pod.get("seccompProfile") is None:
        yield _SECCOMP


def _has_rdma(container: EngineContainer) -> bool:
    """Return whether a container gets RDMA devices, by resource or as a folder of the node."""
    resources = mapping(container.fields.get("resources"))
    amounts = (mapping(resources.get(kind)) for kind in ("limits", "requests"))
    mounts = map(mapping, sequence(container.fields.get("volumeMounts")))
    return any(_RDMA.search(str(name)) for each in amounts for name in each) or any(
        str(mount.get("mountPath")).rstrip("/") == "/dev/infiniband" for mount in mounts
    )


def production_cache(view: Reviewed) -> Iterator[Finding]:
    """An engine that loads a model from a hub keeps its weights in a volume that outlives a pod.

    Otherwise each new pod downloads them again, which takes minutes and needs the hub. Any volume
    counts that is neither empty in a new pod nor meant for devices, logs or configuration. A model
    that an init container may bring is not checked.

    Pass: a PersistentVolumeClaim or a hostPath at HF_HOME; --model /models/llama.
    Fail: --model Qwen/Qwen3-32B in a container without volumes, or with an emptyDir at HF_HOME.
    Level: advisory, and only if asked for, as in prod.
    Source: huggingface_hub/constants.py (HF_HOME, HF_HUB_OFFLINE); Kubernetes documentation,
    Volumes, emptyDir.
    """
    again = [each for each in view.engines if each.command.engine and _downloads(each)]
    if again:
        models = dict.fromkeys(display(each.command.model) for each in again)
        names = list(dict.fromkeys(each.name for each in again))
        verb = "loads" if len(names) == 1 else "load"
        yield advise(
            again[0].path,
            f"{named(names)} {verb} {listing(models)} from the hub, and no volume keeps the "
            "weights, so each new pod downloads them again",
            "mount a PersistentVolumeClaim or a hostPath at the engine's cache (HF_HOME)",
        )


def _downloads(container: EngineContainer) -> bool:
    """Return whether an engine is known to download its model in each new pod."""
    model, options = container.command.model, container.command.options
    if not isinstance(model, str) or not HUB_NAME.fullmatch(model):
        return False
    env = container.fields.get("env")
    listed = [*map(mapping, sequence(env))]
    offline = (item.get("name") in OFFLINE for item in listed)
    late = (env, *sequence(env), *(item.get("name") for item in listed))
    if container.command.hidden or any(map(is_unresolved, (*late, options.get("--load-format")))):
        return False
    if any(offline):
        return False
    loads = options.get("--load-format") != "dummy"
    return loads and not may_hold_model(container.fields, container.pod)
