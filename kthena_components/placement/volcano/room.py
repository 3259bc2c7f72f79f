"""The room on nodes and in HyperNodes while pods are placed, with a cheap way back.

The best node of a cell is remembered until a pod is placed in it, so that a cluster of thousands
of nodes is not searched for each pod.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.dataclass import dataclass
from kthena_components.placement.model import Cluster, Computed
from kthena_components.placement.volcano.amounts_and_shapes import (
    Dimensions,
    Shape,
    Vector,
    minus,
    plus,
    within,
)
from kthena_components.placement.volcano.scores import Scores
from kthena_components.placement.volcano.tree import Tree

_CELL = 64


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a tree."""

    nodes: list[list[int]]
    """By cell."""
    holders: list[tuple[int, ...]]
    """By cell: the HyperNodes that contain it."""
    of_hyper: list[list[int]]
    """By HyperNode: its cells."""
    of_node: list[int]


def cells_of(tree: Tree) -> Cells:
    """Group the nodes by the HyperNodes that contain them."""
    inside: list[list[int]] = [[] for _ in tree.all[tree.root].nodes]
    for at, one in enumerate(tree.all):
        for node in one.nodes:
            inside[node].append(at)
    groups: dict[tuple[int, ...], list[int]] = {}
    for node, above in enumerate(inside):
        groups.setdefault(tuple(above), []).append(node)
    found = Cells([], [], [[] for _ in tree.all], [0] * len(inside))
    for holding, nodes in groups.items():
        for start in range(0, len(nodes), _CELL):
            for at in holding:
                found.of_hyper[at].append(len(found.nodes))
            for node in nodes[start : start + _CELL]:
                found.of_node[node] = len(found.nodes)
            found.nodes.append(nodes[start : start + _CELL])
            found.holders.append(holding)
    return found


@dataclass(slots=True)
class Taken:
    """A pod's place, with what it changed."""

    node: int
    request: Vector
    used: Vector
    idle: Vector
    stamp: int


@dataclass(frozen=True, slots=True)
class _Amounts:
    """What nodes and HyperNodes have before pods are placed."""

    allocatable: list[Vector]
    used: list[Vector]
    idle: list[Vector]
    hyper_allocatable: list[Vector]
    hyper_used: list[Vector]


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
        computed, nodes = cluster.computed, cluster.nodes
        cells = computed.of("cells", (tree,), partial(cells_of, tree))
        self.cells, self.holders, self.cells_of = cells.nodes, cells.holders, cells.of_hyper
        self._cell_of = cells.of_node
        begun = computed.of(("amounts", dimensions.names), (nodes, tree),
                            partial(_begin, cluster, tree, dimensions, cells))  # fmt: skip
        self.allocatable, self.hyper_allocatable = begun.allocatable, begun.hyper_allocatable
        self.used, self.idle = begun.used.copy(), begun.idle.copy()
        self.hyper_used = begun.hyper_used.copy()
        self._clock = 0
        self.stamps = [0] * len(self.cells)
        """Changes of each cell. Equal stamps mean equal contents."""
        self.rank = list(range(len(nodes)))
        """Of nodes with equal scores, the one with the lowest rank is chosen."""
        self._best: dict[tuple[int, int], Best] = {}
        self._counted: dict[tuple[int, Vector], int] = {}
        self._filled: dict[tuple[int, int], tuple[int, int]] = {}
        self._scored: dict[tuple[int, Vector, Vector], float | None] = {}

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
        """Find the cell's node with the highest score; of equal ones, the first in rank."""
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

    def holds(self, counts: Mapping[Shape, int], hyper: int, needed: int) -> bool:
        """Say whether a HyperNode may have room for some of the pods: surely, if they are equal.

        Each shape is counted as if the others were not there.
        """
        for shape, number in counts.items():
            left = number
            for cell in self.cells_of[hyper]:
                left -= self._slots_in(shape, cell)
                if left <= 0:
                    break
            needed -= number - max(0, left)
            if needed <= 0:
                return True
        return False

    def _slots_in(self, shape: Shape, cell: int) -> int:
        key, stamp = (shape.number, cell), self.stamps[cell]
        known = self._filled.get(key)
        if known is None or known[0] != stamp:
            accepted, idle = shape.accepted, self.idle
            found = [self.slots(shape, idle[node]) for node in self.cells[cell] if accepted[node]]
            known = self._filled[key] = stamp, sum(found)
        return known[1]

    def slots(self, shape: Shape, left: Vector) -> int:
        """Count the equal pods for which an amount suffices."""
        key = (shape.number, left)
        if (known := self._counted.get(key)) is None:
            pairs = zip(left, shape.request, strict=True)
            known = min((max(0, idle) // wanted for idle, wanted in pairs if wanted), default=0)
            self._counted[key] = known
        return known

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


def _begin(cluster: Cluster, tree: Tree, dimensions: Dimensions, cells: Cells) -> _Amounts:
    """Write the amounts of a cluster as vectors, and add them up."""
    nodes, vector = cluster.nodes, partial(_vector, cluster.computed, dimensions.names)
    allocatable = [vector(dimensions.capacity, node.allocatable) for node in nodes]
    used = [vector(dimensions.use, node.used) for node in nodes]
    idle = [minus(*pair) for pair in zip(allocatable, used, strict=True)]

    def sums(amounts: Sequence[Vector]) -> list[Vector]:
        found = [dimensions.nothing for _ in tree.all]
        for cell, holding in zip(cells.nodes, cells.holders, strict=True):
            whole = tuple(map(sum, zip(*(amounts[node] for node in cell), strict=True)))
            for at in holding:
                found[at] = plus(found[at], whole)
        return found

    return _Amounts(allocatable, used, idle, sums(allocatable), sums(used))
