"""What a production review asks of engines that answer requests, and the list PRODUCTION.

What they miss keeps no engine from starting. One finding per object lists what a rule misses.
"""

import re
from collections.abc import Callable, Iterator

from kthena_components.core.facts.container import SHM_PATH
from kthena_components.core.facts.context import namespace_of
from kthena_components.core.facts.files import HUB_NAME, OFFLINE, may_hold_model
from kthena_components.core.findings import Finding, advise, rule_name
from kthena_components.core.objects.engine_containers import EngineContainer, Reviewed
from kthena_components.core.objects.object import Object
from kthena_components.core.rules.support.messages import Lack, named, report_lacks
from kthena_components.core.values.display import display, listing
from kthena_components.core.values.read import inside, mapping, sequence, whole
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

_READINESS = Lack("readinessProbe", "readinessProbe")
_PRE_STOP = Lack("preStop hook", "lifecycle.preStop with a sleep")
_GRACE = Lack("terminationGracePeriodSeconds (30 s)", "terminationGracePeriodSeconds")
_PRIORITY = Lack("PriorityClass", "priorityClassName")
_BUDGET = Lack("PodDisruptionBudget", "a PodDisruptionBudget that selects its pods", restarts=False)
_APART = "topologySpreadConstraints or podAntiAffinity"
_OVER_NODES = Lack("spread of its replicas over nodes or zones", _APART)
_OVER_RACKS = Lack("spread of its replicas over racks or zones", _APART)
_SHORTEST_START = 300
"""Seconds in which an engine is expected to have loaded a model, if no startup probe says so."""
_PROBE = (("initialDelaySeconds", 0), ("periodSeconds", 10), ("failureThreshold", 3))
"""Defaults of a probe: kubernetes pkg/apis/core/v1/defaults.go SetDefaults_Probe."""
_DRAINS = "--shutdown-timeout"
"""vLLM's option to finish requests after SIGTERM."""
_DYNAMO = regex(r"\bdynamo\.(?:vllm|sglang|trtllm)\b")
"""Dynamo's workers: a frontend sends them requests, and its registry knows which are ready."""
_EXCLUSIVE = "exclusive-topology"
"""End of the annotation with which LeaderWorkerSet keeps groups apart."""
_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/instance")
_SEVERAL = 2
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


def production_lifecycle(view: Reviewed) -> Iterator[Finding]:
    """An engine gets requests once it is ready, has time to load, and finishes them before it ends.

    Without a readinessProbe, a Service sends requests to an engine that is still loading. A
    livenessProbe without a startupProbe restarts it if it takes longer. A pod that ends gets
    requests until all proxies know: a preStop hook waits for that, within the grace period, whose
    30 s are short for long answers. Pods that answer no HTTP requests, such as workers, are not
    checked.

    Pass: a readinessProbe, a startupProbe beside the livenessProbe, preStop.sleep of 20 s, and
    terminationGracePeriodSeconds 120.
    Fail: none of these; a livenessProbe with initialDelaySeconds 60 and no startupProbe.
    Level: advisory, and only if asked for, as in prod.
    Source: Kubernetes documentation, Pod Lifecycle (Termination of Pods) and Liveness, Readiness,
    and Startup Probes; vLLM docs/deployment/k8s.md (Troubleshooting).
    """
    found = ((each, tuple(_lifecycle(each))) for each in view.engines if _answers(each))
    so = "requests may fail when its pods start or end"
    yield from report_lacks(found, so, "production-lifecycle")


def _answers(container: EngineContainer) -> bool:
    """Return whether an engine answers HTTP itself, and not only Dynamo's own protocol."""
    words = (sequence(container.fields.get(key)) for key in ("command", "args"))
    return container.serves and not any(_DYNAMO.search(str(word)) for key in words for word in key)


def _lifecycle(container: EngineContainer) -> Iterator[Lack]:
    """List what a container lacks for slow starts and for shutdowns without lost requests."""
    fields = container.fields
    if fields.get("readinessProbe") is None:
        yield _READINESS
    window = _window(container)
    if window is not None and window < _SHORTEST_START:
        yield Lack(f"startupProbe (the livenessProbe allows {window} s)", "startupProbe")
    drains = container.command.options.get(_DRAINS) is not None
    if not drains and mapping(fields.get("lifecycle")).get("preStop") is None:
        yield _PRE_STOP
    if container.pod.get("terminationGracePeriodSeconds") is None:
        yield _GRACE


