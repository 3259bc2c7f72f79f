"""Answers where the pods of some objects run on a cluster that may run them already. Pure.

Source of the names of plugins: Volcano v1.14.1 pkg/scheduler/plugins, RegisterPluginBuilder of
factory.go. A scheduler passes over a plugin without a builder (pkg/scheduler/framework/
framework.go), but may have loaded one of its own.

What a cluster runs of the same servings is taken away first, unless it stays as it is. HyperNodes
and queues among the objects replace those of the cluster.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from kthena_components.cluster.objects import name_of, namespace_of
from kthena_components.core.findings import nearest
from kthena_components.core.objects.object import CLAIM, HYPER_NODE, QUEUE
from kthena_components.core.schema.versions import VERSIONS, known_version
from kthena_components.core.topology.domains import lowest
from kthena_components.core.topology.node_fit import REQUIRED, Amounts
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import listing
from kthena_components.core.values.quantity import add_resources
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.anonymous import claims_of, with_names_of
from kthena_components.placement.changes import queue_line, with_hyper_nodes
from kthena_components.placement.devices import with_devices
from kthena_components.placement.from_objects import queue_of
from kthena_components.placement.model import (
    Cluster,
    Outcome,
    Placement,
    PodGroup,
    PodSet,
    Queue,
    Running,
    Scheduler,
    Verdict,
)
from kthena_components.placement.place import place
from kthena_components.placement.pod_sets import slot_and
from kthena_components.placement.quotas_and_limit_ranges import Quotas, less, released
from kthena_components.placement.workloads import Surge, notes_of, pod_groups_of, surges_of

_PLUGINS = Scheduler().plugins | {
    "capacity", "cdp", "deviceshare", "extender", "nodegroup", "numa-aware", "pdb", "rescheduling",
    "resource-strategy-fit", "resourcequota", "sla", "task-topology", "tdm", "usage",
}  # fmt: skip


def not_known(scheduler: Scheduler) -> Iterator[str]:
    """Say which version and which plugins are not known, each as a clause."""
    if known_version(scheduler.version, "volcano") is None:
        known = listing(VERSIONS["volcano"])
        yield f"the scheduler's version {scheduler.version} is not known: the model knows {known}"
    for name in sorted(scheduler.plugins - _PLUGINS):
        close = nearest(name, sorted(_PLUGINS))
        meant = f"; write '{close}' if that is meant" if close else ""
        yield f"Volcano has no plugin '{name}', so what it does is not modelled{meant}"


Body = Mapping[str, Any]
STAYS = "runs already and stays"
_NO_PRODUCT = (
    "no node states its GPU, so the GPU that pods select by labels was not compared: write the "
    "`product` of the nodes into the inventory"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FitQuestion:
    """A cluster, and the groups to place into it."""

    cluster: Cluster
    """Without what the objects replace."""
    groups: tuple[PodGroup, ...]
    """All groups of the objects."""
    staying: Mapping[int, Running]
    """Those that run already, by their index."""
    before: Cluster
    """With what the objects replace."""
    surges: tuple[Surge, ...] = ()
    """What runs beside the pods that are replaced, during their update."""

    @property
    def drawn(self) -> Cluster:
        """The cluster without any of the groups, for a picture in which the answers are placed."""
        return without(self.cluster, list(self.staying.values()))


def ask(cluster: Cluster, objects: Iterable[Body]) -> FitQuestion:
    """Prepare the question whether the pods of some objects fit."""
    bodies = list(objects)
    groups = pod_groups_of(bodies, cluster.priorities)
    named = with_stated(with_names_of(cluster, groups), bodies)
    if named.limit_ranges:  # their namespaces are known only now
        groups = pod_groups_of(bodies, cluster.priorities, named.limit_ranges)
    named, groups, notes = with_devices(named, groups)
    named = replace(named, notes=(*named.notes, *notes, *not_known(named.scheduler)))
    staying = _staying(named, groups)
    stays = {id(running) for running in staying.values()}
    owners = {group.owner for group in groups} | {group.title for group in groups}
    gone = [
        running
        for running in named.running
        if id(running) not in stays and owners & {running.group.owner, running.group.title}
    ]
    waiting = [one for one in named.waiting if not owners & {one.owner, one.title}]
    kept = {id(one) for one in waiting}
    gone += [
        Running(group=one, nodes=("",) * one.size) for one in named.waiting if id(one) not in kept
    ]
    compared = [_without_labels(group, named.unstated_labels) for group in groups]
    if compared != groups:
        named = replace(named, notes=(*named.notes, _NO_PRODUCT))
    missing = partial(_without_claim, _claims(named.volumes), _claims(bodies))
    compared = [one if n in staying else missing(one) for n, one in enumerate(compared)]
    waits = tuple(_without_labels(one, named.unstated_labels) for one in waiting)
    left = replace(without(named, gone), waiting=waits)
    replaced = {running.group.owner for running in gone if any(running.nodes)}
    surges = surges_of(bodies, groups) if replaced else []
    return FitQuestion(cluster=left, groups=tuple(compared), staying=staying, before=named,
                 surges=tuple(one for one in surges if one.owner in replaced))  # fmt: skip


def _claims(bodies: Iterable[Body]) -> set[tuple[str, str]]:
    return {(namespace_of(each), name_of(each)) for each in bodies if group_kind(each) == CLAIM}


def _without_claim(
    listed: set[tuple[str, str]], stated: set[tuple[str, str]], group: PodGroup
) -> PodGroup:
    """Say that a claim of a group's pods exists nowhere, if the cluster lists claims at all.

    The scheduler places no pod until its claim exists, which may have been made in the meantime.
    Source: Kubernetes 1.34 pkg/scheduler/framework/plugins/volumebinding.
    """
    space = group.namespace or "default"
    lacks = [name for name in claims_of(group) if (space, name) not in listed | stated]
    if group.unknown is not None or not listed or not lacks:
        return group
    because = (
        f"its pods name the PersistentVolumeClaim '{lacks[0]}' in the namespace '{space}', which "
        "neither the files nor the cluster or its inventory have, and no pod is placed without it"
    )
    return replace(group, unknown=Unknown(because))


def _without_labels(group: PodGroup, labels: frozenset[str]) -> PodGroup:
    """Leave out what pods ask of labels that an inventory does not state."""
    if not labels:
        return group
    pods = tuple(replace(one, spec=_unselected(one.spec, labels)) for one in group.pods)
    return group if pods == tuple(group.pods) else replace(group, pods=pods)


def _unselected(spec: Body, labels: frozenset[str]) -> Body:
    """Remove conditions on some node labels from a pod's selector and required affinity."""
    left = dict(spec)
    if selector := mapping(spec.get("nodeSelector")):
        left["nodeSelector"] = {key: each for key, each in selector.items() if key not in labels}
    affinity = mapping(spec.get("affinity"))
    node = mapping(affinity.get("nodeAffinity"))
    terms = [mapping(one) for one in sequence(mapping(node.get(REQUIRED)).get("nodeSelectorTerms"))]
    kept = [{**one, "matchExpressions": [each for each in sequence(one.get("matchExpressions"))
                                         if mapping(each).get("key") not in labels]}
            if one.get("matchExpressions") else one for one in terms]  # fmt: skip
    if kept == terms:
        return left
    others = {key: each for key, each in node.items() if key != REQUIRED}
    # A term matches if all of its expressions do: one with none left matches any node.
    if all(any(one.values()) for one in kept):
        others[REQUIRED] = {"nodeSelectorTerms": kept}
    return {**left, "affinity": {**affinity, "nodeAffinity": others}}


