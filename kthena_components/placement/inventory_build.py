"""Builds the cluster that an inventory file describes, and finds what contradicts itself. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, Level, count_of, nearest
from kthena_components.core.hardware import PRODUCT_KEYS, find_gpu, node_label
from kthena_components.core.topology.domains import Domain, read_domains
from kthena_components.core.topology.hypernode_tree import check_tree, place_of
from kthena_components.core.topology.node_fit import USUAL_PODS, Amounts
from kthena_components.core.topology.spec import HyperNodeSpec, TopologyPlan
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import render_quantity
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.inventory_fields import (
    InventoryFields,
    MachineFields,
    NodeFields,
    RackFields,
)
from kthena_components.placement.inventory_groups import (
    check_fields,
    check_size,
    groups_of,
    neighbours_of,
    queues_of,
    quotas_of,
    running_of,
    scheduler_of,
)
from kthena_components.placement.model import Cluster, Node
from kthena_components.placement.racks import USUAL, missing_labels, racks_of, usual_labels
from kthena_components.systems.volcano.emit_cluster import emit_hyper_nodes

_GPU = "nvidia.com/gpu"
_MEMORY = "nvidia.com/gpu.memory"
_PLACE = re.compile(r"\bhyper_nodes\[\d+\]")
UNSTATED: Amounts = {
    "cpu": Decimal(10**5),
    "memory": Decimal(2**50),
    "ephemeral-storage": Decimal(2**50),
}
"""What a node gets of a resource that its inventory does not state: more than pods request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A node of the file, with what it takes from its rack and from the whole inventory."""

    path: str
    name: str
    layers: tuple[MachineFields, ...]
    """The inventory, the rack if it is in one, and the node."""

    def first(self, field: str) -> Any:
        """Return the value of a field that is stated closest to the node."""
        found = (getattr(layer, field) for layer in reversed(self.layers))
        return next((value for value in found if value is not None), None)

    def merged(self, field: str) -> dict[str, Any]:
        """Return the maps of all layers as one; the closest to the node wins."""
        return {key: value for layer in self.layers for key, value in getattr(layer, field).items()}


def build(fields: InventoryFields, source: str = "") -> tuple[Cluster, list[Finding]]:
    """Build the cluster of a file. It is of use only if there are no findings."""
    if too_many := list(check_size(fields)):
        return Cluster(nodes=()), too_many
    described = list(_described(fields))
    nodes = dict[str, Node]()
    found = [*_twice(described), *check_fields(fields)]
    # A cluster has such numbers for a while: pods keep a GPU that its device plugin withdrew.
    found += [] if fields.taken else [each for one in described for each in _overused(one)]
    for one in described:
        gpu = find_gpu(one.first("product")) if one.first("product") else None
        if isinstance(gpu, Unknown):
            found.append(_no_product(one, gpu))
        nodes.setdefault(one.name, _node(one))
    labels = {name: node.body["metadata"]["labels"] for name, node in nodes.items()}
    racks = _racks(fields, described)
    chosen = usual_labels(labels) if fields.racks_from == [USUAL] else fields.racks_from
    stated = [*racks, *fields.hyper_nodes]
    entries = stated or racks_of(chosen, labels)
    missing = () if stated else missing_labels(fields.racks_from, chosen, labels)
    found += [*_check_tree(entries, len(racks)), *_absent(fields, set(nodes))]
    hyper_nodes = emit_hyper_nodes(TopologyPlan(tuple(sorted(entries, key=lambda one: one.tier))))
    domains = read_domains(hyper_nodes, labels)
    found += [*(() if found else in_two(domains)), *_lost(fields, set(nodes))]
    cluster = Cluster(
        nodes=list(nodes.values()),
        domains=domains,
        hyper_nodes=hyper_nodes,
        queues=queues_of(fields),
        quotas=quotas_of(fields),
        limit_ranges=tuple(fields.limit_ranges),
        volumes=tuple(fields.volumes),
        running=running_of(fields),
        waiting=groups_of(fields.waiting),
        neighbours=neighbours_of(fields),
        scheduler=scheduler_of(fields.scheduler),
        priorities=fields.priorities,
        unstated_labels=_unstated_labels(fields, described),
        unknown_devices=fields.unknown_devices,
        taken=fields.taken,
        source=source or fields.source,
        notes=(*fields.notes, *_not_stated(described), *missing),
    )
    return cluster, list(dict.fromkeys(found))


def _described(fields: InventoryFields) -> Iterator[Described]:
    """List all nodes, those of racks first."""
    for index, rack in enumerate(fields.racks):
        name, at = _name_of(rack, index), f"racks[{index}]"
        listed = [NodeFields()] * (fields.nodes_per_rack or 0) if rack.nodes is None else rack.nodes
        for number, node in enumerate(listed):
            path = at if rack.nodes is None else f"{at}.nodes[{number}]"
            for one in node.names or [node.name or f"{name}-node-{number + 1}"]:
                yield Described(path=path, name=one, layers=(fields, rack, node))
    for number, node in enumerate(fields.nodes):
        for one in node.names or [node.name or f"node-{number + 1}"]:
            yield Described(path=f"nodes[{number}]", name=one, layers=(fields, node))


def _name_of(rack: RackFields, index: int) -> str:
    return rack.name or f"rack-{index + 1}"


def _racks(fields: InventoryFields, described: Iterable[Described]) -> list[HyperNodeSpec]:
    """Return the HyperNodes of racks. A rack without nodes is one without members."""
    members: dict[int, list[str]] = {}
    for one in described:
        members.setdefault(id(one.layers[1]), []).append(one.name)
    return [
        HyperNodeSpec(name=_name_of(rack, index), tier=1, nodes=members.get(id(rack), []))
        for index, rack in enumerate(fields.racks)
    ]


def _node(one: Described) -> Node:
    """Build a node from its layers.

    If its CPU or memory is not stated, it gets more than any pod asks for (UNSTATED).
    """
    resource = _resource_of(one)
    stated = {"cpu": one.first("cpu"), "memory": one.first("memory"), "pods": one.first("pods")}
    gpus = one.first("gpus")
    amounts = {key: value for key, value in stated.items() if value is not None}
    counted = {} if gpus is None else {resource: Decimal(gpus)}
    allocatable = {"pods": USUAL_PODS, **counted, **one.merged("resources"), **amounts}
    if not {"cpu", "memory"} <= allocatable.keys():
        allocatable = {**UNSTATED, **allocatable}
    used = {resource if key == "gpus" else key: each for key, each in one.merged("used").items()}
    accepts = all(layer.ready and not layer.cordoned for layer in one.layers)
    return Node(
        name=one.name,
        body=_body(one, allocatable),
        allocatable=allocatable,
        used=used,
        accepts_pods=accepts,
    )


def _body(one: Described, allocatable: Amounts) -> dict[str, Any]:
    """Write a node as the API server lists it, as far as pods ask for its properties."""
    taints = [taint.model_dump() for taint in one.first("taints") or ()]
    cordoned = any(layer.cordoned for layer in one.layers)
    spec = {
        **({"taints": taints} if taints else {}),
        **({"unschedulable": True} if cordoned else {}),
    }
    ready = "True" if all(layer.ready for layer in one.layers) else "False"
    amounts = {key: render_quantity(amount) for key, amount in allocatable.items()}
    labels = {naming.HOSTNAME: one.name, **_product_labels(one), **one.merged("labels")}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": one.name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]},
    }


def _product_labels(one: Described) -> dict[str, str]:
    """Return the labels of nodes with the product, by GPU feature discovery or by the cloud."""
    gpu = find_gpu(one.first("product")) if one.first("product") else None
    if gpu is None or isinstance(gpu, Unknown):
        return {}
    labels = dict(filter(None, (node_label(gpu, by) for by in ("product", "gke"))))
    memory = {_MEMORY: str(int(gpu.memory_gib * 1024))} if _GPU in gpu.resources else {}
    return {**labels, **memory}


def _resource_of(one: Described) -> str:
    if one.first("resource"):
        return str(one.first("resource"))
    gpu = find_gpu(one.first("product")) if one.first("product") else None
    known = () if gpu is None or isinstance(gpu, Unknown) else gpu.resources
    return next(iter(known), _GPU)


def _unstated_labels(fields: InventoryFields, described: Sequence[Described]) -> frozenset[str]:
    """Return the labels of the GPU if it was written by hand and no node says which it has."""
    labels = PRODUCT_KEYS | {_MEMORY}
    stated = any(one.first("product") or labels & one.merged("labels").keys() for one in described)
    return frozenset() if stated or fields.taken is not None else labels


def _not_stated(described: Sequence[Described]) -> Iterator[str]:
    """Say which of CPU and memory some nodes do not state."""
    lacking = {
        name
        for one in described
        for name in ("cpu", "memory")
        if one.first(name) is None and name not in one.merged("resources")
    }
    if lacking:
        named = " and ".join("CPU" if name == "cpu" else name for name in sorted(lacking))
        yield f"{named} of some nodes are not stated, so they were not compared"


# What contradicts itself.


def _twice(described: Iterable[Described]) -> Iterator[Finding]:
    """Report nodes that are listed twice."""
    first: dict[str, str] = {}
    for one in described:
        if one.name in first:
            yield Finding(
                path=one.path, seen=f"node '{one.name}' is already in {first[one.name]}",
                remedy="give it another name, or list it once",
            )  # fmt: skip
        first.setdefault(one.name, one.path)


def _overused(one: Described) -> Iterator[Finding]:
    """Report more than the node has in `used`, which nothing could have requested there."""
    names, amounts = {"gpus": _resource_of(one)}, _node(one).allocatable
    for key, used in one.merged("used").items():
        name = names.get(key, key)
        has = amounts.get(name, UNSTATED.get(name, Decimal(0)))
        if used <= has:
            continue
        shown = render_quantity(has)
        yield Finding(
            path=f"{_place_of(one, 'used', key)}used.{key}",
            seen=f"is {render_quantity(used)}, but the node has {shown} of {name}",
            remedy=f"write at most {shown}" if has else f"state its {key}, or remove it here",
        )


def _no_product(one: Described, gpu: Unknown) -> Finding:
    remedy = "write the product's name, or only labels"
    return Finding(path=f"{_place_of(one, 'product')}product", seen=gpu.because, remedy=remedy)


def _place_of(one: Described, field: str, key: str = "") -> str:
    """Return where a field that a node takes is stated, as the beginning of a path."""
    rack = f"{one.path.partition('.')[0]}."
    places = ("", f"{one.path}.") if len(one.layers) == 2 else ("", rack, f"{one.path}.")  # noqa: PLR2004
    stated = [
        place
        for place, layer in zip(places, one.layers, strict=True)
        if (key in getattr(layer, field) if key else getattr(layer, field) is not None)
    ]
    return stated[-1]


def _check_tree(entries: Sequence[HyperNodeSpec], racks: int) -> Iterator[Finding]:
    """Check the HyperNodes as a stack's; racks come first in the list."""
    places = {place_of(i): f"racks[{i}]" for i in range(racks)}
    places |= {place_of(i): place_of(i - racks) for i in range(racks, len(entries))}

    def ours(text: str) -> str:
        return _PLACE.sub(lambda place: places.get(place[0], place[0]), text)

    for finding in check_tree(entries):
        if finding.level is Level.MANDATORY:
            yield replace(finding.at(ours), seen=ours(finding.seen))


