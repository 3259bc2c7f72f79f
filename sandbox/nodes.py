"""The fake GPU nodes: Nodes and HyperNodes, in racks under one spine."""

from typing import Any

RACK, SPINE = "rack", "spine"
LABEL = "topology.kthena-components/rack"
"""The label with the rack of a node."""


def node(name: str, rack: str, gpus: int) -> dict[str, Any]:
    """Return a Node as a kubelet would register it."""
    resources = {
        "cpu": "192",
        "memory": "2000Gi",
        "ephemeral-storage": "8000Gi",
        "pods": "110",
        "nvidia.com/gpu": str(gpus),
    }
    labels = {"kubernetes.io/hostname": name, LABEL: rack, "type": "kwok"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"allocatable": resources, "capacity": resources},
    }


def nodes(racks: int, per_rack: int, gpus: int) -> list[dict[str, Any]]:
    """Return all Nodes, rack by rack."""
    return [
        node(f"{RACK}-{rack}-node-{number}", f"{RACK}-{rack}", gpus)
        for rack in range(racks)
        for number in range(per_rack)
    ]


def hyper_nodes(racks: int) -> list[dict[str, Any]]:
    """Return the HyperNodes of the racks (tier 1) and of the spine (tier 2)."""
    leaves = [
        _hyper_node(f"{RACK}-{rack}", 1, [_by_label(f"{RACK}-{rack}")]) for rack in range(racks)
    ]
    children = [_by_name(leaf["metadata"]["name"]) for leaf in leaves]
    return [*leaves, _hyper_node(f"{SPINE}-0", 2, children)]


def _hyper_node(name: str, tier: int, members: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {"tier": tier, "members": members},
    }


def _by_label(rack: str) -> dict[str, Any]:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": {LABEL: rack}}}}


def _by_name(name: str) -> dict[str, Any]:
    return {"type": "HyperNode", "selector": {"exactMatch": {"name": name}}}