def _window(container: EngineContainer) -> int | None:
    """Return the seconds after which a livenessProbe restarts an engine that still loads."""
    probe, startup = container.fields.get("livenessProbe"), container.fields.get("startupProbe")
    if probe is None or is_unresolved(probe) or startup is not None:
        return None
    delay, period, failures = (
        usual if mapping(probe).get(key) is None else whole(mapping(probe)[key])
        for key, usual in _PROBE
    )
    if not (isinstance(delay, int) and isinstance(period, int) and isinstance(failures, int)):
        return None
    return delay + period * failures


def production_availability(view: Reviewed) -> Iterator[Finding]:
    """Engines survive the loss of a node, a drain and a full cluster: spread, budget, priority.

    Several replicas are spread over nodes or zones by a constraint, an anti-affinity, a host port
    or LeaderWorkerSet's exclusive topology; the scheduler's own default only prefers it. A
    PodDisruptionBudget keeps a drain from evicting them together: it is missed only with --whole.
    Without a PriorityClass, pods with a priority above 0 may preempt them. Single replicas need
    neither spread nor budget.

    Pass: 2 replicas with a podAntiAffinity, a priorityClassName and a PodDisruptionBudget.
    Fail: 2 replicas without any of these.
    Level: advisory, and only if asked for, as in prod.
    Source: Kubernetes documentation, Pod Topology Spread Constraints, Disruptions, Pod Priority and
    Preemption; kubernetes pkg/registry/core/pod/storage/eviction.go.
    """
    found = [(each, tuple(_availability(view.object, each))) for each in view.engines]
    so = "pods with a priority above 0 may preempt it"
    if any({*lacks} - {_PRIORITY} for _, lacks in found):
        so = "a preemption, a drain or the loss of a node may stop all of it"
    yield from report_lacks(found, so, "production-availability")


def _availability(found: Object, container: EngineContainer) -> Iterator[Lack]:
    """List what the pods lack against evictions and node failures; one copy needs no budget."""
    pods, around, copies = container.pods, found.context.pod_policies, container.copies
    # The spec of a Volcano Job has one for all pods, and the template of a PodCliqueSet.
    holders = (pods.spec, found.spec, mapping(found.spec.get("template")))
    stated = any(each.get("priorityClassName") is not None for each in holders)
    if not stated and not around.default_priority:
        yield _PRIORITY
    if not isinstance(copies, int) or copies < _SEVERAL:
        return
    if not around.evictions_limited(
        found.metadata.get("namespace"), pods.labels, more=pods.by_controller
    ):
        yield _BUDGET
    if not _is_spread(found, container):
        yield _OVER_RACKS if pods.spread else _OVER_NODES


def _is_spread(found: Object, container: EngineContainer) -> bool:
    """Return whether something keeps the replicas of a pod apart, or may do so."""
    spec, pods = container.pod, container.pods
    constraints, affinity = spec.get("topologySpreadConstraints"), spec.get("affinity")
    notes = (*mapping(found.metadata.get("annotations")), *pods.annotations)
    ports = container.fields.get("ports")
    listed = sequence(ports)
    return bool(
        constraints
        or mapping(affinity).get("podAntiAffinity")
        or spec.get("hostNetwork")
        or any(map(is_unresolved, (ports, *listed)))
        or any(mapping(port).get("hostPort") for port in listed)
        or any(str(note).endswith(_EXCLUSIVE) for note in notes)
    )


def production_labels(view: Reviewed) -> Iterator[Finding]:
    """An object or its pods have the labels app.kubernetes.io/name and app.kubernetes.io/instance.

    Dashboards, network policies and people select by them, whatever wrote the object.

    Pass: app.kubernetes.io/name vllm and app.kubernetes.io/instance chat, in the pod template.
    Fail: app chat only.
    Level: advisory, and only if asked for, as in prod.
    Source: Kubernetes documentation, Recommended Labels.
    """
    own = mapping(view.object.metadata.get("labels"))
    lacking = [
        label
        for label in _LABELS
        if own.get(label) is None
        and any(each.pods.labels.get(label) is None for each in view.engines)
    ]
    if lacking:
        yield advise(
            view.object.at("metadata"),
            f"has no label {listing(lacking, 'or')}, and neither have its pods, so tools cannot "
            "tell which application they belong to",
            "add them, preferably to the pod template as well",
        )


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


PRODUCTION: tuple[Callable[[Reviewed], Iterator[Finding]], ...] = (
    production_resources,
    production_lifecycle,
    production_availability,
    production_security,
    production_labels,
    production_cache,
)
PRODUCTION_NAMES = frozenset(map(rule_name, PRODUCTION))
