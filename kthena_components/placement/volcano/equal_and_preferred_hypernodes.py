"""Which HyperNodes are equal, and which the scheduler prefers for the next pods. Pure.

Source: Volcano v1.14.1 pkg/scheduler/plugins/network-topology-aware/network_topology_aware.go,
HyperNodeOrderFn and batchNodeOrderFn.

Racks that are still empty, or filled alike, are tried once in place of one by one.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

from kthena_components.placement.volcano.amounts_and_shapes import Shape, Vector
from kthena_components.placement.volcano.jobs import Subgroup, Task, total
from kthena_components.placement.volcano.neighbours import Neighbours
from kthena_components.placement.volcano.room import Room

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
        """Return how the next pod scores cells; None if all are equal."""
        if not self._active or not self._several[hyper]:
            return None
        if subgroup.topology is None:
            return self._by_use(shape) if self._scores.plain_pods else None
        now = self._now
        if now is None or len(self._leaves[hyper]) < 2:  # noqa: PLR2004 - one is not a choice
            return None
        return self._by_nearness(subgroup, now)

    def _by_use(self, shape: Shape) -> Extra:
        """Prefer full HyperNodes, and nodes outside of any."""
        room, whole = self._room, sum(self._fading.values())
        known: dict[tuple[int, ...], float] = {}

        def score(holders: tuple[int, ...]) -> float:
            """Score a candidate by how full the HyperNodes above it are, weighed by tier."""
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
            """Score a candidate from 0 to 1: 1 is nearest in the tree of HyperNodes."""
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


class EqualCells:
    """Compares the HyperNodes at the bottom of the tree by what their nodes hold."""

    def __init__(self, room: Room, neighbours: Neighbours) -> None:
        """Begin with what the nodes hold now."""
        self._room = room
        self._neighbours = neighbours
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[tuple[int, bool], tuple[int, int]] = {}

    def forget(self) -> None:
        """Forget the names of cells, because their order or their neighbours have changed."""
        self._known.clear()

    def names(self, tier: Sequence[int], tasks: Iterable[Task]) -> dict[int, Hashable]:
        """Name HyperNodes by what decides where some pods find places in each of them."""
        if len(tier) == 1:
            return {tier[0]: ()}
        pods = {(task.shape.number, task.peer): task for task in tasks}.values()
        peers = {task.peer for task in pods if self._neighbours.decide(task.peer)}
        if any(peer.spreads for peer in peers):
            return {at: (at,) for at in tier}
        choosy = [one.shape.accepted for one in pods if not all(one.shape.accepted)]
        return {at: self._name(at, choosy, others=bool(peers)) for at in tier}

    def _name(self, hyper: int, choosy: Sequence[Sequence[bool]], *, others: bool) -> Hashable:
        cells = self._room.cells_of[hyper]
        if len(cells) != 1 or self._room.tree.all[hyper].children:
            return (hyper,)
        nodes = self._room.cells[cells[0]]
        accepted = tuple([tuple([each[node] for node in nodes]) for each in choosy])
        return self._contents(cells[0], others=others), accepted

    def _contents(self, cell: int, *, others: bool) -> int:
        """Number the contents of a cell, so that cells with equal nodes have equal numbers.

        `others` also compares the pods around that the next pods look for.
        """
        room, stamp = self._room, self._room.stamps[cell]
        known = self._known.get((cell, others))
        if known is not None and known[0] == stamp:
            return known[1]
        nodes = room.cells[cell]
        held = tuple([(room.allocatable[node], room.used[node]) for node in nodes])
        order = tuple(sorted(range(len(nodes)), key=lambda at: room.rank[nodes[at]]))
        around = self._neighbours.around(nodes) if others else None
        number = self._numbers.setdefault((held, order, around), len(self._numbers))
        self._known[cell, others] = stamp, number
        return number
