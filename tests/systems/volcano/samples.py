"""Objects of Volcano that are right, and how tests break them."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kthena_components.core.findings import Finding
from tests.support.specs import Args

SCHEDULING = "scheduling.volcano.sh/v1beta1"
LATE = "\ue0007\ue001"
HARD = {"mode": "hard", "highestTierAllowed": 1}
KEY = "volcano.sh/engine"
OTHER = "not checked, because the value is known only after the deployment"

POD_GROUP: Final[Args] = {
    "apiVersion": SCHEDULING,
    "kind": "PodGroup",
    "metadata": {"name": "chat-0", "namespace": "serving"},
    "spec": {
        "minMember": 4,
        "minTaskMember": {"leader": 1, "worker": 3},
        "minResources": {"nvidia.com/gpu": "32", "pods": 4},
        "queue": "research",
        "priorityClassName": "high",
        "networkTopology": dict(HARD),
        "subGroupPolicy": [
            {
                "name": "engine",
                "labelSelector": {"matchLabels": {"app": "chat"}},
                "matchLabelKeys": [KEY],
                "subGroupSize": 2,
                "minSubGroups": 2,
                "networkTopology": dict(HARD),
            }
        ],
    },
}
QUEUE: Final[Args] = {
    "apiVersion": SCHEDULING,
    "kind": "Queue",
    "metadata": {"name": "research"},
    "spec": {
        "weight": 1,
        "reclaimable": True,
        "parent": "all",
        "guarantee": {"resource": {"nvidia.com/gpu": 8}},
        "deserved": {"nvidia.com/gpu": "16", "cpu": "100"},
        "capability": {"nvidia.com/gpu": "64", "cpu": "100", "memory": "1Ti"},
    },
}
JOB: Final[Args] = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {
        "minAvailable": 8,
        "queue": "research",
        "networkTopology": dict(HARD),
        "tasks": [
            {
                "name": "worker",
                "replicas": 8,
                "minAvailable": 4,
                "partitionPolicy": {
                    "totalPartitions": 4,
                    "partitionSize": 2,
                    "minPartitions": 2,
                    "networkTopology": dict(HARD),
                },
                "template": {"spec": {"containers": [{"name": "w"}]}},
            }
        ],
    },
}


def exact(name: str, kind: str = "Node") -> Args:
    """Give a member that is found by its name."""
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def hyper_node(name: str, tier: int, *members: Args, tier_name: str | None = None) -> Args:
    """Give a HyperNode."""
    spec: Args = {"tier": tier, "members": list(members)}
    if tier_name:
        spec["tierName"] = tier_name
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": spec,
    }


TREE: Final[tuple[Args, ...]] = (
    hyper_node("rack-1", 1, exact("gpu-1"), exact("gpu-2"), tier_name="rack"),
    hyper_node("rack-2", 1, exact("gpu-3"), exact("gpu-4"), tier_name="rack"),
    hyper_node(
        "spine", 2, exact("rack-1", "HyperNode"), exact("rack-2", "HyperNode"), tier_name="spine"
    ),
)


def pods(name: str, replicas: Any = 2, engine: str = "a", **more: Any) -> Args:
    """Give a StatefulSet of pods of 8 GPUs that belong to the gang chat-0."""
    resources = more.pop("resources", {"limits": {"nvidia.com/gpu": 8}})
    metadata = {
        "labels": {"app": "chat", KEY: engine, **more.pop("labels", {})},
        "annotations": {
            "scheduling.k8s.io/group-name": more.pop("gang", "chat-0"),
            "volcano.sh/task-spec": more.pop("task", "worker"),
        },
    }
    image = "registry.example.com/server:1"
    container = {"name": "engine", "image": image, "resources": resources, **more}
    spec = {"schedulerName": "volcano", "containers": [container]}
    template = {"metadata": metadata, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "serving"},
        "spec": {
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "serviceName": "chat",
            "template": template,
            "selector": {"matchLabels": {"app": "chat"}},
        },
    }


def secret_env(key: str, **more: Any) -> list[Args]:
    """Give the env of a container that takes a key from the Secret hf."""
    reference = {"name": "hf", "key": key, **more}
    return [{"name": "T", "valueFrom": {"secretKeyRef": reference}}]


def lines(findings: list[Finding]) -> list[str]:
    """Write findings as text, each after the first letter of its level."""
    return [f"{finding.level[0].upper()} {finding}" for finding in findings]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List every place in a tree."""
    inside: Any = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in inside:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))


def with_value(manifest: Any, place: tuple[Any, ...], value: Any) -> Any:
    """Give a copy with another value at a place."""
    result = copy.deepcopy(manifest)
    holder = result
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = value
    return result
