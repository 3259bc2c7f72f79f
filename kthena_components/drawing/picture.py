"""The model of a picture: what is drawn, whatever the form. Pure.

Forms: rows in the terminal, Mermaid, and an HTML page. All three draw the same `Picture`.
"""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from datetime import datetime

from kthena_components.cluster.objects import (
    Body,
    accelerators,
    condition_of,
    in_order,
    labels_of,
    name_of,
)
from kthena_components.core.objects.object import allocatable
from kthena_components.core.topology.domains import Domain
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import MARKS, visible
from kthena_components.core.values.read import mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class PodBox:
    """One pod."""

    name: str
    group: str
    """Title of its PodGroup: `serving/chat-0`. Empty: a pod of another owner."""
    engine: str
    """The engine of its group that it belongs to: `prefill-0`."""
    gpus: int
    state: str = "placed"
    """`placed` (planned), `running`, `waiting` or `lost`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeBox:
    """One node with its pods."""

    name: str
    gpus: int
    used: int
    """GPUs that any pods hold, including those that the plan places here."""
    pods: Sequence[PodBox] = ()
    product: str = ""
    closed: str = ""
    """Why it takes no pods: `cordoned`, `lost`. Empty: it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackBox:
    """A HyperNode of the lowest tier with its nodes; without a name, nodes outside of any."""

    name: str
    tier: int
    nodes: Sequence[NodeBox] = ()
    within: Sequence[str] = ()
    """The HyperNodes that contain it, lowest first."""

    @property
    def gpus(self) -> int:
        """GPUs of all its nodes."""
        return sum(node.gpus for node in self.nodes)

    @property
    def used(self) -> int:
        """GPUs that are held."""
        return sum(node.used for node in self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One PodGroup: its answer, and the pods that have no node."""

    title: str
    serving: str
    """The object that made it: `ModelServing serving/chat`."""
    verdict: str
    where: str = ""
    """The HyperNode that holds it."""
    reason: str = ""
    gpus: int = 0
    unplaced: Sequence[PodBox] = ()
    changed: bool = False
    """Whether the pull request changes its serving."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A cluster with its racks, nodes and pods, and the groups that `fit` places."""

    title: str
    racks: Sequence[RackBox]
    groups: Sequence[GroupRow]
    before: "Picture | None" = None
    """The state before the change, if there are two."""
    taken: datetime | None = None
    """When the cluster was read."""
    source: str = ""
    notes: Sequence[str] = field(default_factory=tuple)


# Arranges nodes in their racks: the HyperNodes of the lowest tier that contain them. Pure.


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
    """Return the titles of the groups that `fit` places."""
    return frozenset(group.title for group in groups)


def folded(
    nodes: Sequence[NodeBox], most: int, matters: Callable[[NodeBox], bool]
) -> tuple[Sequence[NodeBox], Sequence[NodeBox]]:
    """Return the nodes to draw and the others: all, if they are few; else those that matter."""
    if len(nodes) <= most:
        return nodes, ()
    first = sorted(nodes, key=lambda node: not matters(node))
    return first[:most], first[most:]


# Fits strings into columns: their width in cells, and shorter strings for narrow places. Pure.


_WIDE = frozenset("WF")
MORE = "…"


def width_of(text: str) -> int:
    """Return how many columns of a terminal a string takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.category(char) in MARKS:
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def fit(text: str, columns: int, more: str = MORE) -> str:
    """Return a string as one visible line, with its middle left out if it is too long.

    Names of nodes and pods differ in their ends.
    """
    text = visible(text)
    if width_of(text) <= columns:
        return text
    room = columns - width_of(more)
    if room <= 0:
        return more[: max(0, columns)]
    tail = room // 2
    return f"{_begin(text, room - tail)}{more}{_begin(text[::-1], tail)[::-1]}"


def _begin(text: str, columns: int) -> str:
    taken = 0
    for index, char in enumerate(text):
        taken += _cells(char)
        if taken > columns:
            return text[:index]
    return text


def pad(text: str, columns: int) -> str:
    """Fill a string with spaces up to some columns."""
    return text + " " * (columns - width_of(text))


OTHERS, FREE = "others", "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Adjacent GPUs of one bar."""

    state: str
    """The state of a pod, `others` for GPUs that pods without a name hold, or `free`."""
    gpus: int
    pod: PodBox | None = None


def parts_of(node: NodeBox) -> list[Part]:
    """Return the parts of a node's bar: pods, GPUs of others, free ones.

    A lost pod is drawn, although it no longer holds its GPUs, if the node has room for it.
    """
    parts = [Part(state=pod.state, gpus=pod.gpus, pod=pod) for pod in node.pods if pod.gpus > 0]
    counted = sum(part.gpus for part in parts)
    if node.used > counted:
        parts.append(Part(state=OTHERS, gpus=node.used - counted))
    left = node.gpus - max(node.used, counted)
    if left > 0:
        parts.append(Part(state=FREE, gpus=left))
    return parts


def totals_of(nodes: Sequence[NodeBox]) -> dict[str, int]:
    """Sum the GPUs of some nodes by the state of their parts."""
    found: dict[str, int] = {}
    for node in nodes:
        for part in parts_of(node):
            found[part.state] = found.get(part.state, 0) + part.gpus
    return found


def shares(amounts: Sequence[int], cells: int) -> list[int]:
    """Divide cells in proportion to amounts: they sum up, and no amount above 0 gets none.

    With fewer cells than amounts above 0, the largest get one each.
    """
    total, positive = sum(amounts), sum(amount > 0 for amount in amounts)
    if total <= 0 or cells <= 0:
        return [0] * len(amounts)
    if positive >= cells:
        largest = sorted(range(len(amounts)), key=lambda index: -amounts[index])[:cells]
        return [int(index in largest and amounts[index] > 0) for index in range(len(amounts))]
    exact = [amount * cells / total for amount in amounts]
    found = [max(int(share), int(amounts[index] > 0)) for index, share in enumerate(exact)]
    while sum(found) < cells:
        found[max(range(len(found)), key=lambda index: exact[index] - found[index])] += 1
    while sum(found) > cells:
        shrinkable = [index for index in range(len(found)) if found[index] > 1]
        found[min(shrinkable, key=lambda index: exact[index] - found[index])] -= 1
    return found
