"""Arranges nodes in their racks: the HyperNodes of the lowest tier that contain them. Pure."""

from collections.abc import Callable, Iterable, Sequence

from kthena_components.cluster.objects import (
    Body,
    accelerators,
    allocatable,
    condition_of,
    in_order,
    labels_of,
    name_of,
)
from kthena_components.core.topology.domains import Domain
from kthena_components.core.values.read import mapping
from kthena_components.drawing.picture import GroupRow, NodeBox, PodBox, RackBox

_PRODUCTS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
"""Labels of GPU feature discovery, by which nodes state their GPU."""


def node_box(body: Body, pods: Iterable[PodBox], used: int) -> NodeBox:
    """Describe a node as the API server lists it, with its pods sorted by name."""
    labels = labels_of(body)
    return NodeBox(
        name=name_of(body),
        gpus=accelerators(allocatable(body)),
        used=used,
        pods=tuple(sorted(pods, key=lambda pod: (in_order(pod.group), in_order(pod.name)))),
        product=next((labels[key] for key in _PRODUCTS if labels.get(key)), ""),
        closed=why_closed(body),
    )


def why_closed(body: Body) -> str:
    """Return why a node takes no pods; empty if it does."""
    if mapping(body.get("spec")).get("unschedulable"):
        return "cordoned"
    return "" if condition_of(body, "Ready").get("status") == "True" else "not ready"


def racks_of(nodes: Iterable[NodeBox], domains: Sequence[Domain]) -> tuple[RackBox, ...]:
    """Put each node into its rack. Nodes outside of any come last, in a rack without a name."""
    rack_of: dict[str, Domain] = {}
    for domain in sorted(domains, key=lambda one: (one.tier, len(one.nodes), one.name)):
        for name in domain.nodes:
            rack_of.setdefault(name, domain)
    held: dict[str, list[NodeBox]] = {}
    for node in nodes:
        rack = rack_of.get(node.name)
        held.setdefault(rack.name if rack else "", []).append(node)
    by_name = {domain.name: domain for domain in domains}
    return tuple(
        RackBox(
            name=name,
            tier=by_name[name].tier if name else 0,
            nodes=tuple(sorted(held[name], key=lambda node: in_order(node.name))),
            within=_around(by_name[name], domains) if name else (),
        )
        for name in sorted(held, key=lambda name: (not name, in_order(name)))
    )


def _around(rack: Domain, domains: Sequence[Domain]) -> tuple[str, ...]:
    found = [one for one in domains if one.tier > rack.tier and rack.nodes <= one.nodes]
    return tuple(one.name for one in sorted(found, key=lambda one: (one.tier, one.name)))


def asked_titles(groups: Iterable[GroupRow]) -> frozenset[str]:
    """Return the titles of the groups that are asked about."""
    return frozenset(group.title for group in groups)


def folded(
    nodes: Sequence[NodeBox], most: int, matters: Callable[[NodeBox], bool]
) -> tuple[Sequence[NodeBox], Sequence[NodeBox]]:
    """Return the nodes to draw and the others: all, if they are few; else those that matter."""
    if len(nodes) <= most:
        return nodes, ()
    first = sorted(nodes, key=lambda node: not matters(node))
    return first[:most], first[most:]
