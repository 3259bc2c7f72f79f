"""What a production review asks of engines that answer requests, and the list PRODUCTION.

What they miss keeps no engine from starting. One finding per object lists what a rule misses.
"""

from collections.abc import Callable, Iterator

from kthena_components.core.findings import Finding, advise, rule_name
from kthena_components.core.objects.engine_containers import EngineContainer, Reviewed
from kthena_components.core.objects.object import Object
from kthena_components.core.rules.production_pods import (
    production_cache,
    production_resources,
    production_security,
)
from kthena_components.core.rules.support.messages import Lack, report_lacks
from kthena_components.core.values.display import listing
from kthena_components.core.values.read import mapping, sequence, whole
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


PRODUCTION: tuple[Callable[[Reviewed], Iterator[Finding]], ...] = (
    production_resources,
    production_lifecycle,
    production_availability,
    production_security,
    production_labels,
    production_cache,
)
PRODUCTION_NAMES = frozenset(map(rule_name, PRODUCTION))
