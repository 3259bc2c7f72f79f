"""Makes HyperNodes from labels of nodes, for clusters without HyperNodes. Pure.

Sources of the labels: NVIDIA Topograph, reference of node labels (docs.nvidia.com/topograph; 0.1,
later ones and 1.0 use different names); AWS, EKS user guide, network topology labels; Google Cloud,
gce-topology labels; Kueue, kind Topology, whose levels go from the farthest to the closest.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.naming import HOSTNAME, dns_name
from kthena_components.core.topology.domains import Labels
from kthena_components.core.topology.spec import HyperNodeSpec
from kthena_components.core.values.read import mapping, sequence

USUAL, KUEUE = "labels", "kueue"
"""Words instead of labels: the usual ones, and those of Kueue's Topology."""
_NOTHING = {USUAL: "no node has a usual label of racks", KUEUE: "no Topology of Kueue has labels"}
_TOPOGRAPH = "network.topology.nvidia.com"
_GCE = "cloud.google.com/gce-topology"
_AWS = "topology.k8s.aws/network-node-layer"
_ZONE = "topology.kubernetes.io"
KNOWN_LABELS: tuple[tuple[str, ...], ...] = (
    tuple(f"fabric.topograph.run/tier-{tier}" for tier in range(6)),
    (f"{_TOPOGRAPH}/leaf", f"{_TOPOGRAPH}/spine", f"{_TOPOGRAPH}/core"),
    (f"{_TOPOGRAPH}/block", f"{_TOPOGRAPH}/spine", f"{_TOPOGRAPH}/datacenter"),
    ("accelerator.topograph.run/sub-domain", "accelerator.topograph.run/domain"),
    ("accelerator.topograph.run/domain",),
    (f"{_TOPOGRAPH}/accelerator",),
    ("nvidia.com/gpu.clique",),
    (f"{_GCE}-subblock", f"{_GCE}-block"),
    (f"{_AWS}-4", f"{_AWS}-3", f"{_AWS}-2", f"{_AWS}-1"),
    (f"{_AWS}-3", f"{_AWS}-2", f"{_AWS}-1"),
    (f"{_ZONE}/rack", f"{_ZONE}/zone", f"{_ZONE}/region"),
    (f"{_ZONE}/zone", f"{_ZONE}/region"),
)
"""The labels of each source, from the closest domain to the farthest."""
Place = tuple[str, ...]
"""The values of a node's labels from one label on: what tells apart racks of equal names."""


def levels_of(topologies: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the labels of Kueue's first Topology, the closest first, without the host's."""
    for body in topologies:
        levels = map(mapping, sequence(mapping(body.get("spec")).get("levels")))
        labels = [str(level.get("nodeLabel")) for level in levels if level.get("nodeLabel")]
        if found := [label for label in reversed(labels) if label != HOSTNAME]:
            return found
    return []


def usual_labels(nodes: Mapping[str, Labels]) -> list[str]:
    """Return the labels of the first known source whose closest label a node has."""
    present = {key for labels in nodes.values() for key, value in labels.items() if value}
    found = next((source for source in KNOWN_LABELS if source[0] in present), ())
    return [label for label in found if label in present]


def missing_labels(
    stated: Sequence[str], chosen: Sequence[str], nodes: Mapping[str, Labels]
) -> Iterator[str]:
    """Say of which labels no HyperNodes are made, because no node has them.

    Args:
        stated: Labels, or a word instead.
        chosen: The labels for which it stands.
    """
    present = {key for labels in nodes.values() for key, value in labels.items() if value}
    for label in chosen:
        if label not in present:
            yield f"no node has the label {label}, so racks_from makes no HyperNodes of it"
    if stated and not chosen:
        yield f"{_NOTHING[stated[0]]}, so racks_from makes no HyperNodes"


def racks_of(labels: Sequence[str], nodes: Mapping[str, Labels]) -> list[HyperNodeSpec]:
    """Make a HyperNode of each value of each label, the closest first.

    A domain is told apart by the domains above it: two racks `1` in two zones are two HyperNodes.
    A node without the closest label is in none.
    """
    members: dict[Place, dict[str | Place, None]] = {}
    for name, own in sorted(nodes.items()):
        values = [own.get(label, "") for label in labels]
        below: str | Place = name
        for tier in range(len(values)):
            if not values[tier]:
                break
            place = (str(tier + 1), *values[tier:])
            members.setdefault(place, {})[below] = None
            below = place
    names = _names(members)
    return [
        HyperNodeSpec.model_construct(
            name=names[place],
            tier=int(place[0]),
            tier_name=labels[int(place[0]) - 1].rpartition("/")[2],
            labels={},
            nodes=[member for member in found if isinstance(member, str)],
            node_regex=None,
            node_labels={},
            children=[names[member] for member in found if isinstance(member, tuple)],
        )
        for place, found in sorted(members.items())
    ]


def _names(places: Iterable[Place]) -> dict[Place, str]:
    """Name each domain by its value; by those above it, too, if another one has the same."""
    found: dict[Place, str] = {}
    taken: set[str] = set()
    for place in sorted(places, key=lambda one: (-len(one), one)):
        short, full = dns_name(place[1]), dns_name("-".join(["tier", *place]))
        found[place] = full if short in taken or not short else short
        taken.add(found[place])
    return found
