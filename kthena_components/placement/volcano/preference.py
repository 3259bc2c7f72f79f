"""Which HyperNodes the scheduler prefers for the next pod, and for a whole subgroup.

Source: Volcano v1.14.1 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go,
HyperNodeOrderFn and batchNodeOrderFn.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from kthena_components.placement.volcano.amounts import Vector
from kthena_components.placement.volcano.jobs import Subgroup, total
from kthena_components.placement.volcano.room import Room
from kthena_components.placement.volcano.shapes import Shape

_FEW = 4
"""HyperNodes of at most this many cells are worth comparing as a whole."""
Extra = Callable[[Iterable[int]], dict[int, float]]


class Preference:
    """Scores cells of nodes by their HyperNodes."""

    def __init__(self, room: Room, *, active: bool) -> None:
        """Compute the weights of the tiers."""
        self._room = room
        self._tree = room.tree
        self._scores = room.scores
        self._active = active and bool(room.scores.topology)
        self._leaf_of_cell = [
            self._tree.leaf_of.get(cell[0]) if cell else None for cell in room.cells
        ]
        self._leaves = [{self._leaf_of_cell[cell] for cell in cells} for cells in room.cells_of]
        self._several = [len({room.holders[cell] for cell in cells}) > 1 for cells in room.cells_of]
        self._now: int | None = None
        self._counts: dict[int, Counter[int | None]] = {}
        low, high = self._tree.tiers[0], self._tree.tiers[-1]
        self._fading = {tier: self._scores.fading ** (tier - 1) for tier in range(low, high + 1)}

    def begin(self, subgroup: Subgroup) -> None:
        """Begin to place pods of a subgroup: nearness counts from the HyperNode that it has."""
        self._now = subgroup.allocated

    def landed(self, subgroup: Subgroup, node: int) -> None:
        """Note that a pod of a subgroup with a topology is on a node."""
        if subgroup.topology is not None:
            leaf = self._tree.leaf_of.get(node)
            self._now = self._now if leaf is None else self._tree.common(leaf, self._now)
            self._counts.setdefault(id(subgroup), Counter())[leaf] += 1

    def left(self, subgroup: Subgroup, node: int) -> None:
        """Note that a pod of a subgroup is taken away again."""
        if subgroup.topology is not None:
            self._counts[id(subgroup)][self._tree.leaf_of.get(node)] -= 1

    def end(self, subgroup: Subgroup) -> None:
        """Remember where the pods of a subgroup with a soft topology are."""
        if subgroup.topology is not None and not subgroup.topology.hard:
            subgroup.allocated = self._now

    def decided_inside(self, subgroup: Subgroup, hyper: int) -> bool:
        """Say whether only the nodes in a HyperNode decide how an attempt in it ends."""
        if not self._several[hyper]:
            return True
        return subgroup.topology is not None and len(self._room.cells_of[hyper]) <= _FEW

    def of_cells(self, shape: Shape, subgroup: Subgroup, hyper: int) -> Extra | None:
        """Return how the next pod scores cells. None: all are equal."""
        if not self._active or not self._several[hyper]:
            return None
        if subgroup.topology is None:
            return self._by_use(shape) if self._scores.plain_pods else None
        now = self._now
        if now is None or len(self._leaves[hyper]) < 2:  # noqa: PLR2004 - one is no choice
            return None
        return self._by_nearness(subgroup, now)

    def _by_use(self, shape: Shape) -> Extra:
        """Prefer full HyperNodes, and nodes outside of any."""
        room, whole = self._room, sum(self._fading.values())
        known: dict[tuple[int, ...], float] = {}

        def score(holders: tuple[int, ...]) -> float:
            found = dict.fromkeys(self._fading, 1.0)
            for at in holders:
                found[self._tree.all[at].tier] = self._scores.of_hyper_node(
                    shape.request, room.hyper_used[at], room.hyper_allocatable[at]
                )
            weighed = sum(
                self._fading[tier] * each for tier, each in found.items() if tier in self._fading
            )
            return self._scores.topology * weighed / whole if whole else 0.0

        def extra(cells: Iterable[int]) -> dict[int, float]:
            scored = {}
            for cell in cells:
                holders = room.holders[cell]
                if holders not in known:
                    known[holders] = score(holders)
                scored[cell] = known[holders]
            return scored

        return extra

    def _by_nearness(self, subgroup: Subgroup, now: int) -> Extra:
        """Prefer the HyperNode that the subgroup has, then its neighbours, then its fullest."""
        low, high = self._tree.tiers[0], self._tree.tiers[-1]
        counts = self._counts.get(id(subgroup), Counter())

        def near(leaf: int | None) -> float:
            if leaf is None:
                return 0.0
            if leaf == now:
                return 1.0
            common = self._tree.common(leaf, now)
            if common is None:
                return 0.0
            tier = self._tree.all[common].tier
            return 1.0 if low == high else (high - tier) / (high - low)

        def extra(cells: Iterable[int]) -> dict[int, float]:
            leaves = {cell: self._leaf_of_cell[cell] for cell in cells}
            scored = {leaf: near(leaf) for leaf in set(leaves.values())}
            most = max(scored.values(), default=0.0)
            for leaf, score in scored.items():
                if score >= most:
                    scored[leaf] = score + counts[leaf] / len(subgroup.tasks)
            return {cell: self._scores.topology * scored[leaf] for cell, leaf in leaves.items()}

        return extra

    def of_each(self, subgroup: Subgroup, found: Iterable[int]) -> dict[int, float]:
        """Score HyperNodes for a subgroup by how full they would be."""
        if not self._active:
            return dict.fromkeys(found, 0.0)
        room, scale = self._room, self._scores.topology
        wanted = total(subgroup.tasks, tuple(0 for _ in room.hyper_used[0]))
        known: dict[tuple[Vector, Vector], float] = {}
        scores = {}
        for at in found:
            key = room.hyper_used[at], room.hyper_allocatable[at]
            if key not in known:
                known[key] = scale * self._scores.of_hyper_node(wanted, *key)
            scores[at] = known[key]
        return scores

    def of_hyper_nodes(self, subgroup: Subgroup, found: Iterable[int]) -> dict[int, float]:
        """Score the HyperNodes in which a subgroup fits; of equal ones, its own pods decide."""
        scores = self.of_each(subgroup, found)
        best = max(scores.values())
        tied = [at for at, score in scores.items() if score == best]
        held = [task.node for task in subgroup.tasks if task.node is not None]
        for at in tied if len(tied) > 1 and held else ():
            own = sum(node in self._tree.all[at].nodes for node in held)
            scores[at] += self._scores.topology * own / len(subgroup.tasks)
        return scores
