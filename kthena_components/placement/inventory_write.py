"""Writes a cluster as an inventory file, in which equal nodes are one entry. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import yaml

from kthena_components.cluster.objects import condition_of, labels_of
from kthena_components.core import naming
from kthena_components.core.topology.domains import Domain
from kthena_components.core.values.quantity import render_quantity
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.inventory_fields import API_VERSION, KIND, stated
from kthena_components.placement.model import (
    Cluster,
    Node,
    PodGroup,
    PodSet,
    Queue,
    Quota,
    Running,
    Scope,
    SubGroupPolicy,
    Topology,
)

_OF_KUBERNETES = "node.kubernetes.io/"
"""Taints of an unready or cordoned node, which the file states in other words."""
_TAINT = ("key", "value", "effect")


def write_inventory(cluster: Cluster) -> str:
    """Write a cluster as YAML. The same cluster gives the same text."""
    fields = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **stated(
            {
                "taken": None if cluster.taken is None else cluster.taken.isoformat(),
                "source": cluster.source,
                "notes": list(cluster.notes),
                "unknown_devices": cluster.unknown_devices,
                "scheduler": _scheduler(cluster),
                "nodes": list(_nodes(cluster.nodes)),
                "hyper_nodes": list(_hyper_nodes(cluster)),
                "queues": list(map(_queue, cluster.queues)),
                "quotas": list(map(_quota, cluster.quotas)),
                "priorities": dict(sorted(cluster.priorities.items())),
                "limit_ranges": [dict(body) for body in cluster.limit_ranges],
                "volumes": [dict(body) for body in cluster.volumes],
                "running": list(map(_running, cluster.running)),
                "waiting": list(map(_group, cluster.waiting)),
            }
        ),
        **_neighbours(cluster),
    }
    return yaml.dump(fields, Dumper=_Dumper, sort_keys=False, width=120, default_flow_style=None)


class _Dumper(yaml.SafeDumper):
    """Writes no references."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML passes it
        """Write equal values each time."""
        return True


# Kubernetes reads these strings without quotes as truths, and PyYAML as strings.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^[yYnN]$"), list("yYnN"))


