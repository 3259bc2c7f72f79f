"""Names HyperNodes so that equal ones have one name: what pods find in one, they find in all.

Racks that are still empty, or filled alike, are tried once in place of one by one.
"""

from collections.abc import Hashable, Iterable, Sequence

from kthena_components.placement.volcano.jobs import Task
from kthena_components.placement.volcano.neighbours import Neighbours
from kthena_components.placement.volcano.room import Room


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
