"""Reads an answer of the scheduler as the words of placement, and compares it with ours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from conformance.fit.driven_cluster import Answer, group_of
from kthena_components.cluster.objects import name_of
from kthena_components.placement.changes import with_hyper_nodes
from kthena_components.placement.from_objects import cluster_of as read_objects
from kthena_components.placement.inventory import InventoryError, parse_inventory, sentences
from kthena_components.placement.inventory_write import write_inventory
from kthena_components.placement.model import Cluster, Outcome, PodGroup, Verdict
from kthena_components.placement.pod_groups import turn_of

Place = Callable[[Cluster, Sequence[PodGroup]], list[Outcome]]
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One gang: the scheduler's answer and ours."""

    group: PodGroup
    placed: dict[str, str]
    """The node of each pod that the scheduler placed."""
    outcome: Outcome

    @property
    def starts(self) -> bool:
        """Whether the scheduler placed what must start together: without a minimum, all pods."""
        return len(self.placed) >= (self.group.minimum or self.group.size)

    @property
    def agrees(self) -> bool:
        """Whether both find a place, or neither does."""
        return self.starts == (self.outcome.verdict is Verdict.FITS)

    def __str__(self) -> str:
        """Say what both answer."""
        ours = self.outcome.placement.nodes if self.outcome.placement else "nowhere"
        return (
            f"{self.group.name}: Volcano places {len(self.placed)} of {self.group.size} pods, of "
            f"which {self.group.minimum} must start together, on {sorted(self.placed.values())}; "
            f"we say {self.outcome.verdict}: {ours}"
        )


def compare(answer: Answer, place: Place) -> list[Compared]:
    """Compare the answers about all gangs of a case."""
    return [
        Compared(group=one.group, placed=placed_of(answer, one.group.name), outcome=one)
        for one in place(cluster_of(answer.objects), groups_of(answer.objects))
    ]


def nodes_of(answer: Answer, group: PodGroup) -> list[str]:
    """Return the node of each pod of a group, in the order of its pods."""
    own = [pod for pod in of_kind(answer.objects, "Pod") if group_of(pod) == group.name]
    return [answer.bound.get(name_of(pod), "") for pod in sorted(own, key=turn_of)]


def placed_of(answer: Answer, group: str) -> dict[str, str]:
    """Return the node of each pod of a PodGroup that the scheduler placed."""
    own = {name_of(pod) for pod in of_kind(answer.objects, "Pod") if group_of(pod) == group}
    return {pod: node for pod, node in answer.bound.items() if pod in own}


def cluster_of(objects: Sequence[Body]) -> Cluster:
    """Return the cluster before the decision, as `fit` reads it from an inventory."""
    return replace(read(objects), waiting=())


def groups_of(objects: Sequence[Body]) -> list[PodGroup]:
    """Return the groups that wait."""
    return list(read(objects).waiting)


def read(objects: Sequence[Body]) -> Cluster:
    """Write the inventory of a cluster, and read it.

    An inventory has no HyperNodes that contradict each other: they come in as `fit` takes those of
    a change.

    Raises:
        InventoryError: The inventory cannot be read.
    """
    trees = of_kind(objects, "HyperNode")
    contradict = bool(read_objects(objects)[1])
    kept = [body for body in objects if not contradict or body not in trees]
    cluster, findings = read_objects(kept)
    if findings:
        raise InventoryError(sentences(findings, ""))
    cluster = parse_inventory(write_inventory(cluster))
    return with_hyper_nodes(cluster, trees) if contradict else cluster


def of_kind(objects: Sequence[Body], kind: str) -> list[Body]:
    """Return the objects of one kind."""
    return [body for body in objects if body["kind"] == kind]
