"""What pods ask of the pods around them: host ports, required affinity, and spread constraints.

Sources: Kubernetes 1.34 pkg/scheduler/framework/plugins/{nodeports/node_ports.go,
interpodaffinity/filtering.go,podtopologyspread/common.go}, which Volcano's plugin predicates runs.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.cluster.node_fit import obstacles
from kthena_components.core.topology.domains import Labels, holds
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.model import Body, PodSet

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ANY = frozenset({"", "0.0.0.0"})  # noqa: S104 - an address in a manifest, which nothing binds
_SWITCHES = {"affinity": "predicate.PodAffinityEnable", "ports": "predicate.NodePortsEnable",
             "spread": "predicate.PodTopologySpreadEnable"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a node."""

    number: int
    protocol: str
    address: str

    def clashes(self, other: "Port") -> bool:
        """Say whether two pods with these ports cannot be on one node."""
        same = (self.number, self.protocol) == (other.number, other.protocol)
        return same and (
            self.address == other.address or bool(_ANY & {self.address, other.address})
        )


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """One required term of affinity or anti-affinity."""

    key: str
    """The label of nodes whose values are the places."""
    namespaces: frozenset[str] | None
    """None: all of them."""
    selector: Body | None
    """None: it matches no pods."""

    def matches(self, pod: "Peer") -> bool:
        """Say whether a pod is one of those that the term is about."""
        inside = self.namespaces is None or pod.namespace in self.namespaces
        return inside and matches(self.selector, pod.labels)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """One constraint of topologySpreadConstraints that must hold."""

    key: str
    skew: int
    least: int
    """minDomains."""
    selector: Body | None
    honors_affinity: bool
    honors_taints: bool


@dataclass(frozen=True, slots=True, eq=False)
class Peer:
    """Equal pods, as other pods see them."""

    namespace: str
    labels: Labels
    spec: Body
    ports: tuple[Port, ...] = ()
    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    spreads: tuple[Spread, ...] = ()

    @property
    def asks(self) -> bool:
        """Whether other pods decide where it can be."""
        return bool(self.ports or self.near or self.apart or self.spreads)

    def counts(self, constraint: Spread, node: Body) -> bool:
        """Say whether a node is one of those over which a constraint spreads pods."""
        asked = {key: self.spec.get(key) for key in ("nodeSelector", "affinity")}
        everything: Body = {"tolerations": [{"operator": "Exists"}]}
        if constraint.honors_affinity and any(obstacles({**asked, **everything}, node)):
            return False
        tolerations = {"tolerations": self.spec.get("tolerations")}
        return not (constraint.honors_taints and any(obstacles(tolerations, node)))


def matches(selector: Body | None, labels: Labels) -> bool:
    """Match a label selector. None matches nothing, an empty one everything."""
    if selector is None:
        return False
    plain = mapping(selector.get("matchLabels"))
    return all(labels.get(key) == value for key, value in plain.items()) and all(
        holds(mapping(item), labels) for item in sequence(selector.get("matchExpressions"))
    )


def read_peer(pods: PodSet, namespace: str, arguments: Mapping[str, str]) -> Peer:
    """Read what equal pods ask of others, as far as the scheduler's plugin looks at it."""
    off = {name for name, switch in _SWITCHES.items()
           if str(arguments.get(switch, "true")).lower() == "false"}  # fmt: skip
    affinity = {} if "affinity" in off else mapping(pods.spec.get("affinity"))
    spreads = () if "spread" in off else sequence(pods.spec.get("topologySpreadConstraints"))
    return Peer(
        namespace=namespace,
        labels=pods.labels,
        spec=pods.spec,
        ports=() if "ports" in off else tuple(_ports(pods.spec)),
        near=tuple(_terms(affinity.get("podAffinity"), namespace, pods.labels)),
        apart=tuple(_terms(affinity.get("podAntiAffinity"), namespace, pods.labels)),
        spreads=tuple(
            _spread(each, pods.labels)
            for each in map(mapping, spreads)
            if each.get("whenUnsatisfiable", "DoNotSchedule") == "DoNotSchedule"
        ),
    )


def asks_others(spec: Body) -> bool:
    """Say whether other pods decide where pods of a spec can be."""
    return read_peer(PodSet(name="", count=1, requests={}, spec=spec), "", {}).asks


def selects_namespaces(spec: Body) -> bool:
    """Say whether a required term chooses namespaces by labels, which no inventory has."""
    terms = [
        mapping(term)
        for kind in mapping(spec.get("affinity")).values()
        for term in sequence(mapping(kind).get(_REQUIRED))
    ]
    return any(mapping(term.get("namespaceSelector")) for term in terms)


def _ports(spec: Body) -> Iterator[Port]:
    for container in map(mapping, sequence(spec.get("containers"))):
        for port in map(mapping, sequence(container.get("ports"))):
            if isinstance(number := port.get("hostPort"), int):
                protocol, address = port.get("protocol") or "TCP", port.get("hostIP") or ""
                yield Port(number, str(protocol), str(address))


def _terms(stated: object, namespace: str, labels: Labels) -> Iterator[Term]:
    for term in map(mapping, sequence(mapping(stated).get(_REQUIRED))):
        named = frozenset(map(str, sequence(term.get("namespaces"))))
        everywhere = term.get("namespaceSelector") is not None
        chosen = _merged(term.get("labelSelector"), labels, term)
        spaces = None if everywhere else named or frozenset({namespace})
        yield Term(str(term.get("topologyKey") or ""), spaces, chosen)


def _spread(stated: Body, labels: Labels) -> Spread:
    return Spread(
        key=str(stated.get("topologyKey") or ""),
        skew=_number(stated.get("maxSkew")),
        least=_number(stated.get("minDomains")),
        selector=_merged(stated.get("labelSelector"), labels, stated),
        honors_affinity=stated.get("nodeAffinityPolicy", "Honor") == "Honor",
        honors_taints=stated.get("nodeTaintsPolicy", "Ignore") == "Honor",
    )


def _number(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 1


def _merged(selector: object, labels: Labels, stated: Body) -> Body | None:
    """Add the pod's own values of matchLabelKeys, as the API server does."""
    if not isinstance(selector, Mapping):
        return None
    keys: list[tuple[str, str]] = [
        *(("In", str(key)) for key in sequence(stated.get("matchLabelKeys"))),
        *(("NotIn", str(key)) for key in sequence(stated.get("mismatchLabelKeys"))),
    ]
    added: Sequence[Any] = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for operator, key in keys
        if key in labels
    ]
    return {**selector, "matchExpressions": [*sequence(selector.get("matchExpressions")), *added]}


def written(peer: Peer) -> str:
    """Write what decides about equal pods. Two with one text behave alike."""
    keys = ("affinity", "topologySpreadConstraints", "containers", "nodeSelector", "tolerations")
    spec = {key: peer.spec.get(key) for key in keys}
    return json.dumps([peer.namespace, dict(peer.labels), spec], sort_keys=True, default=str)
