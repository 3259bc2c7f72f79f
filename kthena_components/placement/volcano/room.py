"""The room on nodes and in HyperNodes while pods are placed, with a cheap way back.

Nodes of the same HyperNodes form cells of at most 64. The best node of a cell is remembered until
a pod is placed in it, so that a cluster of thousands of nodes is not searched for each pod.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kthena_components.cluster.node_fit import Amounts
from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.computed import Computed
from kthena_components.placement.model import Cluster
from kthena_components.placement.volcano.amounts import Dimensions, Vector, minus, plus, within
from kthena_components.placement.volcano.scores import Scores
from kthena_components.placement.volcano.shapes import Shape
from kthena_components.placement.volcano.tree import Tree

_CELL = 64


@dataclass(slots=True)
class Taken:
    """A pod's place, with what it changed."""

    node: int
    request: Vector
    used: Vector
    idle: Vector
    stamp: int


@dataclass(frozen=True, slots=True)
class Best:
    """The best node of a cell for a shape."""

    stamp: int
    score: float
    node: int
    """-1: no node of the cell takes it."""


class Room:
    """What each node has left."""

    def __init__(
        self, cluster: Cluster, tree: Tree, dimensions: Dimensions, scores: Scores
    ) -> None:
        """Fill the nodes with the pods that run."""
        self.tree = tree
        self.scores = scores
        nodes, vector = cluster.nodes, partial(_vector, cluster.computed, dimensions.names)
        self.allocatable = [vector(dimensions.capacity, node.allocatable) for node in nodes]
        self.used = [vector(dimensions.use, node.used) for node in nodes]
        self.idle = [minus(*pair) for pair in zip(self.allocatable, self.used, strict=True)]
        self._cells_by_nodes()
        self._clock = 0
        self.stamps = [0] * len(self.cells)
        """Changes of each cell. Equal stamps mean equal contents."""
        self.hyper_allocatable = self._sums(self.allocatable, dimensions.nothing)
        self.hyper_used = self._sums(self.used, dimensions.nothing)
        self.rank = list(range(len(nodes)))
        """Of nodes with equal scores, the one with the lowest rank is chosen."""
        self._best: dict[tuple[int, int], Best] = {}
        self._counted: dict[tuple[int, Vector], int] = {}
        self._scored: dict[tuple[int, Vector, Vector], float | None] = {}

    def _cells_by_nodes(self) -> None:
        """Group the nodes by the HyperNodes that contain them."""
        inside: list[list[int]] = [[] for _ in self.used]
        for at, one in enumerate(self.tree.all):
            for node in one.nodes:
                inside[node].append(at)
        groups: dict[tuple[int, ...], list[int]] = {}
        for node, above in enumerate(inside):
            groups.setdefault(tuple(above), []).append(node)
        self.cells: list[list[int]] = []
        self.holders: list[tuple[int, ...]] = []
        """The HyperNodes that contain each cell."""
        self.cells_of: list[list[int]] = [[] for _ in self.tree.all]
        self._cell_of = [0] * len(self.used)
        for holding, nodes in groups.items():
            for start in range(0, len(nodes), _CELL):
                for at in holding:
                    self.cells_of[at].append(len(self.cells))
                for node in nodes[start : start + _CELL]:
                    self._cell_of[node] = len(self.cells)
                self.cells.append(nodes[start : start + _CELL])
                self.holders.append(holding)

    def _sums(self, amounts: Sequence[Vector], nothing: Vector) -> list[Vector]:
        """Add up the amounts of the nodes in each HyperNode."""
        sums = [nothing for _ in self.tree.all]
        for cell, holding in zip(self.cells, self.holders, strict=True):
            whole = tuple(map(sum, zip(*(amounts[node] for node in cell), strict=True)))
            for at in holding:
                sums[at] = plus(sums[at], whole)
        return sums

    def shuffle(self, number: int) -> None:
        """Choose differently between nodes with equal scores, as each session may."""
        random.Random(number).shuffle(self.rank)  # noqa: S311 - to repeat, not to hide
        self._best.clear()

    def best(self, shape: Shape, cell: int) -> Best:
        """Find the node of a cell that takes a pod and has the best score."""
        known = self._best.get((shape.number, cell))
        if known is not None and known.stamp == self.stamps[cell]:
            return known
        accepted = shape.accepted
        new = self._best_of(shape, cell, [each for each in self.cells[cell] if accepted[each]])
        self._best[shape.number, cell] = new
        return new

    def _best_but(self, refuses: Callable[[int], bool], shape: Shape, cell: int) -> Best:
        accepted = shape.accepted
        nodes = [each for each in self.cells[cell] if accepted[each] and not refuses(each)]
        return self._best_of(shape, cell, nodes)

    def _best_of(self, shape: Shape, cell: int, nodes: Iterable[int]) -> Best:
        score, node, rank = -1.0, -1, self.rank
        for each in nodes:
            found = self._score(shape, each)
            if found is not None and (
                found > score or (found == score and rank[each] < rank[node])
            ):
                score, node = found, each
        return Best(self.stamps[cell], score, node)

    def _score(self, shape: Shape, node: int) -> float | None:
        used, allocatable = self.used[node], self.allocatable[node]
        key = (shape.number, used, allocatable)
        if key not in self._scored:
            fits = within(shape.request, self.idle[node])
            found = self.scores.of_node(shape.request, used, allocatable) if fits else None
            self._scored[key] = found
        return self._scored[key]

    def holds(self, shape: Shape, hyper: int, needed: int) -> bool:
        """Say whether the nodes of a HyperNode have room for a number of equal pods."""
        accepted = shape.accepted
        for cell in self.cells_of[hyper]:
            needed -= sum(self._slots(shape, node) for node in self.cells[cell] if accepted[node])
            if needed <= 0:
                return True
        return False

    def _slots(self, shape: Shape, node: int) -> int:
        idle = self.idle[node]
        key = (shape.number, idle)
        if key not in self._counted:
            pairs = zip(idle, shape.request, strict=True)
            self._counted[key] = min(max(0, left) // wanted for left, wanted in pairs if wanted)
        return self._counted[key]

    def takes(self, shape: Shape, node: int) -> bool:
        """Say whether a node accepts a pod and has room for it."""
        return shape.accepted[node] and self._score(shape, node) is not None

    def choose(
        self, shape: Shape, hyper: int,
        extra: Callable[[Iterable[int]], dict[int, float]] | None,
        refuses: Callable[[int], bool] | None = None,
    ) -> int | None:  # fmt: skip
        """Choose the node of a HyperNode with the best score; of several, the first by rank.

        Args:
            shape: The pod.
            hyper: Only nodes of this HyperNode.
            extra: The scores of cells for their HyperNodes. None: all are equal.
            refuses: Which nodes other pods forbid. None: none.
        """
        best_of = self.best if refuses is None else partial(self._best_but, refuses)
        found = [(cell, best) for cell in self.cells_of[hyper]
                 if (best := best_of(shape, cell)).node >= 0]  # fmt: skip
        if not found:
            return None
        rank = self.rank
        if extra is None:
            return max(found, key=lambda pair: (pair[1].score, -rank[pair[1].node]))[1].node
        added = extra([cell for cell, _ in found])
        return max(found, key=lambda pair: (pair[1].score + added[pair[0]], -rank[pair[1].node]))[
            1
        ].node

    def take(self, node: int, request: Vector) -> Taken:
        """Put a pod on a node."""
        cell = self._cell_of[node]
        taken = Taken(node, request, self.used[node], self.idle[node], self.stamps[cell])
        self._set(node, plus(taken.used, request), minus(taken.idle, request))
        for hyper in self.holders[cell]:
            self.hyper_used[hyper] = plus(self.hyper_used[hyper], request)
        return taken

    def undo(self, taken: Taken) -> None:
        """Take the last pod away again."""
        cell = self._cell_of[taken.node]
        self.used[taken.node], self.idle[taken.node] = taken.used, taken.idle
        self.stamps[cell] = taken.stamp
        for hyper in self.holders[cell]:
            self.hyper_used[hyper] = minus(self.hyper_used[hyper], taken.request)

    def release(self, node: int, request: Vector) -> None:
        """Take any pod away from a node."""
        self._set(node, minus(self.used[node], request), plus(self.idle[node], request))
        for hyper in self.holders[self._cell_of[node]]:
            self.hyper_used[hyper] = minus(self.hyper_used[hyper], request)

    def _set(self, node: int, used: Vector, idle: Vector) -> None:
        self._clock += 1
        self.used[node], self.idle[node] = used, idle
        self.stamps[self._cell_of[node]] = self._clock

    def contents(self, hyper: int) -> tuple[int, ...]:
        """Name the contents of a HyperNode: equal names mean equal contents."""
        stamps = self.stamps
        return tuple([stamps[cell] for cell in self.cells_of[hyper]])


def _vector(
    computed: Computed, names: tuple[str, ...], write: Callable[[Amounts], Vector], amounts: Amounts
) -> Vector:
    return computed.of((write.__name__, names), (amounts,), partial(write, amounts))
