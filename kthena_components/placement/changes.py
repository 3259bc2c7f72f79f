"""Makes a change on paper, and asks the scheduler whether a group then fits. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from kthena_components.cluster.objects import labels_of, name_of, node_labels
from kthena_components.core import naming
from kthena_components.core.topology.domains import read_domains
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.quantity import render_quantity
from kthena_components.core.values.read import mapping, sequence, spec_of
from kthena_components.placement.model import (
    Body,
    Change,
    Cluster,
    Neighbour,
    Node,
    PodGroup,
    Running,
    Topology,
)
from kthena_components.placement.pod_sets import slot_and
from kthena_components.placement.quotas_and_limit_ranges import less
from kthena_components.placement.volcano.jobs import Job
from kthena_components.placement.volcano.scheduler import Scheduler

SpecChange = Callable[[Body], Body]


def starts(job: Job) -> bool:
    """Say whether the pods of a group that start together have nodes.

    Of a group without a minimum, each pod starts alone, so that all of them count.
    """
    if job.minimum:
        return job.ready
    return not job.missing and all(task.node is not None for task in job.tasks)


def fits(cluster: Cluster, group: PodGroup, *, choices: int | None = 2) -> bool:
    """Say whether the scheduler places a group, if no other one waits."""
    scheduler = Scheduler(replace(cluster, waiting=()), [group])
    if not scheduler.has_room():
        return False
    scheduler.run(most=choices)
    return starts(scheduler.jobs[0])


def helps(cluster: Cluster, group: PodGroup, change: Change) -> bool:
    """Say whether a group fits after a change."""
    return fits(changed_cluster(cluster, change), changed_group(group, change))


@dataclass(frozen=True, slots=True)
class Case:
    """A group that the scheduler does not place, and the cluster after all that it does place."""

    cluster: Cluster
    group: PodGroup
    scheduler: Scheduler
    """It has just failed to place the group alone."""

    def without(self, change: Callable[[PodGroup], PodGroup]) -> bool:
        """Say whether the group fits if it is written otherwise."""
        return fits(self.cluster, change(self.group))

    def changes(self, *found: Change) -> tuple[Change, ...]:
        """Keep the changes after which the group fits."""
        return tuple(one for one in found if helps(self.cluster, self.group, one))


def changed_cluster(cluster: Cluster, change: Change) -> Cluster:
    """Free, open and add nodes, and replace a queue, a quota, the HyperNodes or volumes."""
    if change.volumes:
        names = set(map(name_of, change.volumes))
        kept = [one for one in cluster.volumes
                if one.get("kind") != "PersistentVolume" or name_of(one) not in names]  # fmt: skip
        cluster = replace(cluster, volumes=(*kept, *change.volumes))
    if change.hyper_nodes:
        cluster = with_hyper_nodes(cluster, change.hyper_nodes)
    if change.freed_nodes:
        cluster = _freed(cluster, frozenset(change.freed_nodes))
    if change.opened_nodes:
        cluster = with_open_nodes(cluster, change.opened_nodes)
    queues = list(cluster.queues)
    if change.queue is not None:
        queues = [one for one in queues if one.name != change.queue.name] + [change.queue]
    if (new := change.quota) is not None:
        cluster = replace(cluster, quotas=[
            new if (one.namespace, one.name) == (new.namespace, new.name) else one
            for one in cluster.quotas
        ])  # fmt: skip
    added = frozenset(node.name for node in change.added_nodes)
    domains = [
        replace(domain, nodes=domain.nodes | added) if change.like in domain.nodes else domain
        for domain in cluster.domains
    ]
    if added:
        nodes = [*cluster.nodes, *change.added_nodes]
        cluster = replace(cluster, nodes=nodes, domains=domains)
    return replace(cluster, queues=queues)


def with_hyper_nodes(cluster: Cluster, bodies: Iterable[Body]) -> Cluster:
    """Give a cluster other HyperNodes."""
    hyper_nodes, labels = tuple(bodies), node_labels([node.body for node in cluster.nodes])
    domains = read_domains(hyper_nodes, labels)
    return replace(cluster, hyper_nodes=hyper_nodes, domains=domains)


def with_open_nodes(cluster: Cluster, names: Collection[str]) -> Cluster:
    """Make some nodes ready, and uncordon them."""
    return replace(cluster, nodes=[
        replace(node, accepts_pods=True) if node.name in names else node for node in cluster.nodes
    ])  # fmt: skip


def _freed(cluster: Cluster, names: frozenset[str]) -> Cluster:
    """Take the pods off some nodes, and out of the use of their queues."""
    nodes = [replace(node, used={}) if node.name in names else node for node in cluster.nodes]
    gone: dict[str, list[Amounts]] = {}
    for one in cluster.running:
        each = [pods.requests for pods in one.group.pods for _ in range(pods.count)]
        held = [slot_and(asked) for asked, at in zip(each, one.nodes, strict=True) if at in names]
        for queue in queue_line(cluster, one.group.queue) if held else ():
            gone.setdefault(queue, []).extend(held)
    queues = [replace(one, used=less(one.used, gone.get(one.name, []))) for one in cluster.queues]
    cluster = replace(cluster, nodes=nodes, queues=queues)

    def left(nodes: Sequence[str]) -> tuple[str, ...]:
        return tuple("" if name in names else name for name in nodes)

    running = [Running(group=one.group, nodes=left(one.nodes)) for one in cluster.running]
    if cluster.neighbours is None:
        return replace(cluster, running=running)
    neighbours = [replace(one, nodes=left(one.nodes)) for one in cluster.neighbours]
    return replace(cluster, running=running, neighbours=neighbours)


def queue_line(cluster: Cluster, name: str) -> list[str]:
    """Return a queue and its ancestors: each counts what the pods of the queue request."""
    parents, found = {queue.name: queue.parent for queue in cluster.queues}, [name]
    while (above := parents.get(found[-1], "")) and above not in found:
        found.append(above)
    return found


def changed_group(group: PodGroup, change: Change) -> PodGroup:
    """Write a group as a change asks for it."""
    group = change.group or group
    if change.topology is not None:
        group = with_topology(group, change.topology)
    if change.tolerations:
        group = tolerating(group, change.tolerations)
    return group


def with_topology(group: PodGroup, topology: Topology | None) -> PodGroup:
    """Give a group another topology. Those of its subgroups stay."""
    return replace(group, topology=topology)


def tolerating(group: PodGroup, added: Iterable[Body]) -> PodGroup:
    """Add tolerations to all pods of a group."""
    more = list(added)
    return with_specs(
        group, lambda spec: {**spec, "tolerations": [*(spec.get("tolerations") or ()), *more]}
    )


def with_specs(group: PodGroup, change: SpecChange) -> PodGroup:
    """Change the spec of all pods of a group."""
    return replace(group, pods=tuple(replace(one, spec=change(one.spec)) for one in group.pods))


def after(cluster: Cluster, scheduler: Scheduler) -> Cluster:
    """Return a cluster after its scheduler has placed what it can."""
    dimensions, room = scheduler.dimensions, scheduler.room

    def amounts(numbers: Sequence[float]) -> Mapping[str, Decimal]:
        return {
            name: dimensions.amount(name, int(number))
            for name, number in zip(dimensions.names, numbers, strict=True)
            if number
        }

    nodes = [
        replace(node, used=amounts(used))
        for node, used in zip(cluster.nodes, room.used, strict=True)
    ]
    shares = scheduler.queues.shares
    queues = [replace(one, used=amounts(shares[one.name].used)) for one in cluster.queues]
    placed = (task.node for job in scheduler.jobs for task in job.tasks
              if task.node is not None and not task.runs)  # fmt: skip
    taken = cluster.taken_by_others | {cluster.nodes[node].name for node in placed}
    neighbours = (*(cluster.neighbours or ()), *_placed_neighbours(cluster, scheduler))
    return replace(
        cluster,
        nodes=nodes,
        queues=queues,
        quotas=scheduler.quotas.now,
        neighbours=neighbours,
        waiting=(),
        taken_by_others=taken,
    )


def _placed_neighbours(cluster: Cluster, scheduler: Scheduler) -> Iterator[Neighbour]:
    """Return the pods that were placed, for what other pods ask of the pods around them."""
    for job in scheduler.jobs:
        nodes: dict[int, list[str]] = {}
        for task in job.tasks:
            if task.node is not None and not task.runs:
                nodes.setdefault(task.source, []).append(cluster.nodes[task.node].name)
        for source, names in nodes.items():
            group = job.group
            yield Neighbour(namespace=group.namespace, pods=group.pods[source], nodes=tuple(names))


def copy_of(node: Node, name: str) -> Node:
    """Describe another node like one, with nothing on it."""
    labels = {**labels_of(node.body), naming.HOSTNAME: name}
    metadata = {**(node.body.get("metadata") or {}), "name": name, "labels": labels}
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        metadata.pop(key, None)
    return replace(node, name=name, body={**node.body, "metadata": metadata}, used={})


def with_allocatable(node: Node, more: Amounts) -> Node:
    """Describe a node with other amounts of some resources."""
    status = mapping(node.body.get("status"))
    written = {key: render_quantity(amount) for key, amount in more.items()}
    allocatable = {**mapping(status.get("allocatable")), **written}
    body = {**node.body, "status": {**status, "allocatable": allocatable}}
    return replace(node, body=body, allocatable={**node.allocatable, **more})


# Repairs the tree of HyperNodes on paper.


def tree_of_hyper_nodes(cluster: Cluster) -> Change:
    """Remove the members that give a HyperNode a second parent, or close a cycle.

    A HyperNode of which none is left is removed: the API server rejects one without members.
    """
    names, parents = set(map(name_of, cluster.hyper_nodes)), dict[str, str]()
    gone, bodies = list[str](), list[Body]()
    for body in cluster.hyper_nodes:
        name, kept, lost = name_of(body), list[object](), list[str]()
        for member in sequence(spec_of(body).get("members")):
            child = _child(mapping(member))
            if child not in names or _may_be_above(name, child, parents):
                kept.append(member)
                parents.setdefault(child, name)
            else:
                lost.append(f"the member {child} of the HyperNode {name}")
        if lost and not kept:
            gone.append(f"the HyperNode {name}")
            continue
        gone += lost
        bodies.append({**body, "spec": {**spec_of(body), "members": kept}})
    return Change(text=f"Remove {' and '.join(gone)}", hyper_nodes=tuple(bodies))


def _child(member: Mapping[str, Any]) -> str:
    """Return the HyperNode that a member names. Empty: it names none."""
    exact = mapping(mapping(member.get("selector")).get("exactMatch"))
    return str(exact.get("name", "")) if member.get("type") == "HyperNode" else ""


def _may_be_above(name: str, child: str, parents: Mapping[str, str]) -> bool:
    """Say whether a HyperNode may be the parent of another one, which has one already or none."""
    line = [name]
    while (above := parents.get(line[-1])) and above not in line:
        line.append(above)
    return child not in line and parents.get(child, name) == name
