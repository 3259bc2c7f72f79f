"""Reads common fields of objects as a cluster lists them. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from kthena_components.core.plan.templates import requests_of
from kthena_components.core.topology.domains import Labels
from kthena_components.core.values.quantity import add_resources, is_accelerator, parse_quantity
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.unknown import Unknown

Body = Mapping[str, Any]
Listed = Sequence[Body] | Unknown
"""Objects of one kind, or the reason why they could not be listed."""
CLAIMED = "deviceclass/"
"""Before the name of a DeviceClass: the resource of its devices, as in Queues of Volcano."""
_NUMBER = re.compile(r"(\d+)")
_ENDED = ("Succeeded", "Failed")


def name_of(body: Body) -> str:
    """Name of an object."""
    return str(mapping(body.get("metadata")).get("name", ""))


def namespace_of(body: Body) -> str:
    """Namespace of an object, empty for a cluster-scoped one."""
    return str(mapping(body.get("metadata")).get("namespace", ""))


def title_of(body: Body) -> str:
    """Namespace and name of an object, or its name alone."""
    return "/".join(filter(None, (namespace_of(body), name_of(body))))


def labels_of(body: Body) -> Labels:
    """Labels of an object."""
    return mapping(mapping(body.get("metadata")).get("labels"))


def annotations_of(body: Body) -> Labels:
    """Annotations of an object."""
    return mapping(mapping(body.get("metadata")).get("annotations"))


def status_of(body: Body) -> Body:
    """Status of an object, empty when it has none."""
    return mapping(body.get("status"))


def condition_of(body: Body, kind: str) -> Body:
    """Condition of an object by its type, empty when it has none."""
    listed = (mapping(item) for item in sequence(status_of(body).get("conditions")))
    return next((item for item in listed if item.get("type") == kind), {})


def known(listed: Listed) -> Sequence[Body]:
    """Return the listed objects; an empty list if they could not be listed."""
    return () if isinstance(listed, Unknown) else listed


def in_order(text: str) -> list[tuple[int, str]]:
    """Sort key that puts `chat-10` after `chat-9`."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(text)]


def node_labels(nodes: Listed) -> dict[str, Labels]:
    """Labels of each node, by node name."""
    return {name_of(node): labels_of(node) for node in known(nodes)}


def takes_pods(node: Body) -> bool:
    """Return whether a node is ready and not cordoned."""
    ready = condition_of(node, "Ready").get("status") == "True"
    return ready and not mapping(node.get("spec")).get("unschedulable")


def requested(pods: Iterable[Body]) -> dict[str, dict[str, Decimal]]:
    """Requests of all pods that have not ended, by node, including each pod's own slot."""
    found: dict[str, dict[str, Decimal]] = {}
    for pod in pods:
        node = mapping(pod.get("spec")).get("nodeName")
        if node and status_of(pod).get("phase") not in _ENDED:
            held = add_resources(requests_of(dict(pod)), {"pods": Decimal(1)})
            found[str(node)] = add_resources(found.get(str(node), {}), held)
    return found


def accelerators(amounts: Mapping[str, Decimal]) -> int:
    """Number of accelerators among resources, with those that are claimed."""
    return int(sum(amount for key, amount in amounts.items()
                   if is_accelerator(key) or key.startswith(CLAIMED)))  # fmt: skip


def amounts_of(stated: object) -> dict[str, Decimal]:
    """Read a list of resources; amounts that are not quantities are left out."""
    read = ((str(key), parse_quantity(amount)) for key, amount in mapping(stated).items())
    return {key: amount for key, amount in read if amount is not None}