def _amounts(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {key: render_quantity(amount) for key, amount in sorted(amounts.items())}


def _nodes(nodes: Sequence[Node]) -> Iterator[dict[str, Any]]:
    """Write nodes, those with equal properties as one entry."""
    alike: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for node in nodes:
        fields = _node(node)
        alike.setdefault(repr(fields), (fields, []))[1].append(node.name)
    for fields, names in alike.values():
        named = {"name": names[0]} if len(names) == 1 else {"names": names}
        yield {**named, **fields}


def _node(node: Node) -> dict[str, Any]:
    """Write a node without its name, so that equal nodes can become one entry."""
    spec = mapping(node.body.get("spec"))
    labels = {key: value for key, value in sorted(labels_of(node.body).items())
              if (key, value) != (naming.HOSTNAME, node.name)}  # fmt: skip
    taints = [
        {key: taint[key] for key in _TAINT if taint.get(key)}
        for taint in map(mapping, sequence(spec.get("taints")))
        if not str(taint.get("key", "")).startswith(_OF_KUBERNETES)
    ]
    ready = condition_of(node.body, "Ready").get("status") == "True"
    return {
        "resources": _amounts(node.allocatable),
        **stated({"used": _amounts(node.used), "labels": labels, "taints": taints}),
        **({"cordoned": True} if spec.get("unschedulable") else {}),
        **({} if ready else {"ready": False}),
    }


def _hyper_nodes(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Write each HyperNode with the nodes that its selectors find, and its children."""
    domains = {domain.name: domain for domain in cluster.domains}
    for body in cluster.hyper_nodes:
        name = str(mapping(body.get("metadata")).get("name", ""))
        if name in domains:
            children = [each for each in _children(body) if each in domains]
            yield _hyper_node(domains[name], children, domains)


def _hyper_node(
    domain: Domain, children: Sequence[str], domains: Mapping[str, Domain]
) -> dict[str, Any]:
    below = frozenset[str]().union(*(domains[child].nodes for child in children))
    listed = {"nodes": sorted(domain.nodes - below), "children": list(children)}
    tier_name = {"tier_name": domain.tier_name} if domain.tier_name else {}
    return {"name": domain.name, "tier": domain.tier, **tier_name, **stated(listed)}


def _children(body: Mapping[str, Any]) -> Iterator[str]:
    for member in map(mapping, sequence(mapping(body.get("spec")).get("members"))):
        exact = mapping(mapping(member.get("selector")).get("exactMatch"))
        if member.get("type") == "HyperNode" and exact.get("name"):
            yield str(exact["name"])


def _queue(queue: Queue) -> dict[str, Any]:
    """Write a queue; empty amounts and defaults are left out."""
    amounts = {
        field: _amounts(getattr(queue, field))
        for field in ("capability", "deserved", "guarantee", "used")
    }
    closed = {} if queue.open else {"open": False}
    return {"name": queue.name, "weight": queue.weight,
            **stated({"priority": queue.priority, "parent": queue.parent, **amounts}),
            **closed}  # fmt: skip


def _quota(quota: Quota) -> dict[str, Any]:
    return {
        "namespace": quota.namespace,
        "name": quota.name,
        "hard": _amounts(quota.hard),
        "used": _amounts(quota.used),
        **stated({"scopes": list(map(_scope, quota.scopes))}),
    }


def _scope(scope: Scope) -> dict[str, Any]:
    values = {"values": list(scope.values)} if scope.values else {}
    return {"name": scope.name, "operator": scope.operator, **values}


def _running(running: Running) -> dict[str, Any]:
    return {"group": _group(running.group), "nodes": list(running.nodes)}


def _neighbours(cluster: Cluster) -> dict[str, Any]:
    """Write the other pods that run, if they are known: also that there are none."""
    if cluster.neighbours is None:
        return {}
    listed = [
        {
            "namespace": one.namespace,
            **stated({"labels": dict(sorted(one.pods.labels.items())),
                      "spec": dict(one.pods.spec)}),
            "nodes": list(one.nodes),
        }
        for one in cluster.neighbours
    ]  # fmt: skip
    return {"neighbours": listed}


def _group(group: PodGroup) -> dict[str, Any]:
    """Write a group with its pods; amounts are in Kubernetes units."""
    least = None if group.min_resources is None else _amounts(group.min_resources)
    return {
        "namespace": group.namespace,
        "name": group.name,
        **stated(
            {
                "owner": group.owner,
                "minimum": group.minimum,
                "task_minimum": dict(group.task_minimum),
                "topology": _topology(group.topology),
                "subgroups": list(map(_subgroup, group.subgroups)),
                "priority": group.priority,
                "min_resources": least,
            }
        ),
        "queue": group.queue,
        "scheduler": group.scheduler,
        "pods": list(map(_pods, group.pods)),
    }


def _pods(pods: PodSet) -> dict[str, Any]:
    """Write a set of equal pods: their number and the fields that decide about nodes."""
    return {
        "name": pods.name,
        "count": pods.count,
        "requests": _amounts(pods.requests),
        **stated(
            {
                "task": pods.task,
                "labels": dict(sorted(pods.labels.items())),
                "priority": pods.priority,
                "spec": dict(pods.spec),
            }
        ),
    }


def _subgroup(policy: SubGroupPolicy) -> dict[str, Any]:
    """Write a policy of subgroups; its defaults are left out."""
    return {
        "size": policy.size,
        "minimum": policy.minimum,
        **stated(
            {
                "name": policy.name,
                "match_labels": dict(policy.match_labels),
                "match_label_keys": list(policy.match_label_keys),
                "topology": _topology(policy.topology),
            }
        ),
    }


def _topology(topology: Topology | None) -> dict[str, Any] | None:
    """Write a network topology: hard or soft, up to a tier by number or name."""
    if topology is None:
        return None
    tier = {} if topology.highest_tier is None else {"highest_tier_allowed": topology.highest_tier}
    name = topology.highest_tier_name
    return {
        "mode": "hard" if topology.hard else "soft",
        **tier,
        **({"highest_tier_name": name} if name else {}),
    }


def _scheduler(cluster: Cluster) -> dict[str, Any]:
    scheduler = cluster.scheduler
    arguments = {name: dict(given) for name, given in sorted(scheduler.arguments.items()) if given}
    return {
        "version": scheduler.version,
        "plugins": sorted(scheduler.plugins),
        **stated({"arguments": arguments}),
    }