def in_two(domains: Sequence[Domain]) -> Iterator[Finding]:
    """Report nodes in two HyperNodes of one tier."""
    tiers: dict[int, list[Domain]] = {}
    for domain in domains:
        tiers.setdefault(domain.tier, []).append(domain)
    for tier, found in tiers.items():
        if sum(len(one.nodes) for one in found) == len(set().union(*(one.nodes for one in found))):
            continue
        for one, other in combinations(found, 2):
            for node in sorted(one.nodes & other.nodes)[:1]:
                yield Finding(
                    path="",
                    seen=f"node '{node}' is in the HyperNodes '{one.name}' and '{other.name}', "
                    f"both of tier {tier}, but a node is in one of each tier",
                    remedy="list it in one of them",
                )  # fmt: skip


def _absent(fields: InventoryFields, nodes: set[str]) -> Iterator[Finding]:
    """Report nodes that HyperNodes name and that do not exist."""
    for index, entry in enumerate(fields.hyper_nodes):
        for number, name in enumerate(entry.nodes):
            if name not in nodes:
                yield _unknown_node(f"hyper_nodes[{index}].nodes[{number}]", name, nodes)


def _lost(fields: InventoryFields, nodes: set[str]) -> Iterator[Finding]:
    """Report running groups whose nodes do not exist, or are not as many as their pods."""
    for index, running in enumerate(fields.running):
        size = sum(pods.count for pods in running.group.pods)
        if size != len(running.nodes):
            yield Finding(
                path=f"running[{index}].nodes",
                seen=f"lists {count_of(len(running.nodes), 'node')}, but the group has "
                f"{count_of(size, 'pod')}",
                remedy="list the node of each pod, and '' for one that waits",
            )  # fmt: skip
        for number, name in enumerate(running.nodes):
            if name and name not in nodes:
                yield _unknown_node(f"running[{index}].nodes[{number}]", name, nodes)
    for index, neighbour in enumerate(fields.neighbours or ()):
        for number, name in enumerate(neighbour.nodes):
            if name not in nodes:
                yield _unknown_node(f"neighbours[{index}].nodes[{number}]", name, nodes)


def _unknown_node(path: str, name: str, nodes: Mapping[str, object] | set[str]) -> Finding:
    close = nearest(name, sorted(nodes)[:1000])
    return Finding(
        path=path, seen=f"is '{name}', but there is no node of this name",
        remedy=f"write '{close}'" if close else "add the node, or remove it here",
    )  # fmt: skip
