"""Writes HyperNodes for Volcano's network topology, and reads them back.

HyperNodes are cluster-scoped and belong to no serving. core/topology/plan.py checks the tree;
nothing is decided here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.findings import Finding
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.spec.parse import parse_spec
from kthena_components.core.topology.plan import TopologyPlan, build_topology, check_topology
from kthena_components.core.topology.spec import HyperNodeSpec, HyperNodeTopologySpec
from kthena_components.systems.volcano.view_hyper_node import (
    GROUP,
    KIND,
    HyperNodesRead,
    read_hyper_node,
    read_hyper_nodes,
)

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
    labels = {"labels": dict(entry.labels)} if entry.labels else {}
    tier_name = {"tierName": entry.tier_name} if entry.tier_name else {}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": entry.name, **labels},
        "spec": {"tier": entry.tier, **tier_name, "members": _write_members(entry)},
    }


def _write_members(entry: HyperNodeSpec) -> list[dict[str, Any]]:
    selectors: list[tuple[str, dict[str, Any]]] = [
        ("Node", {"exactMatch": {"name": node}}) for node in entry.nodes
    ]
    if entry.node_regex:
        selectors.append(("Node", {"regexMatch": {"pattern": entry.node_regex}}))
    if entry.node_labels:
        selectors.append(("Node", {"labelMatch": {"matchLabels": dict(entry.node_labels)}}))
    selectors += [("HyperNode", {"exactMatch": {"name": child}}) for child in entry.children]
    return [{"type": kind, "selector": selector} for kind, selector in selectors]
