"""Clusters and outcomes for pictures: groups fill one rack after another."""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from kthena_components.core.topology.domains import Domain
from kthena_components.drawing.from_outcomes_and_servings import picture_of
from kthena_components.drawing.picture import Picture
from kthena_components.placement.model import (
    Cause,
    Change,
    Cluster,
    Node,
    Obstacle,
    Outcome,
    Placement,
    PodGroup,
    PodSet,
    Running,
    SubGroupPolicy,
    Verdict,
)

GPU = "nvidia.com/gpu"
TAKEN = datetime(2026, 11, 26, 19, 0, tzinfo=UTC)
READY = {"type": "Ready", "status": "True"}


def amounts(gpus: int, pods: int = 0) -> Mapping[str, Decimal]:
    return {GPU: Decimal(gpus), "pods": Decimal(pods)}


def node(name: str, *, gpus: int = 8, used: int = 0, cordoned: bool = False) -> Node:
    body: dict[str, Any] = {
        "metadata": {"name": name, "labels": {"nvidia.com/gpu.product": "NVIDIA-H200"}},
        "status": {"conditions": [READY]},
    }
    if cordoned:
        body["spec"] = {"unschedulable": True}
    return Node(
        name=name, body=body, allocatable=amounts(gpus, 110), used=amounts(used, int(used > 0)),
        accepts_pods=not cordoned,
    )  # fmt: skip


def group(name: str, *, prefill: int = 1, decode: int = 2, namespace: str = "serving") -> PodGroup:
    """Return a group with engines of two pods with 4 GPUs, and a router without any."""
    labels = {"role": "prefill"}
    pods = (
        PodSet(name="prefill", count=2 * prefill, requests=amounts(4), labels=labels),
        PodSet(name="decode", count=decode, requests=amounts(2)),
        PodSet(name="router", count=1, requests={"cpu": Decimal(1)}),
    )
    return PodGroup(
        namespace=namespace, name=name, owner=f"ModelServing {namespace}/{name.rpartition('-')[0]}",
        pods=pods, minimum=sum(each.count for each in pods),
        subgroups=(SubGroupPolicy(name="p", match_labels={"matchLabels": labels}, size=2),),
    )  # fmt: skip


def cluster(racks: int, nodes: int, *, used: int = 0, running: tuple[Running, ...] = ()) -> Cluster:
    """Return racks below one spine. `used` GPUs of every fourth node belong to others."""
    named = {f"rack-{r}": [f"node-{r}-{n}" for n in range(nodes)] for r in range(racks)}
    everything = frozenset(name for names in named.values() for name in names)
    domains = [
        Domain(name=rack, tier=1, tier_name=None, nodes=frozenset(names))
        for rack, names in named.items()
    ]
    held = dict.fromkeys(everything, 0)
    for one in running:
        for name, pod in zip(one.nodes, _gpus(one.group), strict=True):
            held[name] += pod
    return Cluster(
        nodes=[
            node(name, used=held[name] + (used if index % 4 == 0 else 0))
            for names in named.values()
            for index, name in enumerate(names)
        ],
        domains=[*domains, Domain(name="spine", tier=2, tier_name=None, nodes=everything)],
        running=running,
        taken=TAKEN,
        source="prod.yaml",
    )


def _gpus(asked: PodGroup) -> list[int]:
    return [int(pods.requests.get(GPU, 0)) for pods in asked.pods for _ in range(pods.count)]


def place(there: Cluster, groups: list[PodGroup]) -> list[Outcome]:
    """Put each pod onto the first node with room; a group that has none waits as a whole."""
    free = {one.name: int(one.allocatable[GPU] - one.used[GPU]) for one in there.nodes}
    found = []
    for asked in groups:
        left, names = dict(free), []
        for gpus in _gpus(asked):
            name = next((name for name, room in left.items() if room >= gpus), None)
            if name is None:
                break
            left[name] -= gpus
            names.append(name)
        if len(names) == asked.size:
            free = left
            rack = next((d for d in there.domains if set(names) <= d.nodes), None)
            placed = Placement(nodes=tuple(names), domain=rack)
            found.append(Outcome(group=asked, verdict=Verdict.FITS, placement=placed, exists=True))
        else:
            found.append(waiting(asked, sum(free.values())))
    return found


def waiting(asked: PodGroup, free: int) -> Outcome:
    text = f"{free} GPUs are free, and it needs {sum(_gpus(asked))} in one rack"
    change = Change(text="Free one node in rack-0")
    return Outcome(
        group=asked, verdict=Verdict.WAITS, exists=False,
        obstacles=(Obstacle(cause=Cause.GPUS, text=text, changes=(change,)),),
    )  # fmt: skip


@cache
def pictured(servings: int) -> Picture:
    """Return the picture of 1, 20 or 300 servings, some of which have no place."""
    old = group("old-0")
    names = ("node-0-1", "node-0-1", "node-0-2", "node-0-2", "node-0-2")
    running = Running(group=old, nodes=names)
    there = cluster(max(2, servings // 3), 8, used=3, running=(running,))
    groups = [group(f"chat-{index}", prefill=1 + index % 5) for index in range(servings)]
    before = picture_of(there, place(there, groups[: servings // 2]))
    changed = [one.title for one in groups[servings // 2 :]]
    return picture_of(there, place(there, groups), changed=changed, before=before)
