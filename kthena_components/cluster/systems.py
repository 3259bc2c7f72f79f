"""Checks that Volcano and Kthena are installed, recent enough, and running. Pure.

Source of names and labels: the Helm charts of Volcano v1.14 (installer/helm/chart/volcano) and of
Kthena v1.0.0 (charts/kthena); Leases: cmd/scheduler/main.go and cmd/controller-manager of Volcano,
pkg/controller/controller.go of Kthena.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import yaml

from kthena_components.cluster.objects import Body, known, labels_of, name_of, status_of, title_of
from kthena_components.cluster.requirements import (
    HYPER_NODE,
    MODEL_SERVING,
    POD_GROUP,
    QUEUE,
    Kind,
    Requirements,
)
from kthena_components.cluster.snapshot import Diagnostic, Snapshot, Status, serves
from kthena_components.core.findings import count_of
from kthena_components.core.spec.enums import KthenaVersion
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.kthena.emit import EMITTER

OLDEST_KUBERNETES = (1, 28)
"""It introduced the pod index label, from which native workers read their index."""
PLUGIN = "network-topology-aware"
SILENCE = timedelta(seconds=60)
"""A running controller writes a status at once; after this time it counts as down."""
INSTALL_VOLCANO = "Install Volcano 1.14 or later"
INSTALL_KTHENA = EMITTER.install
Field = tuple[str, ...]
_SUB_GROUPS: Field = ("spec", "subGroupPolicy")
_ROLE_BUDGET: Field = ("spec", "template", "roles", "maxUnavailable")


def check_kubernetes(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Report the server, the user, and whether Kubernetes is recent enough."""
    text = f"{seen.server} answers {seen.user}: Kubernetes {seen.version}"
    found = re.match(r"v?(\d+)\.(\d+)", seen.version)
    if found and (int(found[1]), int(found[2])) < OLDEST_KUBERNETES and "native" in need.backends:
        text += ", but the native backend needs 1.28. Update it, or use kthena"
        yield Diagnostic(Status.FAIL, "cluster", text)
    else:
        yield Diagnostic(Status.OK, "cluster", text)


