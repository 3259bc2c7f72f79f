"""What one pod requests of its node, and the parts of its spec that decide about nodes. Pure."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from kthena_components.cluster.node_fit import Amounts
from kthena_components.core.objects.object import requests_in
from kthena_components.core.values.quantity import add_resources, parse_quantity
from kthena_components.core.values.read import mapping, sequence, unknown_in
from kthena_components.core.values.unknown import Unknown

_DECIDES = (
    "nodeSelector", "affinity", "tolerations", "topologySpreadConstraints", "volumes",
    "priorityClassName", "activeDeadlineSeconds",
)  # fmt: skip
_OF_KUBERNETES = "node.kubernetes.io/"
"""Tolerations that the API server adds to every pod."""


def scheduled_requests(spec: Mapping[str, Any]) -> dict[str, Decimal] | Unknown:
    """Add up what the scheduler counts for a pod: containers, init containers, and overhead.

    Source: Kubernetes 1.34 component-helpers resource.PodRequests.
    """
    asked = requests_in(spec)
    if isinstance(asked, Unknown):
        return asked
    overhead = spec.get("overhead")
    if gap := unknown_in(overhead):
        return gap
    read = ((key, parse_quantity(amount)) for key, amount in mapping(overhead).items())
    return add_resources(asked, {key: amount for key, amount in read if amount is not None})


def deciding_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Keep what decides about nodes and quotas: selectors, tolerations, ports, claims, class."""
    kept = {key: spec[key] for key in _DECIDES if spec.get(key)}
    tolerations = [
        each
        for each in map(mapping, sequence(spec.get("tolerations")))
        if not str(each.get("key", "")).startswith(_OF_KUBERNETES)
    ]
    claims = [dict(each) for each in map(mapping, sequence(spec.get("volumes")))
              if "persistentVolumeClaim" in each or "ephemeral" in each]  # fmt: skip
    changed = {"tolerations": tolerations, "volumes": claims, "containers": list(_ports(spec))}
    return {key: value for key, value in {**kept, **changed}.items() if value}


def _ports(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the containers that take ports of the node, with these ports only."""
    host = bool(spec.get("hostNetwork"))
    for container in map(mapping, sequence(spec.get("containers"))):
        ports = [
            {"hostPort": port.get("hostPort") or port.get("containerPort"),
             "protocol": port.get("protocol") or "TCP",
             **({"hostIP": port["hostIP"]} if port.get("hostIP") else {})}
            for port in map(mapping, sequence(container.get("ports")))
            if port.get("hostPort") or (host and port.get("containerPort"))
        ]  # fmt: skip
        if ports:
            yield {"ports": ports}


def slot_and(requests: Amounts) -> dict[str, Decimal]:
    """Add the slot that each pod takes of a node's `pods`."""
    return add_resources(requests, {"pods": Decimal(1)})
