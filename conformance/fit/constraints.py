"""What every placement must satisfy, whoever decided it: capacity, nodes that accept, tier caps."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from kthena_components.cluster.objects import labels_of
from kthena_components.core.topology.domains import Domain, lowest
from kthena_components.core.topology.node_fit import obstacles
from kthena_components.core.values.quantity import add_resources
from kthena_components.placement.model import Cluster, PodGroup, PodSet, Topology
from kthena_components.placement.volcano.neighbours import read_peer

Placed = Mapping[str, Sequence[str]]
"""The node of each pod of a group, in the order of its pods; empty for a pod without one."""


def broken(cluster: Cluster, groups: Sequence[PodGroup], placed: Placed) -> Iterator[str]:
    """List the constraints that a placement breaks."""
    yield from _overfull(cluster, groups, placed)
    yield from _too_close(cluster, groups, placed)
    by_name = {node.name: node for node in cluster.nodes}
    for group in groups:
        nodes = placed.get(group.name, ())
        count = sum(map(bool, nodes))
        if 0 < count < group.minimum:
            yield f"{group.title}: {count} of at least {group.minimum} pods are placed"
        for pods, name in zip(each_pod(group), nodes, strict=False):
            if not name:
                continue
            node = by_name[name]
            if not node.accepts_pods or any(obstacles(pods.spec, node.body)):
                yield f"{group.title}: {name} does not accept {pods.name}"
        for topology, own in _bounds(group, nodes):
            cap = cap_of(topology, cluster.domains)
            domain = lowest(cluster.domains, frozenset(own))
            if cap is not None and (domain is None or domain.tier > cap):
                yield f"{group.title}: {sorted(own)} are in {domain}, and the cap is tier {cap}"


def each_pod(group: PodGroup) -> Iterator[PodSet]:
    """List the pods of a group one by one, each as its set."""
    for pods in group.pods:
        for _ in range(pods.count):
            yield pods


def cap_of(topology: Topology | None, domains: Sequence[Domain]) -> int | None:
    """Return the highest tier that pods may span; None if they may be anywhere."""
    if topology is None or not topology.hard:
        return None
    cap = topology.highest_tier
    if cap is None and topology.highest_tier_name:
        names = {domain.tier_name: domain.tier for domain in domains}
        cap = names.get(topology.highest_tier_name)
    top = max((domain.tier for domain in domains), default=0)
    return cap if cap is not None and cap <= top else None


def _overfull(cluster: Cluster, groups: Sequence[PodGroup], placed: Placed) -> Iterator[str]:
    used: dict[str, Mapping[str, Decimal]] = {node.name: node.used for node in cluster.nodes}
    for group in groups:
        for pods, name in zip(each_pod(group), placed.get(group.name, ()), strict=False):
            if name:
                held = add_resources(dict(pods.requests), {"pods": Decimal(1)})
                used[name] = add_resources(dict(used[name]), held)
    for node in cluster.nodes:
        for key, amount in used[node.name].items():
            room = node.allocatable.get(key, Decimal(0))
            if amount > room and amount > node.used.get(key, 0):
                yield f"{node.name}: {amount} of {room} {key} are used"


def _too_close(cluster: Cluster, groups: Sequence[PodGroup], placed: Placed) -> Iterator[str]:
    """List host ports that two pods have on one node, and equal pods that are not apart.

    Pods that differ may come close after each other: within a session, the scheduler does not see
    the anti-affinity of pods that it has just placed.
    """
    labels = {node.name: labels_of(node.body) for node in cluster.nodes}
    ports: Counter[object] = Counter()
    apart: Counter[object] = Counter()
    for group in groups:
        for pods, name in zip(each_pod(group), placed.get(group.name, ()), strict=False):
            peer = read_peer(pods, group.namespace, {})
            ports.update((name, port.number, port.protocol) for port in peer.ports if name)
            apart.update(
                (group.name, pods.name, repr(pods), term.key, labels[name][term.key])
                for term in peer.apart
                if name and term.matches(peer) and term.key in labels[name]
            )
    yield from (f"{port} is used twice" for port, number in ports.items() if number > 1)
    yield from (f"{place} has pods that must be apart" for place, n in apart.items() if n > 1)


def _bounds(
    group: PodGroup, nodes: Sequence[str]
) -> Iterator[tuple[Topology | None, Iterable[str]]]:
    """List each set of nodes that a topology bounds: the group, and each subgroup."""
    own = [name for name in nodes if name]
    if own:
        yield group.topology, own
    for policy in group.subgroups:
        engines: dict[tuple[Any, ...], list[str]] = defaultdict(list)
        wanted = policy.match_labels.get("matchLabels", {})
        for pods, name in zip(each_pod(group), nodes, strict=False):
            values = tuple(pods.labels.get(key) for key in policy.match_label_keys)
            if name and wanted.items() <= pods.labels.items():
                engines[values].append(name)
        stated = policy.topology
        # Volcano 1.14 drops the name of a tier in a subGroupPolicy: NewSubJobInfo of its
        # pkg/scheduler/api/sub_job_info.go copies the topology before the name is resolved.
        by_number = stated if stated and stated.highest_tier is not None else None
        for engine in engines.values():
            yield by_number, engine