def answer(asked: FitQuestion) -> list[Outcome]:
    """Return the answer for each group, in the order of the objects."""
    new = [group for index, group in enumerate(asked.groups) if index not in asked.staying]
    placed = iter(place(asked.cluster, new))
    notes = notes_of(asked.before, asked.surges)
    return [
        _stays(asked, group, asked.staying[index])
        if index in asked.staying
        else _noted(next(placed), notes)
        for index, group in enumerate(asked.groups)
    ]


def _noted(outcome: Outcome, notes: dict[str, str]) -> Outcome:
    """Add what the update needs to the first group of an object that fits."""
    if outcome.verdict is not Verdict.FITS:
        return outcome
    notes_of_both = [outcome.note, notes.pop(outcome.group.owner, "")]
    return replace(outcome, note=". ".join(filter(None, notes_of_both)))


def _stays(asked: FitQuestion, group: PodGroup, running: Running) -> Outcome:
    domain = lowest(asked.cluster.domains, frozenset(filter(None, running.nodes)))
    where = Placement(nodes=running.nodes, domain=domain)
    return Outcome(group=group, verdict=Verdict.FITS, placement=where, exists=True, note=STAYS)


def _staying(cluster: Cluster, groups: Sequence[PodGroup]) -> dict[int, Running]:
    """Find, by position, the groups that already run as asked for, each with all its pods."""
    free: dict[object, list[Running]] = {}
    for running in cluster.running:
        if all(running.nodes):
            free.setdefault((running.group.owner, shape(running.group)), []).append(running)
    found: dict[int, Running] = {}
    for index, group in enumerate(groups):
        alike = free.get((group.owner, shape(group)), [])
        same = [one for one in alike if one.group.title == group.title] or alike
        if group.unknown is None and same:
            found[index] = same[0]
            alike.remove(same[0])
    return found


