"""What pods ask of the pods around them, and which nodes they refuse because of them.

Sources: Kubernetes 1.34 pkg/scheduler/framework/plugins/{nodeports/node_ports.go,
interpodaffinity/filtering.go,podtopologyspread/common.go}, which Volcano's plugin predicates runs.

Sources: Kubernetes 1.34 pkg/scheduler/framework/plugins/{nodeports,interpodaffinity,
podtopologyspread}; Volcano v1.14.1 pkg/scheduler/plugins/util/k8s/snapshot.go: the nodes whose pods
keep others away are listed when a session begins, and not again within it.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from kthena_components.cluster.objects import labels_of
from kthena_components.core.topology.domains import Labels, matches
from kthena_components.core.topology.node_fit import REQUIRED, obstacles
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.placement.model import Body, Cluster, PodSet

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
        return inside and self.selector is not None and matches(self.selector, pod.labels)


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """One constraint of topologySpreadConstraints that must hold."""

    key: str
    skew: int
    least: int
    """minDomains."""
    selector: Body | None
    """None: it matches no pods."""
    honors_affinity: bool
    honors_taints: bool

    def matches(self, pod: "Peer") -> bool:
        """Say whether a pod is one of those that are counted, if it is in their namespace."""
        return self.selector is not None and matches(self.selector, pod.labels)


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
        for term in sequence(mapping(kind).get(REQUIRED))
    ]
    return any(mapping(term.get("namespaceSelector")) for term in terms)


def _ports(spec: Body) -> Iterator[Port]:
    for container in map(mapping, sequence(spec.get("containers"))):
        for port in map(mapping, sequence(container.get("ports"))):
            if isinstance(number := port.get("hostPort"), int):
                protocol, address = port.get("protocol") or "TCP", port.get("hostIP") or ""
                yield Port(number, str(protocol), str(address))


def _terms(stated: object, namespace: str, labels: Labels) -> Iterator[Term]:
    for term in map(mapping, sequence(mapping(stated).get(REQUIRED))):
        named = frozenset(map(str, sequence(term.get("namespaces"))))
        everywhere = term.get("namespaceSelector") is not None
        chosen = _merged(term.get("labelSelector"), labels, term)
        spaces = None if everywhere else named or frozenset({namespace})
        yield Term(str(term.get("topologyKey") or ""), spaces, chosen)


def _spread(stated: Body, labels: Labels) -> Spread:
    """Read a spread constraint with the scheduler's defaults for what it omits."""
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
    """Write what decides about equal pods. Two with one string behave alike."""
    keys = ("affinity", "topologySpreadConstraints", "containers", "nodeSelector", "tolerations")
    spec = {key: peer.spec.get(key) for key in keys}
    return json.dumps([peer.namespace, dict(peer.labels), spec], sort_keys=True, default=str)


Refuses = Callable[[int], bool]
Kinds = Callable[[Peer], bool]
_PLUGIN = "predicates"
_NO_ARGUMENTS: Mapping[str, str] = {}


