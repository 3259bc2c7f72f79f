"""Amounts of resources as tuples of numbers, and equal pods and nodes, asked once. Pure.

Source: Volcano v1.14.1 pkg/scheduler/api/resource_info.go. Volcano counts CPU and devices in
thousandths, and memory and pods in units.

Two pods have one shape if they request the same and their specs choose nodes alike. Two nodes are
of one class if they have the same taints and the same values of all labels that pods ask for.
"""

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from operator import add, le, sub
from typing import Any

from kthena_components.cluster.objects import labels_of, name_of, namespace_of
from kthena_components.core.topology.node_fit import REQUIRED, USUAL_PODS, Amounts, obstacles
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.model import Body, Cluster, PodSet

Vector = tuple[int, ...]
PODS = "pods"
CPU = "cpu"
MEMORY = "memory"
_WHOLE = frozenset({PODS, MEMORY})
_THOUSAND = Decimal(1000)
_MOST = Decimal(2**63 - 1)
"""The largest quantity: Kubernetes reads larger ones as this one."""


def plus(left: Vector, right: Vector) -> Vector:
    """Add two amounts."""
    return tuple(map(add, left, right))


def minus(left: Vector, right: Vector) -> Vector:
    """Subtract one amount from another; the result may be negative."""
    return tuple(map(sub, left, right))


def within(wanted: Vector, room: Vector) -> bool:
    """Say whether there is room for all of an amount."""
    return all(map(le, wanted, room))


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The resources that a cluster and its pods speak of, in the order of every vector."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, stated: Iterable[Mapping[str, object]]) -> "Dimensions":
        """Collect all names; pods, CPU and memory come first."""
        first = (PODS, CPU, MEMORY)
        others = {name for amounts in stated for name in amounts}.difference(first)
        return cls((*first, *sorted(others)))

    def request(self, amounts: Amounts, pods: int = 1) -> Vector:
        """Write what a pod requests, with its slot, rounded up."""
        return self._vector({**amounts, PODS: Decimal(pods)}, ROUND_CEILING)

    def capacity(self, amounts: Amounts) -> Vector:
        """Write what a node allows, rounded down. Nodes usually have 110 slots for pods."""
        return self._vector({PODS: USUAL_PODS, **amounts}, ROUND_FLOOR)

    def use(self, amounts: Amounts) -> Vector:
        """Write what is held, rounded up."""
        return self._vector(amounts, ROUND_CEILING)

    def amount(self, name: str, number: int) -> Decimal:
        """Turn a number of a vector into the base unit of its resource."""
        return Decimal(number) if name in _WHOLE else Decimal(number) / _THOUSAND

    @property
    def nothing(self) -> Vector:
        """Zero of each."""
        return (0,) * len(self.names)

    def _vector(self, amounts: Amounts, rounding: str) -> Vector:
        return tuple(
            int((amount if name in _WHOLE else amount * _THOUSAND).to_integral_value(rounding))
            for name in self.names
            for amount in [min(_MOST, amounts.get(name, Decimal(0)))]
        )


_CHOOSING = ("nodeSelector", "affinity", "tolerations")


@dataclass(slots=True, eq=False)
class Shape:
    """What equal pods request, and which nodes accept them."""

    number: int
    request: Vector
    spec: Body
    refusals: list[tuple[str, ...]]
    """By node: why it does not accept them, whatever its room. Empty: it does."""
    empty: bool
    """Whether they request nothing but a slot, and are placed without looking at topology."""
    accepted: list[bool] = field(init=False)

    def __post_init__(self) -> None:
        self.accepted = [not refusal for refusal in self.refusals]


class Shapes:
    """Finds the shape of pods."""

    def __init__(self, cluster: Cluster, dimensions: Dimensions) -> None:
        """Remember the cluster that accepts or refuses them."""
        self.dimensions = dimensions
        self._cluster = cluster
        self._known: dict[tuple[Vector, str], Shape] = {}
        self._volumes = _volume_affinity(cluster.volumes)

    def of(self, pods: PodSet, namespace: str = "") -> Shape:
        """Return the shape of equal pods."""
        request = self.dimensions.request(pods.requests)
        spec = {key: pods.spec[key] for key in _CHOOSING if pods.spec.get(key)}
        volumes = tuple(self._claimed(pods.spec, namespace))
        written = json.dumps([spec, volumes], sort_keys=True, default=str)
        key = (request, written)
        if key not in self._known:
            at = self.dimensions.names.index(PODS)
            empty = not any((*request[:at], *request[at + 1 :]))
            refusals = self._cluster.computed.of(
                ("refusals", written), (self._cluster.nodes,),
                partial(self._refusals, written, spec, volumes),
            )  # fmt: skip
            self._known[key] = Shape(len(self._known), request, spec, refusals, empty)
        return self._known[key]

    def _claimed(self, spec: Body, namespace: str) -> Iterator[Body]:
        for item in sequence(spec.get("volumes")):
            claim = mapping(mapping(item).get("persistentVolumeClaim")).get("claimName")
            if (found := self._volumes.get((namespace, str(claim)))) is not None:
                yield found

    def _refusals(self, written: str, spec: Body, volumes: Sequence[Body]) -> list[tuple[str, ...]]:
        """Say of each node why it does not accept pods. Nodes of one class are asked once."""
        labels = sorted(_labels_asked(spec).union(*map(_labels_asked, volumes)))
        by_name, by_class = "matchFields" in written, dict[Hashable, tuple[str, ...]]()

        def refused(body: Body) -> tuple[str, ...]:
            own, name = labels_of(body), name_of(body) if by_name else ""
            taints = self._cluster.computed.of("taints", (body,), partial(_taints, body))
            key = repr([own.get(each) for each in labels]), taints, name
            if key not in by_class:
                by_class[key] = tuple(_refused(body, spec, volumes))
            return by_class[key]

        found = []
        for node in self._cluster.nodes:
            why = self._cluster.computed.of(written, (node.body,), partial(refused, node.body))
            found.append(why if node.accepts_pods else ("cordoned or not ready", *why))
        return found


def _refused(node: Body, spec: Body, volumes: Sequence[Body]) -> Iterator[str]:
    yield from obstacles(spec, node)
    if any(any(obstacles({**volume, "tolerations": [{"operator": "Exists"}]}, node))
           for volume in volumes):  # fmt: skip
        yield "outside the topology of a volume"


def _taints(node: Body) -> str:
    return json.dumps(mapping(node.get("spec")).get("taints"), default=str)


def _labels_asked(spec: Body) -> set[str]:
    """Collect the labels that a selector or an affinity names."""
    return {*mapping(spec.get("nodeSelector")), *_keys(spec.get("affinity"))}


def _keys(value: Any) -> Iterator[str]:
    """List the strings of all fields named `key`, at any depth."""
    if isinstance(value, Mapping):
        if isinstance(value.get("key"), str):
            yield value["key"]
        for inner in value.values():
            yield from _keys(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _keys(inner)


def _volume_affinity(volumes: Sequence[Body]) -> dict[tuple[str, str], Body]:
    """Find the node affinity of the volume of each claim, as an affinity of a pod."""
    required = {
        name_of(body): mapping(
            mapping(mapping(body.get("spec")).get("nodeAffinity")).get("required")
        )
        for body in volumes
        if body.get("kind") == "PersistentVolume"
    }
    return {
        (namespace_of(body), name_of(body)): {"affinity": {"nodeAffinity": {REQUIRED: wanted}}}
        for body in volumes
        if body.get("kind") == "PersistentVolumeClaim"
        and (wanted := required.get(str(mapping(body.get("spec")).get("volumeName"))))
    }
