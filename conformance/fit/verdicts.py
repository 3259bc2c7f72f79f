"""Reads an answer of the scheduler as the words of placement, and compares it with ours."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from conformance.fit.driven_cluster import Answer, group_of
from kthena_components.cluster.objects import (
    allocatable,
    annotations_of,
    labels_of,
    name_of,
    node_labels,
    requested,
    takes_pods,
)
from kthena_components.core import naming
from kthena_components.core.plan.templates import requests_of
from kthena_components.core.topology.domains import read_domains
from kthena_components.core.values.quantity import parse_quantity
from kthena_components.placement.model import (
    Cluster,
    Node,
    Outcome,
    PodGroup,
    PodSet,
    Queue,
    Scheduler,
    SubGroupPolicy,
    Topology,
    Verdict,
)

PLUGINS = frozenset(
    {"priority", "gang", "predicates", "proportion", "nodeorder", "binpack",
     "network-topology-aware"}
)  # fmt: skip
"""What the sandbox's scheduler runs: see sandbox/commands.py."""
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
    return [answer.bound.get(name_of(pod), "") for pod in sorted(own, key=_turn)]


def placed_of(answer: Answer, group: str) -> dict[str, str]:
    """Return the node of each pod of a PodGroup that the scheduler placed."""
    own = {name_of(pod) for pod in of_kind(answer.objects, "Pod") if group_of(pod) == group}
    return {pod: node for pod, node in answer.bound.items() if pod in own}


def cluster_of(objects: Sequence[Body]) -> Cluster:
    """Return the cluster before the decision."""
    nodes = of_kind(objects, "Node")
    pods = of_kind(objects, "Pod")
    held = requested(pods)
    hyper_nodes = of_kind(objects, "HyperNode")
    return Cluster(
        nodes=[
            Node(name=name_of(body), body=body, allocatable=allocatable(body),
                 used=held.get(name_of(body), {}), accepts_pods=takes_pods(body))
            for body in nodes
        ],
        domains=read_domains(hyper_nodes, node_labels(nodes)),
        hyper_nodes=hyper_nodes,
        queues=[_queue(body) for body in sorted(of_kind(objects, "Queue"), key=_age)],
        scheduler=Scheduler(plugins=PLUGINS),
    )  # fmt: skip


def groups_of(objects: Sequence[Body]) -> list[PodGroup]:
    """Return the PodGroups, oldest first, as Volcano orders those of one priority."""
    priorities = {name_of(body): int(body["value"]) for body in of_kind(objects, "PriorityClass")}
    pods = sorted(of_kind(objects, "Pod"), key=_turn)
    found = sorted(of_kind(objects, "PodGroup"), key=_age)
    return [
        _group(body, [pod for pod in pods if group_of(pod) == name_of(body)], priorities)
        for body in found
    ]


def of_kind(objects: Sequence[Body], kind: str) -> list[Body]:
    """Return the objects of one kind."""
    return [body for body in objects if body["kind"] == kind]


def _age(body: Body) -> tuple[str, str]:
    """Order PodGroups as Volcano does: its own uid of a PodGroup is the name.

    Source: Volcano v1.14.1 pkg/scheduler/framework/session_plugins.go, JobOrderFn.
    """
    return body["metadata"]["creationTimestamp"], name_of(body)


def _turn(body: Body) -> tuple[int, str, str]:
    """Order the pods of a PodGroup as Volcano does: by the number at the end of their names.

    Source: Volcano v1.14.1 pkg/controllers/job/helpers/helpers.go, CompareTask.
    """
    number = name_of(body).rpartition("-")[2]
    metadata = body["metadata"]
    return (
        int(number) if number.isdecimal() else 0,
        metadata["creationTimestamp"],
        metadata["uid"],
    )


def _group(body: Body, pods: Sequence[Body], priorities: Mapping[str, int]) -> PodGroup:
    spec = body["spec"]
    runs = [list(run) for _, run in groupby(pods, _shape)]
    least = spec.get("minResources")
    return PodGroup(
        namespace=body["metadata"]["namespace"],
        name=name_of(body),
        owner=f"PodGroup {name_of(body)}",
        pods=tuple(map(_pod_set, runs)),
        minimum=int(spec.get("minMember", 0)),
        task_minimum=spec.get("minTaskMember") or {},
        min_resources=None if least is None else _amounts(least),
        topology=_topology(spec),
        subgroups=tuple(map(_policy, spec.get("subGroupPolicy") or ())),
        queue=spec.get("queue", "default"),
        priority=priorities.get(spec.get("priorityClassName", ""), 0),
    )


def _shape(pod: Body) -> tuple[str, ...]:
    spec = {key: value for key, value in pod["spec"].items() if key != "hostname"}
    return str(spec), str(labels_of(pod)), str(annotations_of(pod).get(naming.TASK_SPEC))


def _pod_set(pods: Sequence[Body]) -> PodSet:
    first = pods[0]
    task = annotations_of(first).get(naming.TASK_SPEC, "")
    return PodSet(
        name=name_of(first),
        count=len(pods),
        requests=requests_of(dict(first)),
        spec=first["spec"],
        labels=labels_of(first),
        task=task,
    )


def _policy(body: Body) -> SubGroupPolicy:
    return SubGroupPolicy(
        name=body.get("name", ""),
        match_labels=body.get("labelSelector") or {},
        match_label_keys=tuple(body.get("matchLabelKeys") or ()),
        size=int(body.get("subGroupSize", 1)),
        minimum=int(body.get("minSubGroups", 0)),
        topology=_topology(body),
    )


def _topology(spec: Body) -> Topology | None:
    stated = spec.get("networkTopology")
    if not stated:
        return None
    return Topology(
        hard=stated.get("mode", "hard") == "hard",
        highest_tier=stated.get("highestTierAllowed"),
        highest_tier_name=stated.get("highestTierName"),
    )


def _queue(body: Body) -> Queue:
    spec = body.get("spec") or {}
    return Queue(
        name=name_of(body),
        capability=_amounts(spec.get("capability") or {}),
        deserved=_amounts(spec.get("deserved") or {}),
        guarantee=_amounts((spec.get("guarantee") or {}).get("resource") or {}),
        parent=spec.get("parent", ""),
        weight=int(spec.get("weight", 1)),
    )


def _amounts(stated: Mapping[str, Any]) -> dict[str, Any]:
    return {key: parse_quantity(amount) for key, amount in stated.items()}