class Neighbours:
    """The pods on each node of a cluster, as far as pods decide about each other."""

    def __init__(self, cluster: Cluster) -> None:
        """Begin with the pods that run."""
        self._nodes = [node.body for node in cluster.nodes]
        self._labels = cluster.computed.of(
            "labels", (cluster.nodes,), lambda: list(map(labels_of, self._nodes))
        )
        self._arguments = cluster.scheduler.arguments.get(_PLUGIN, _NO_ARGUMENTS)
        self._computed = cluster.computed
        self._checks = _PLUGIN in cluster.scheduler.plugins
        self._peers: dict[str, Peer] = {}
        self._where: dict[Peer, Counter[int]] = {}
        self._decided: dict[Peer, bool] = {}
        self._watched: set[int] = set()
        """Nodes with pods that keep others away, when the session began."""
        self._nodes_with: dict[str, Counter[str | None]] = {}
        """How many nodes have each value of a label."""
        place = {node.name: at for at, node in enumerate(cluster.nodes)}
        for one in cluster.running:
            each = [pods for pods in one.group.pods for _ in range(pods.count)]
            for pods, name in zip(each, one.nodes, strict=True):
                if name in place:
                    self.arrive(self.peer(pods, one.group.namespace), place[name])
        for other in cluster.neighbours or ():
            peer = self.peer(other.pods, other.namespace)
            for name in other.nodes:
                if name in place:
                    self.arrive(peer, place[name])

    def peer(self, pods: PodSet, namespace: str) -> Peer:
        """Return what equal pods are to others."""

        def read() -> tuple[str, Peer]:
            found = read_peer(pods, namespace, self._arguments)
            return written(found), found

        text, found = self._computed.of(("peer", namespace), (pods, self._arguments), read)
        return self._peers.setdefault(text, found)

    def open_session(self) -> None:
        """List the nodes with pods that keep others away."""
        self._watched = {
            node for peer, nodes in self._where.items() if peer.apart for node in nodes
        }

    def arrive(self, peer: Peer, node: int) -> None:
        """Note a pod on a node."""
        self._where.setdefault(peer, Counter())[node] += 1

    def leave(self, peer: Peer, node: int) -> None:
        """Note that a pod is gone from a node."""
        found = self._where[peer]
        found[node] -= 1
        if not found[node]:
            del found[node]

    def decide(self, peer: Peer) -> bool:
        """Say whether other pods may decide where a pod can be."""
        if peer not in self._decided:
            terms = (term for other in self._peers.values() for term in other.apart)
            asks = peer.asks or any(term.matches(peer) for term in terms)
            self._decided[peer] = self._checks and asks
        return self._decided[peer]

    def around(self, nodes: Sequence[int]) -> Hashable:
        """Name what some nodes are to pods that ask for others: their pods, and their places.

        A place that lies only in these nodes is named by its first node: its label matters nowhere
        else.
        """
        pods = [
            tuple([(at, where[node]) for at, where in enumerate(self._where.values())
                   if where.get(node)])
            for node in nodes
        ]  # fmt: skip
        keys = sorted(
            {term.key for one in self._peers.values() for term in (*one.near, *one.apart)}
        )
        places = [tuple(self._places_of(key, nodes)) for key in keys]
        return tuple(pods), tuple(places), tuple([node in self._watched for node in nodes])

    def _places_of(self, key: str, nodes: Sequence[int]) -> Iterator[object]:
        if key not in self._nodes_with:
            self._nodes_with[key] = Counter(labels.get(key) for labels in self._labels)
        values = [self._labels[node].get(key) for node in nodes]
        inside, everywhere = Counter(values), self._nodes_with[key]
        for value in values:
            alone = value is not None and inside[value] == everywhere[value]
            yield ("alone", values.index(value)) if alone else value

    def refused(self, peer: Peer) -> Refuses | None:
        """Return which nodes a pod cannot be on now; None if no other pod matters."""
        if not self.decide(peer):
            return None
        checks = list(self._checks_of(peer))
        return lambda node: any(check(node) for check in checks)

    def _checks_of(self, peer: Peer) -> Iterator[Refuses]:
        """List the tests of a node that ports, affinity and spread of a pod require."""
        if peer.ports:
            yield self._port_taken(peer)
        yield self._kept_away(peer)
        yield from map(self._apart, peer.apart)
        if peer.near:
            yield self._far(peer)
        for constraint in peer.spreads:
            yield self._skewed(peer, constraint)

    def _places(self, key: str, wanted: Kinds) -> Counter[str | None]:
        """Count some pods by the value that a label of their nodes has."""
        found: Counter[str | None] = Counter()
        for other, nodes in self._where.items():
            if nodes and wanted(other):
                for node, number in nodes.items():
                    if (value := self._labels[node].get(key)) is not None:
                        found[value] += number
        return found

    def _port_taken(self, peer: Peer) -> Refuses:
        taken = {
            node
            for other, nodes in self._where.items()
            if any(one.clashes(port) for one in other.ports for port in peer.ports)
            for node in nodes
        }
        return taken.__contains__

    def _apart(self, term: Term) -> Refuses:
        """Find the places with pods from which a pod must stay away."""
        taken = self._places(term.key, term.matches)
        return lambda node: taken[self._labels[node].get(term.key)] > 0

    def _kept_away(self, peer: Peer) -> Refuses:
        """Find the places from which the anti-affinity of pods there keeps a pod away."""
        taken: set[tuple[str, str | None]] = set()
        for other, nodes in self._where.items():
            for term in other.apart:
                if term.matches(peer):
                    watched = (self._labels[node] for node in nodes if node in self._watched)
                    taken |= {(term.key, labels[term.key]) for labels in watched
                              if term.key in labels}  # fmt: skip
        return lambda node: any(pair in taken for pair in self._labels[node].items())

    def _far(self, peer: Peer) -> Refuses:
        """Find the nodes that are not in a place with the pods that a pod must be near."""

        def near_all(other: Peer) -> bool:
            return all(term.matches(other) for term in peer.near)

        places = [(term, self._places(term.key, near_all)) for term in peer.near]
        first = not any(counts for _, counts in places) and near_all(peer)

        def far(node: int) -> bool:
            labels = self._labels[node]
            if any(term.key not in labels for term, _ in places):
                return True
            return not first and any(counts[labels[term.key]] == 0 for term, counts in places)

        return far

    def _skewed(self, peer: Peer, constraint: Spread) -> Refuses:
        """Find the nodes on which a pod would be one too many."""
        counted = [
            all(one.key in labels for one in peer.spreads) and peer.counts(constraint, body)
            for labels, body in zip(self._labels, self._nodes, strict=True)
        ]
        counts: Counter[str | None] = Counter()
        for node, ok in enumerate(counted):
            if ok:
                counts[self._labels[node][constraint.key]] += 0
        for other, nodes in self._where.items():
            if other.namespace == peer.namespace and constraint.matches(other):
                for node, number in nodes.items():
                    if counted[node]:
                        counts[self._labels[node][constraint.key]] += number
        least = min(counts.values(), default=0) if len(counts) >= constraint.least else 0
        own = int(constraint.matches(peer))

        def skewed(node: int) -> bool:
            value = self._labels[node].get(constraint.key)
            return value is None or counts[value] + own - least > constraint.skew

        return skewed
