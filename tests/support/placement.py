"""Small clusters and groups for the tests of placement: racks of nodes with 8 GPUs."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from kthena_components.core.topology.domains import read_domains
from kthena_components.placement.model import (
    Cluster,
    Node,
    PodGroup,
    PodSet,
    Scheduler,
    SubGroupPolicy,
    Topology,
    Verdict,
)
from kthena_components.placement.place import place

GPU = "nvidia.com/gpu"
HARD = {tier: Topology(hard=True, highest_tier=tier) for tier in range(5)}
SOFT = Topology(hard=False)
SANDBOX = Scheduler(plugins=frozenset(
    {"priority", "gang", "predicates", "proportion", "nodeorder", "binpack",
     "network-topology-aware"}
))  # fmt: skip
"""The plugins of the sandbox's scheduler."""
ALLOCATABLE = {"cpu": Decimal(128), "memory": Decimal(2**40), "pods": Decimal(110)}


def node(
    name: str, gpus: float = 8, used: float = 0, *, taints: Sequence[Mapping[str, str]] = (),
    labels: Mapping[str, str] | None = None, accepts: bool = True, **room: float,
) -> Node:  # fmt: skip
    body = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints)},
    }
    allocatable = {**ALLOCATABLE, GPU: Decimal(gpus), **{k: Decimal(v) for k, v in room.items()}}
    held = {GPU: Decimal(used), "pods": Decimal(1)} if used else {}
    return Node(name=name, body=body, allocatable=allocatable, used=held, accepts_pods=accepts)


def hyper_node(
    name: str, tier: int, nodes: Iterable[str] = (), children: Iterable[str] = (),
    tier_name: str = "",
) -> dict[str, Any]:  # fmt: skip
    members = [
        {"type": kind, "selector": {"exactMatch": {"name": each}}}
        for kind, names in (("Node", nodes), ("HyperNode", children))
        for each in names
    ]
    named = {"tierName": tier_name} if tier_name else {}
    return {"metadata": {"name": name}, "spec": {"tier": tier, **named, "members": members}}


def cluster(
    nodes: Sequence[Node], hyper_nodes: Sequence[dict[str, Any]] = (), **more: Any
) -> Cluster:
    labels = {one.name: one.body["metadata"]["labels"] for one in nodes}
    more.setdefault("scheduler", SANDBOX)
    return Cluster(
        nodes=nodes, hyper_nodes=hyper_nodes, domains=read_domains(hyper_nodes, labels), **more
    )


def racks(*sizes: int, used: Mapping[str, float] | None = None, **more: Any) -> Cluster:
    """Racks r0, r1, … of nodes r0-n0, … with 8 GPUs at tier 1, under one spine at tier 2."""
    held = used or {}
    names = [[f"r{r}-n{n}" for n in range(size)] for r, size in enumerate(sizes)]
    nodes = [node(name, used=held.get(name, 0)) for each in names for name in each]
    leaves = [hyper_node(f"r{r}", 1, each, tier_name="rack") for r, each in enumerate(names)]
    spine = hyper_node("spine", 2, children=[f"r{r}" for r in range(len(sizes))])
    return cluster(nodes, [*leaves, spine], **more)


def pods(count: int, gpus: float = 8, name: str = "pods", **more: Any) -> PodSet:
    requests = {GPU: Decimal(gpus), "cpu": Decimal(1)} if gpus else {}
    return PodSet(name=name, count=count, requests=requests, **more)


def group(
    *sets: PodSet, name: str = "g", minimum: int | None = None, whole: bool = False, **more: Any
) -> PodGroup:
    """Describe a group whose pods all must start together, unless a minimum is given."""
    size = sum(one.count for one in sets)
    if whole:
        resources: dict[str, Decimal] = {}
        for one in sets:
            for key, amount in one.requests.items():
                resources[key] = resources.get(key, Decimal(0)) + one.count * amount
        more["min_resources"] = resources
    return PodGroup(
        namespace="serving", name=name, owner=f"ModelServing serving/{name}", pods=sets,
        minimum=size if minimum is None else minimum, **more,
    )  # fmt: skip


def role(name: str, instance: str, count: int, gpus: float = 8) -> PodSet:
    return pods(count, gpus, name, labels={"role": name, "instance": instance}, task=name)


def per_instance(name: str, size: int, minimum: int, topology: Topology | None) -> SubGroupPolicy:
    return SubGroupPolicy(
        name=name, match_labels={"matchLabels": {"role": name}}, match_label_keys=("instance",),
        size=size, minimum=minimum, topology=topology,
    )  # fmt: skip


def verdicts(where: Cluster, *groups: PodGroup) -> list[Verdict]:
    return [one.verdict for one in place(where, groups)]
