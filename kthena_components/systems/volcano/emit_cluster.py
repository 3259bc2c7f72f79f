"""Writes the objects of a whole cluster: HyperNodes and Queues. Reads HyperNodes back."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kthena_components.core.facts.context import Context
from kthena_components.core.findings import Finding, Level, SpecError, check_by, join_path, tidy
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.manifest import WAIT_FOR, Manifest
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.spec.serving_spec import QueueSpec
from kthena_components.core.topology.spec import (
    HyperNodeSpec,
    HyperNodeTopologySpec,
    TopologyPlan,
    build_topology,
    check_topology,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.systems.volcano.emit import SCHEDULING
from kthena_components.systems.volcano.rules.queue import QUEUE_RULES
from kthena_components.systems.volcano.rules.queue_references import (
    queue_cycle,
    queue_within_parent,
)
from kthena_components.systems.volcano.view import (
    GROUP,
    KIND,
    HyperNodesRead,
    read_hyper_node,
    read_hyper_nodes,
)

# Writes HyperNodes for Volcano's network topology, and reads them back.
#
# HyperNodes are cluster-scoped and belong to no serving. core/topology/spec.py checks the tree;
# nothing is decided here.


__all__ = [
    "CompiledTopology", "HyperNodesRead", "compile_topology", "emit_hyper_nodes",
    "read_hyper_node", "read_hyper_nodes",
]  # fmt: skip

API_VERSION = f"{GROUP}/v1alpha1"


@dataclass(frozen=True, slots=True)
class CompiledTopology:
    """A topology that is ready to be applied."""

    plan: TopologyPlan
    manifests: tuple[Manifest, ...]
    """Every child before its parent."""
    findings: tuple[Finding, ...]


def compile_topology(args: Mapping[str, Any]) -> CompiledTopology:
    """Plan the HyperNodes of a cluster and write them.

    Raises:
        SpecError: The tree cannot be built, with all reasons.
    """
    spec = parse_spec(HyperNodeTopologySpec, args)
    plan = build_topology(spec)
    manifests = tuple(
        Manifest(body=body, after=tuple(f"{KIND}/{child}" for child in entry.children))
        for entry, body in zip(plan.hyper_nodes, emit_hyper_nodes(plan), strict=True)
    )
    return CompiledTopology(plan, manifests, tuple(check_topology(spec)))


def emit_hyper_nodes(plan: TopologyPlan) -> tuple[dict[str, Any], ...]:
    """Write each HyperNode as a manifest, in the order of the plan."""
    return tuple(_manifest(entry) for entry in plan.hyper_nodes)


def _manifest(entry: HyperNodeSpec) -> dict[str, Any]:
    """Write a HyperNode; it belongs to no namespace."""
    labels = {"labels": dict(entry.labels)} if entry.labels else {}
    tier_name = {"tierName": entry.tier_name} if entry.tier_name else {}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": entry.name, **labels},
        "spec": {"tier": entry.tier, **tier_name, "members": _write_members(entry)},
    }


def _write_members(entry: HyperNodeSpec) -> list[dict[str, Any]]:
    """Write members: nodes by name, pattern or labels, and HyperNodes by name."""
    selectors: list[tuple[str, dict[str, Any]]] = [
        ("Node", {"exactMatch": {"name": node}}) for node in entry.nodes
    ]
    if entry.node_regex:
        selectors.append(("Node", {"regexMatch": {"pattern": entry.node_regex}}))
    if entry.node_labels:
        selectors.append(("Node", {"labelMatch": {"matchLabels": dict(entry.node_labels)}}))
    selectors += [("HyperNode", {"exactMatch": {"name": child}}) for child in entry.children]
    return [{"type": kind, "selector": selector} for kind, selector in selectors]


# Writes Volcano's Queues, and checks them before anything is created.


_OPEN = "jsonpath={.status.state}=Open"
_PLACES = {"spec.guarantee.resource": "guarantee", "spec.": "", "metadata.": ""}
"""Paths in a Queue and the corresponding paths in a spec, longest first."""
QUEUE_SECONDS = 60
"""Seconds that a Queue may take to open."""


def emit_queue(queue: QueueSpec) -> Manifest:
    """Write a Queue. It is cluster-scoped, and the queue controller opens it.

    Volcano's webhook rejects a PodGroup whose Queue is not open yet, so `up` waits for that.
    Source: Volcano v1.14 pkg/webhooks/admission/podgroups/validate/validate_podgroup.go.
    """
    spec: dict[str, Any] = {"weight": queue.weight, "reclaimable": queue.reclaimable}
    for field in ("parent", "capability", "deserved"):
        if getattr(queue, field) is not None:
            spec[field] = getattr(queue, field)
    if queue.guarantee is not None:
        spec["guarantee"] = {"resource": queue.guarantee}
    body = {
        "apiVersion": SCHEDULING,
        "kind": "Queue",
        "metadata": {"name": queue.name, "annotations": {WAIT_FOR: _OPEN}},
        "spec": spec,
    }
    return Manifest(body=body, timeout_seconds=QUEUE_SECONDS)


def compile_queue(args: Mapping[str, Any]) -> Manifest:
    """Write one Queue from a user's input.

    Raises:
        SpecError: Volcano would reject it, with all reasons.
    """
    spec = parse_spec(QueueSpec, args)
    manifest = emit_queue(spec)
    findings = [_ours(finding) for finding in _checked(manifest.body, _context(spec))]
    if refused := [finding for finding in findings if finding.level is Level.MANDATORY]:
        raise SpecError(refused)
    return manifest


def check_queues(queues: Sequence[QueueSpec]) -> list[Finding]:
    """Return the mandatory findings of a stack's queues, checked alone and with their parents.

    Each path starts with `queues[INDEX]`.
    """
    bodies = [emit_queue(queue).body for queue in queues]
    paths = [f"queues[{index}]" for index in range(len(queues))]
    contexts = list(map(_context, queues))
    found, cluster = list[Finding](), ClusterObjects()
    for index, (body, path, context) in enumerate(zip(bodies, paths, contexts, strict=True)):
        found += [_ours(finding, path) for finding in _checked(body, context, path)]
        cluster.add(read_object(body, path, context, index=index, cluster_wide=True))
    together = (*queue_cycle(cluster), *queue_within_parent(cluster))
    found += [_ours(finding, finding.path.partition(".")[0]) for finding in together]
    return [finding for finding in found if finding.level is Level.MANDATORY]


def _context(queue: QueueSpec) -> Context:
    return Context(versions={"volcano": str(queue.volcano_version)})


def _checked(body: Mapping[str, Any], context: Context, path: str = "") -> list[Finding]:
    found = check_by(QUEUE_RULES, read_object(body, context=context), path)
    return [tidy(finding) for finding in found]


def _ours(finding: Finding, queue: str = "") -> Finding:
    """Convert the path of a finding about a Queue to one in a spec."""
    path = finding.path.removeprefix(f"{queue}.")
    for theirs, ours in _PLACES.items():
        if path.startswith(theirs):
            return replace(finding, path=join_path(queue, ours + path.removeprefix(theirs)))
    return finding
