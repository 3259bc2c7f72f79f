"""Cells: at most 64 nodes that lie in the same HyperNodes. Pods are counted and placed by cell."""

from kthena_components.core.values.dataclass import dataclass
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
