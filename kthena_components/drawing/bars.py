"""Divides the GPUs of a node or rack into the parts of its bar. Pure."""

from collections.abc import Sequence

from kthena_components.core.values.dataclass import dataclass
from kthena_components.drawing.picture import NodeBox, PodBox

OTHERS, FREE = "others", "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Adjacent GPUs of one bar."""

    state: str
    """The state of a pod, `others` for GPUs that pods without a name hold, or `free`."""
    gpus: int
    pod: PodBox | None = None


def parts_of(node: NodeBox) -> list[Part]:
    """Return the parts of a node's bar: pods, GPUs of others, free ones.

    A lost pod is drawn, although it no longer holds its GPUs, if the node has room for it.
    """
    parts = [Part(state=pod.state, gpus=pod.gpus, pod=pod) for pod in node.pods if pod.gpus > 0]
    told = sum(part.gpus for part in parts)
    if node.used > told:
        parts.append(Part(state=OTHERS, gpus=node.used - told))
    left = node.gpus - max(node.used, told)
    if left > 0:
        parts.append(Part(state=FREE, gpus=left))
    return parts


def totals_of(nodes: Sequence[NodeBox]) -> dict[str, int]:
    """Sum the GPUs of some nodes by the state of their parts."""
    found: dict[str, int] = {}
    for node in nodes:
        for part in parts_of(node):
            found[part.state] = found.get(part.state, 0) + part.gpus
    return found


def shares(amounts: Sequence[int], cells: int) -> list[int]:
    """Divide cells in proportion to amounts: they sum up, and no amount above 0 gets none.

    With fewer cells than amounts above 0, the largest get one each.
    """
    total, positive = sum(amounts), sum(amount > 0 for amount in amounts)
    if total <= 0 or cells <= 0:
        return [0] * len(amounts)
    if positive >= cells:
        largest = sorted(range(len(amounts)), key=lambda index: -amounts[index])[:cells]
        return [int(index in largest and amounts[index] > 0) for index in range(len(amounts))]
    exact = [amount * cells / total for amount in amounts]
    found = [max(int(share), int(amounts[index] > 0)) for index, share in enumerate(exact)]
    while sum(found) < cells:
        found[max(range(len(found)), key=lambda index: exact[index] - found[index])] += 1
    while sum(found) > cells:
        shrinkable = [index for index in range(len(found)) if found[index] > 1]
        found[min(shrinkable, key=lambda index: exact[index] - found[index])] -= 1
    return found