def check_volcano(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check that the cluster serves Volcano's kinds in the versions that we write."""
    if not need.volcano:
        return
    missing = [kind for kind in (POD_GROUP, QUEUE) if not serves(seen, kind)]
    has_tree = serves(seen, HYPER_NODE)
    if missing:
        yield Diagnostic(Status.FAIL, "volcano", f"{_lacks(seen, missing)}. {INSTALL_VOLCANO}")
        return
    fields = _has(seen, POD_GROUP, _SUB_GROUPS)
    if fields is False:
        text = "PodGroup has no subGroupPolicy, so this Volcano is older than 1.14 and engines are "
        yield Diagnostic(Status.FAIL, "volcano", f"{text}not scheduled as units. {INSTALL_VOLCANO}")
    elif not has_tree:
        mark = Status.FAIL if need.topology or need.hyper_nodes else Status.WARN
        text = f"{_lacks(seen, [HYPER_NODE])}, so servings cannot request a network topology"
        yield Diagnostic(mark, "volcano", f"{text}. {INSTALL_VOLCANO}")
    elif isinstance(fields, Unknown):
        yield Diagnostic(Status.UNKNOWN, "volcano", f"its version is unknown: {fields.because}")
    else:
        text = "PodGroup and Queue v1beta1, HyperNode v1alpha1: Volcano 1.14 or later"
        yield Diagnostic(Status.OK, "volcano", text)


def check_kthena(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check that the cluster serves ModelServing in the version that we write."""
    if "kthena" not in need.backends:
        return
    if not serves(seen, MODEL_SERVING):
        mark = Status.FAIL if need.stack else Status.WARN
        instead = "use backend: native" if need.stack else "use backend native alone"
        text = f"{_lacks(seen, [MODEL_SERVING])}. {INSTALL_KTHENA}, or {instead}"
        yield Diagnostic(mark, "kthena", text)
        return
    newest = _has(seen, MODEL_SERVING, _ROLE_BUDGET)
    newer = [p.name for p in need.plans if p.kthena_version == KthenaVersion.V1_0]
    if isinstance(newest, Unknown):
        yield Diagnostic(Status.UNKNOWN, "kthena", f"its version is unknown: {newest.because}")
    elif newest:
        yield Diagnostic(Status.OK, "kthena", "ModelServing v1alpha1: Kthena 1.0 or later")
    else:
        text = "ModelServing has no roles[].maxUnavailable, so this Kthena is older than 1.0"
        whose = f", but {', '.join(newer)} would be written for 1.0" if newer else ""
        remedy = "Write kthena_version, or update Kthena with its CRDs"
        yield Diagnostic(Status.WARN, "kthena", f"{text}{whose}. {remedy}")


def _lacks(seen: Snapshot, kinds: list[Kind]) -> str:
    """List missing kinds, and the other versions in which the cluster serves them."""
    missing = []
    for api_version, name in kinds:
        group = api_version.partition("/")[0]
        others = [gv.partition("/")[2] for gv, names in seen.served.items()
                  if gv.partition("/")[0] == group and name in names]  # fmt: skip
        also = f" (only {', '.join(others)})" if others else ""
        missing.append(f"{name} {api_version}{also}")
    return f"the cluster has no {' and no '.join(missing)}"


def _has(seen: Snapshot, kind: Kind, path: Field) -> bool | Unknown:
    """Return whether a published schema has a field."""
    schema = seen.schemas.get(kind, Unknown("its schema was not published"))
    if isinstance(schema, Unknown):
        return schema
    at: Any = schema
    for name in path:
        at = mapping(at)
        at = mapping(at.get("items")) if at.get("type") == "array" else at
        at = mapping(at.get("properties")).get(name)
        if at is None:
            return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """A program that must run, and how to detect it."""

    title: str
    label: tuple[str, str]
    """Label of its Deployment: key and value."""
    leases: tuple[str, ...]
    evidence: Callable[[Snapshot], str | None]
    """Evidence: what only it can have written; None without any."""
    silence: Callable[[Snapshot], str | None]
    """What it should have written by now; None without any."""


def _queue_status(key: str, said: str) -> Callable[[Snapshot], str | None]:
    def look(seen: Snapshot) -> str | None:
        queues = (body for body in known(seen.queues) if name_of(body) == "default")
        return said if any(key in status_of(body) for body in queues) else None

    return look


def _has_status(body: Body) -> bool:
    return bool(status_of(body).get("observedGeneration") or status_of(body).get("conditions"))


def _served(seen: Snapshot) -> str | None:
    with_status = [title_of(body) for body in known(seen.model_servings) if _has_status(body)]
    return f"ModelServing {with_status[0]} has a status" if with_status else None


def _unserved(seen: Snapshot) -> str | None:
    for body in known(seen.model_servings):
        if mapping(body.get("spec")).get("replicas") and not _has_status(body) and _old(body, seen):
            return f"ModelServing {title_of(body)} has no status"
    return None


def _unscheduled(seen: Snapshot) -> str | None:
    for body in known(seen.pod_groups):
        if not status_of(body).get("phase") and _old(body, seen):
            return f"PodGroup {title_of(body)} has no phase"
    return None


def _closed(seen: Snapshot) -> str | None:
    for body in known(seen.queues):
        if not status_of(body).get("state") and _old(body, seen) and name_of(body) != "root":
            return f"Queue {name_of(body)} has no state"
    return None


def _old(body: Body, seen: Snapshot) -> bool:
    made = _time(mapping(body.get("metadata")).get("creationTimestamp"))
    return made is not None and seen.now - made > SILENCE


SCHEDULER = Controller(
    title="Volcano's scheduler", label=("app", "volcano-scheduler"), leases=("volcano",),
    evidence=_queue_status("allocated", "the default Queue has amounts"), silence=_unscheduled,
)  # fmt: skip
VOLCANO_CONTROLLERS = Controller(
    title="Volcano's controllers", label=("app", "volcano-controller"),
    leases=("vc-controller-manager",),
    evidence=_queue_status("state", "the default Queue has a state"), silence=_closed,
)  # fmt: skip
KTHENA = Controller(
    title="Kthena's controller",
    label=("app.kubernetes.io/component", "kthena-controller-manager"),
    leases=("lease.kthena.controller-manager",), evidence=_served, silence=_unserved,
)  # fmt: skip


def check_controllers(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check that the controllers run, as far as a cluster shows it."""
    volcano = need.volcano and serves(seen, POD_GROUP)
    for wanted, controller in (
        (volcano, SCHEDULER),
        (volcano, VOLCANO_CONTROLLERS),
        ("kthena" in need.backends and serves(seen, MODEL_SERVING), KTHENA),
    ):
        if wanted:
            yield check_controller(seen, controller)


def check_controller(seen: Snapshot, controller: Controller) -> Diagnostic:
    """Look for a Deployment, then a Lease, then objects that only the controller writes."""
    key, value = controller.label
    for body in known(seen.deployments):
        if labels_of(body).get(key) == value:
            return _deployment(body, controller)
    silence, evidence = controller.silence(seen), controller.evidence(seen)
    seconds = int(SILENCE.total_seconds())
    if silence:
        text = f"does not seem to run: {silence} after more than {seconds} s. Start it"
        return Diagnostic(Status.FAIL, controller.title, text)
    for lease in known(seen.leases):
        renewed = _time(mapping(lease.get("spec")).get("renewTime"))
        if name_of(lease) in controller.leases and renewed is not None:
            age = int((seen.now - renewed).total_seconds())
            if seen.now - renewed > SILENCE:
                text = f"has not renewed its Lease {title_of(lease)} for {age} s. Start it"
                return Diagnostic(Status.FAIL, controller.title, text)
            text = f"has renewed its Lease {title_of(lease)} {max(age, 0)} s ago"
            return Diagnostic(Status.OK, controller.title, text)
    none = seen.deployments.because if isinstance(seen.deployments, Unknown) else (
        f"no Deployment has the label {key}={value}")  # fmt: skip
    if evidence:
        return Diagnostic(Status.OK, controller.title, f"has run here: {evidence}; {none}")
    return Diagnostic(Status.UNKNOWN, controller.title, f"whether it runs is unknown: {none}")


def _deployment(body: Body, controller: Controller) -> Diagnostic:
    """Report a controller's Deployment: ready pods of those wanted, and its image."""
    wanted = int(mapping(body.get("spec")).get("replicas", 1) or 0)
    ready = int(status_of(body).get("readyReplicas") or 0)
    text = f"Deployment {title_of(body)} has {ready} of {count_of(wanted, 'pod')} ready"
    template = mapping(mapping(mapping(body.get("spec")).get("template")).get("spec"))
    images = [str(mapping(c).get("image", "")) for c in sequence(template.get("containers"))]
    text += f", image {images[0].rpartition('/')[2]}" if images else ""
    if ready:
        return Diagnostic(Status.OK, controller.title, text)
    return Diagnostic(Status.FAIL, controller.title, f"{text}. See `kubectl describe` of it")


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def check_scheduler_config(seen: Snapshot, need: Requirements) -> Iterator[Diagnostic]:
    """Check that the scheduler enables the plugin for network topologies."""
    if not need.volcano or not serves(seen, HYPER_NODE):
        return
    config, subject = seen.scheduler_config, "scheduler config"
    bad = Status.FAIL if need.topology else Status.WARN
    if isinstance(config, Unknown):
        yield Diagnostic(Status.UNKNOWN, subject, f"unknown, because {config.because}")
    elif config is None:
        text = "there is no ConfigMap volcano-system/volcano-scheduler-configmap, so whether "
        yield Diagnostic(
            Status.UNKNOWN, subject, f"{text}the plugin {PLUGIN} is enabled is unknown"
        )
    elif (plugins := _plugins(config)) is None:
        text = f"{title_of(config)} contains no readable scheduler config. Write its tiers"
        yield Diagnostic(bad, subject, text)
    elif PLUGIN in plugins:
        yield Diagnostic(Status.OK, subject, f"{title_of(config)} has the plugin {PLUGIN}")
    else:
        text = f"{title_of(config)} has no plugin {PLUGIN}, so even a hard network topology is "
        text += f"silently ignored. Add `- name: {PLUGIN}` to its plugins"
        yield Diagnostic(bad, subject, text)


def _plugins(config: Body) -> set[str] | None:
    """Read the plugins of the first scheduler config in a ConfigMap."""
    data: Mapping[str, Any] = mapping(config.get("data"))
    for text in data.values():
        try:
            stated = mapping(yaml.safe_load(str(text)))
        except yaml.YAMLError:
            continue
        if "tiers" in stated:
            tiers = (sequence(mapping(tier).get("plugins")) for tier in sequence(stated["tiers"]))
            return {str(mapping(plugin).get("name")) for tier in tiers for plugin in tier}
    return None