def shape(group: PodGroup) -> object:
    """Return what decides where a group fits, equal for equal groups."""
    counted: dict[object, int] = {}
    for pods in group.pods:
        selector = tuple(sorted(dict(pods.spec.get("nodeSelector") or {}).items()))
        key = (tuple(sorted(pods.requests.items())), selector)
        counted[key] = counted.get(key, 0) + pods.count
    tiers = tuple((policy.size, policy.topology) for policy in group.subgroups)
    return (tuple(sorted(counted.items(), key=repr)), group.minimum, group.topology, tiers)


def without(cluster: Cluster, gone: Sequence[Running]) -> Cluster:
    """Take running groups off their nodes, their queues and the quotas of their namespaces."""
    nodes: dict[str, list[Amounts]] = {}
    queues: dict[str, list[Amounts]] = {}
    spaces: dict[str, list[PodSet]] = {}
    for running in gone:
        each = [pods for pods in running.group.pods for _ in range(pods.count)]
        spaces.setdefault(running.group.namespace, []).extend(each)
        for pods, node in zip(each, running.nodes, strict=True):
            if node:
                nodes.setdefault(node, []).append(slot_and(pods.requests))
                for queue in queue_line(cluster, running.group.queue):
                    queues.setdefault(queue, []).append(slot_and(pods.requests))
    left = {id(running) for running in gone}
    return replace(
        cluster,
        nodes=[replace(n, used=less(n.used, nodes.get(n.name, []))) for n in cluster.nodes],
        queues=[replace(q, used=less(q.used, queues.get(q.name, []))) for q in cluster.queues],
        quotas=released(cluster.quotas, spaces),
        running=tuple(one for one in cluster.running if id(one) not in left),
    )


def with_placed(cluster: Cluster, outcomes: Sequence[Outcome]) -> Cluster:
    """Return the cluster in which all pods that are placed run where the answers put them.

    Args:
        cluster: Without those groups.
    """
    used = {node.name: node.used for node in cluster.nodes}
    queues: dict[str, Amounts] = {queue.name: queue.used for queue in cluster.queues}
    quotas, running = Quotas(cluster.quotas), list(cluster.running)
    for outcome in outcomes:
        group, placement = outcome.group, outcome.placement
        if outcome.verdict not in {Verdict.FITS, Verdict.PARTLY} or placement is None:
            continue
        running.append(Running(group=group, nodes=placement.nodes))
        quotas.create(group)
        each = [slot_and(pods.requests) for pods in group.pods for _ in range(pods.count)]
        for requests, node in zip(each, placement.nodes, strict=True):
            if node:
                used[node] = add_resources(used[node], requests)
                for queue in queue_line(cluster, group.queue):
                    queues[queue] = add_resources(queues.get(queue, {}), requests)
    return replace(
        cluster,
        nodes=[replace(node, used=used[node.name]) for node in cluster.nodes],
        queues=[replace(queue, used=queues[queue.name]) for queue in cluster.queues],
        quotas=quotas.now,
        running=tuple(running),
    )


def with_stated(cluster: Cluster, objects: Iterable[Body]) -> Cluster:
    """Replace the HyperNodes and queues of a cluster by those of the same names."""
    bodies = list(objects)
    hyper_nodes = [body for body in bodies if group_kind(body) == HYPER_NODE]
    queues = {name_of(body): body for body in bodies if group_kind(body) == QUEUE}
    if hyper_nodes:
        all_nodes = {name_of(body): body for body in (*cluster.hyper_nodes, *hyper_nodes)}
        cluster = with_hyper_nodes(cluster, all_nodes.values())
    if queues:
        used = {queue.name: queue.used for queue in cluster.queues}
        stated = [_queue(body, used) for body in queues.values()]
        kept = [queue for queue in cluster.queues if queue.name not in queues]
        cluster = replace(cluster, queues=[*kept, *stated])
    return cluster


def _queue(body: Body, used: Mapping[str, Amounts]) -> Queue:
    return replace(queue_of(body, ()), used=used.get(name_of(body), {}))
