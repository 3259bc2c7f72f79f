"""Hand-made objects of a cluster, as its API server lists them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from kthena_components.cluster.requirements import HYPER_NODE, MODEL_SERVING, POD_GROUP
from kthena_components.cluster.snapshot import Snapshot
from kthena_components.core import naming

NOW = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)
LONG_AGO = "2026-01-02T11:00:00Z"
JUST_NOW = "2026-01-02T11:59:50Z"
RACK = "rack"
Body = dict[str, Any]


def node(name: str, rack: str = "", *, gpus: int = 8, ready: bool = True, **spec: Any) -> Body:
    return {
        "metadata": {"name": name, "labels": {RACK: rack} if rack else {}},
        "spec": spec,
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus), "cpu": "64", "memory": "1Ti",
                            "pods": "110"},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }  # fmt: skip


def racks(number: int, nodes: int) -> list[Body]:
    return [node(f"n-{r}-{n}", f"r{r}") for r in range(number) for n in range(nodes)]


def hyper_node(name: str, tier: int, *members: Mapping[str, Any], **spec: Any) -> Body:
    return {
        "apiVersion": HYPER_NODE[0], "kind": HYPER_NODE[1], "metadata": {"name": name},
        "spec": {"tier": tier, "members": list(members), **spec},
    }  # fmt: skip


def by_label(rack: str) -> Body:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": {RACK: rack}}}}


def by_name(name: str, kind: str = "Node") -> Body:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def by_pattern(pattern: str) -> Body:
    return {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}


def tree(number: int) -> list[Body]:
    leaves = [hyper_node(f"r{r}", 1, by_label(f"r{r}")) for r in range(number)]
    return [
        *leaves,
        hyper_node("spine", 2, *(by_name(f"r{r}", "HyperNode") for r in range(number))),
    ]


def pod(
    name: str, group: str = "chat-0", *, node: str = "", phase: str = "", gang: str | None = None,
    ready: bool = True, conditions: list[Body] | None = None, **status: Any,
) -> Body:  # fmt: skip
    serving = group.rpartition("-")[0]
    stated = phase or ("Running" if node else "Pending")
    checked = [{"type": "Ready", "status": "True"}] if ready and node else []
    return {
        "metadata": {
            "name": name, "namespace": "serving",
            "labels": {naming.NAME: serving, naming.GROUP_NAME: group, naming.ROLE_ID: "serve-0"},
            "annotations": {naming.POD_GROUP: group if gang is None else gang},
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"resources": {"requests": {"nvidia.com/gpu": "8"}}}],
        },
        "status": {"phase": stated, "conditions": checked + (conditions or []), **status},
    }  # fmt: skip


def pod_group(name: str = "chat-0", phase: str = "Running", least: int = 2, **more: Any) -> Body:
    return {
        "metadata": {
            "name": name, "namespace": "serving", "creationTimestamp": LONG_AGO,
            "labels": {naming.NAME: name.rpartition("-")[0], naming.GROUP_NAME: name},
        },
        "spec": {"minMember": least, **more},
        "status": {"phase": phase} if phase else {},
    }  # fmt: skip


def refused(group: Body, message: str) -> Body:
    said = {"type": "Unschedulable", "status": "True", "message": message}
    return {**group, "status": {**group["status"], "conditions": [said]}}


def queue(name: str = "default", state: str = "Open") -> Body:
    status = {"state": state, "allocated": {"cpu": "0"}} if state else {}
    return {"metadata": {"name": name, "creationTimestamp": LONG_AGO}, "status": status}


def deployment(key: str, value: str, ready: int = 1) -> Body:
    return {
        "metadata": {"name": value, "namespace": "system", "labels": {key: value}},
        "spec": {"replicas": 1,
                 "template": {"spec": {"containers": [{"image": f"registry/{value}:v1.14.1"}]}}},
        "status": {"readyReplicas": ready},
    }  # fmt: skip


def config(*plugins: str) -> Body:
    listed = "".join(f"\n  - name: {plugin}" for plugin in plugins)
    return {
        "metadata": {"name": "volcano-scheduler-configmap", "namespace": "volcano-system"},
        "data": {"volcano-scheduler.conf": f"actions: allocate\ntiers:\n- plugins:{listed}\n"},
    }


SUB_GROUPS = {"properties": {"spec": {"properties": {"subGroupPolicy": {"type": "array"}}}}}
ROLES = {"type": "array", "items": {"properties": {"maxUnavailable": {}}}}
ROLE_BUDGET = {
    "properties": {"spec": {"properties": {"template": {"properties": {"roles": ROLES}}}}}
}


def healthy(**changes: Any) -> Snapshot:
    """Two racks of four nodes, everything installed, nothing deployed."""
    seen = {
        "server": "https://cluster", "version": "v1.34.4", "user": "ann", "now": NOW,
        "served": {
            "scheduling.volcano.sh/v1beta1": ["PodGroup", "Queue"],
            "topology.volcano.sh/v1alpha1": ["HyperNode"],
            "workload.serving.volcano.sh/v1alpha1": ["ModelServing"],
        },
        "schemas": {POD_GROUP: SUB_GROUPS, MODEL_SERVING: ROLE_BUDGET},
        "queues": [queue()], "hyper_nodes": tree(2), "nodes": racks(2, 4),
        "scheduler_config": config("gang", "network-topology-aware"),
    }  # fmt: skip
    return Snapshot(**{**seen, **changes})
