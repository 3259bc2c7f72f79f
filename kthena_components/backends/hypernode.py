"""Write HyperNodes for Volcano's network topology, and read them back.

HyperNodes are cluster-scoped and belong to no serving. What makes a good tree is judged in
core/topology.py; nothing here decides anything.
"""

from typing import Any

from kthena_components.core.checks.hypernode_reading import (
    GROUP,
    KIND,
    HyperNodesRead,
    read_hyper_node,
    read_hyper_nodes,
)
from kthena_components.core.topology import TopologyPlan
from kthena_components.core.topology_spec import HyperNodeSpec

__all__ = ["HyperNodesRead", "emit_hyper_nodes", "read_hyper_node", "read_hyper_nodes"]

API_VERSION = f"{GROUP}/v1alpha1"


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
