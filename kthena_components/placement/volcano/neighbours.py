"""Which nodes pods refuse because of the pods that are there already, and the other way round.

Sources: Kubernetes 1.34 pkg/scheduler/framework/plugins/{nodeports,interpodaffinity,
podtopologyspread}; Volcano v1.14.1 pkg/scheduler/plugins/util/k8s/snapshot.go: the nodes whose pods
keep others away are listed when a session begins, and not again within it.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from kthena_components.cluster.objects import labels_of
from kthena_components.placement.model import Cluster, PodSet
from kthena_components.placement.volcano.pod_terms import (
    Peer,
    Spread,
    Term,
    matches,
    read_peer,
    written,
)

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
        """Return which nodes a pod cannot be on now. None: no other pod matters."""
        if not self.decide(peer):
            return None
        checks = list(self._checks_of(peer))
        return lambda node: any(check(node) for check in checks)

    def _checks_of(self, peer: Peer) -> Iterator[Refuses]:
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
            if other.namespace == peer.namespace and matches(constraint.selector, other.labels):
                for node, number in nodes.items():
                    if counted[node]:
                        counts[self._labels[node][constraint.key]] += number
        least = min(counts.values(), default=0) if len(counts) >= constraint.least else 0
        own = int(matches(constraint.selector, peer.labels))

        def skewed(node: int) -> bool:
            value = self._labels[node].get(constraint.key)
            return value is None or counts[value] + own - least > constraint.skew

        return skewed
