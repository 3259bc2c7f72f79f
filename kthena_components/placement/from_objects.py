"""Reads the state of a cluster from its objects, as `kubectl get -o yaml` lists them. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

import yaml

from kthena_components.cluster.objects import (
    Body,
    amounts_of,
    name_of,
    namespace_of,
    node_labels,
    status_of,
    takes_pods,
    title_of,
)
from kthena_components.cluster.pending import node_of
from kthena_components.core.facts.claims import CLAIM as RESOURCE_CLAIM
from kthena_components.core.findings import Finding
from kthena_components.core.objects.object import (
    CLAIM,
    HYPER_NODE,
    NODE,
    POD_GROUP,
    QUEUE,
    GroupKind,
    allocatable,
)
from kthena_components.core.topology.domains import Labels, read_domains
from kthena_components.core.topology.hypernode_tree import check_tree
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.topology.spec import HyperNodeSpec, TopologyPlan
from kthena_components.core.values.quantity import add_resources
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.claims_and_slices import SLICE, devices_of
from kthena_components.placement.inventory_build import in_two
from kthena_components.placement.inventory_fields import check_amounts
from kthena_components.placement.model import Cluster, Node, Queue, Quota, Running, Scheduler, Scope
from kthena_components.placement.pod_groups import groups_in, neighbours_in, number_or, oldest_first
from kthena_components.placement.pod_sets import priority_classes, scheduled_requests, slot_and
from kthena_components.placement.quotas_and_limit_ranges import LIMIT_RANGE
from kthena_components.placement.racks import (
    KUEUE,
    USUAL,
    levels_of,
    missing_labels,
    racks_of,
    usual_labels,
)
from kthena_components.systems.volcano.emit_cluster import emit_hyper_nodes, read_hyper_node

POD, QUOTA, VOLUME = ("", "Pod"), ("", "ResourceQuota"), ("", "PersistentVolume")
CONFIG_MAP, DEPLOYMENT = ("", "ConfigMap"), ("apps", "Deployment")
PRIORITY, TOPOLOGY = ("scheduling.k8s.io", "PriorityClass"), ("kueue.x-k8s.io", "Topology")
READ_KINDS: frozenset[GroupKind] = frozenset(
    {NODE, POD, QUOTA, LIMIT_RANGE, VOLUME, CLAIM, CONFIG_MAP, DEPLOYMENT, PRIORITY, TOPOLOGY,
     HYPER_NODE, QUEUE, POD_GROUP, SLICE, RESOURCE_CLAIM}
)  # fmt: skip
"""The kinds that are read. Others are passed over."""
_ENDED = ("Succeeded", "Failed")
_CONFIG = "volcano-scheduler-configmap"
_IMAGE = re.compile(r"/vc-scheduler:(v[0-9][0-9A-Za-z.+-]*)")
_BREAKS = frozenset({"hypernode-cycle", "hypernode-two-parents"})
"""Rules of a tree without which Volcano places nothing that has a topology."""


def cluster_of(
    objects: Iterable[Body],
    *,
    racks_from: Sequence[str] = (),
    taken: datetime | None = None,
    source: str = "",
    notes: Sequence[str] = (),
) -> tuple[Cluster, list[Finding]]:
    """Return the cluster that has these objects. It is of use only if there are no findings.

    Args:
        objects: Objects of any kinds, each once.
        racks_from: Labels whose values are racks without HyperNodes; or `labels`, `kueue`.
        taken: When they were read.
        source: Where they were read.
        notes: What could not be read.
    """
    kinds = _by_kind(objects)
    nodes, pods = kinds.get(NODE, []), kinds.get(POD, [])
    labels = node_labels(nodes)
    hyper_nodes, missing = _hyper_nodes(kinds, labels, racks_from)
    domains = read_domains(hyper_nodes, labels)
    priorities = priority_classes(kinds.get(PRIORITY, []))
    devices = devices_of(kinds.get(SLICE, []), kinds.get(RESOURCE_CLAIM, []), pods)
    running, waiting = groups_in(kinds.get(POD_GROUP, []), map(devices.asking, pods), priorities)
    cluster = Cluster(
        nodes=list(map(devices.of, _nodes(nodes, _requests_by_node(pods)))),
        domains=domains,
        hyper_nodes=tuple(hyper_nodes),
        queues=tuple(_queues(kinds.get(QUEUE, []), running)),
        quotas=tuple(_quotas(kinds.get(QUOTA, []))),
        limit_ranges=kinds.get(LIMIT_RANGE, []),
        volumes=(*kinds.get(VOLUME, []), *kinds.get(CLAIM, [])),
        running=tuple(running),
        waiting=tuple(waiting),
        neighbours=tuple(neighbours_in(pods)),
        scheduler=_scheduler(kinds),
        priorities=priorities,
        unknown_devices=devices.gap,
        taken=taken,
        source=source,
        notes=(*notes, *missing),
    )
    wrong = list(_check_tree(hyper_nodes)) or in_two(domains)
    return cluster, [*_check_objects(kinds), *wrong, *_check_pods(pods, labels)]


def _by_kind(objects: Iterable[Body]) -> dict[GroupKind, list[Body]]:
    kinds: dict[GroupKind, list[Body]] = {}
    for body in objects:
        kinds.setdefault(group_kind(body), []).append(body)
    return kinds


def _hyper_nodes(
    kinds: Mapping[GroupKind, Sequence[Body]], labels: Mapping[str, Labels], stated: Sequence[str]
) -> tuple[list[Body], list[str]]:
    """Return the HyperNodes, or make them of labels and say which labels no node has."""
    if listed := kinds.get(HYPER_NODE):
        return list(listed), []
    chosen: Sequence[str] = stated
    if list(stated) == [USUAL]:
        chosen = usual_labels(labels)
    elif list(stated) == [KUEUE]:
        chosen = levels_of(kinds.get(TOPOLOGY, []))
    made: list[Body] = list(emit_hyper_nodes(TopologyPlan(tuple(racks_of(chosen, labels)))))
    return made, list(missing_labels(stated, chosen, labels))


def _nodes(bodies: Iterable[Body], held: Mapping[str, Amounts]) -> Iterator[Node]:
    """Read nodes with what pods on them hold."""
    for body in bodies:
        yield Node(
            name=name_of(body),
            body=body,
            allocatable=allocatable(body),
            used=held.get(name_of(body), {}),
            accepts_pods=takes_pods(body),
        )


def _requests_by_node(pods: Iterable[Body]) -> dict[str, dict[str, Decimal]]:
    """Add up what the pods of each node request, with their slots."""
    found: dict[str, dict[str, Decimal]] = {}
    for pod in pods:
        node, asked = node_of(pod), scheduled_requests(mapping(pod.get("spec")))
        if node and status_of(pod).get("phase") not in _ENDED and not isinstance(asked, Unknown):
            found[node] = add_resources(found.get(node, {}), slot_and(asked))
    return found


def _queues(bodies: Iterable[Body], running: Sequence[Running]) -> Iterator[Queue]:
    yield from (queue_of(body, running) for body in sorted(bodies, key=oldest_first))


def queue_of(body: Body, running: Sequence[Running]) -> Queue:
    """Read a Queue; what its status does not say of its use is added up."""
    spec, status = mapping(body.get("spec")), status_of(body)
    name = name_of(body)
    stated = status.get("allocated")
    return Queue(
        name=name,
        capability=amounts_of(spec.get("capability")),
        deserved=amounts_of(spec.get("deserved")),
        guarantee=amounts_of(mapping(spec.get("guarantee")).get("resource")),
        used=_used_of(name, running) if stated is None else amounts_of(stated),
        parent=str(spec.get("parent") or ""),
        weight=number_or(spec.get("weight"), 1),
        priority=number_or(spec.get("priority"), 0),
        open=status.get("state", "Open") == "Open",
    )


def _used_of(queue: str, running: Sequence[Running]) -> dict[str, Decimal]:
    """Add up what the placed pods of a queue request, where its status does not say it."""
    found: dict[str, Decimal] = {}
    for one in running:
        if one.group.queue == queue:
            each = [pods.requests for pods in one.group.pods for _ in range(pods.count)]
            for requests, node in zip(each, one.nodes, strict=True):
                found = add_resources(found, slot_and(requests)) if node else found
    return found


def _quotas(bodies: Iterable[Body]) -> Iterator[Quota]:
    """Return the quotas of namespaces."""
    for body in bodies:
        spec, status = mapping(body.get("spec")), status_of(body)
        hard = amounts_of(status.get("hard") or spec.get("hard"))
        yield Quota(namespace=namespace_of(body), name=name_of(body), hard=hard,
                    used=amounts_of(status.get("used")), scopes=tuple(_scopes(spec)))  # fmt: skip


def _scopes(spec: Body) -> Iterator[Scope]:
    yield from (Scope(name=str(name)) for name in sequence(spec.get("scopes")))
    selector = mapping(spec.get("scopeSelector"))
    for one in map(mapping, sequence(selector.get("matchExpressions"))):
        values = tuple(map(str, sequence(one.get("values"))))
        yield Scope(name=str(one.get("scopeName")), operator=str(one.get("operator")),
                    values=values)  # fmt: skip


def _scheduler(kinds: Mapping[GroupKind, Sequence[Body]]) -> Scheduler:
    """Read Volcano's version from its Deployment, and its plugins from its ConfigMap."""
    usual = Scheduler()
    images = (_IMAGE.search(str(mapping(body.get("spec")))) for body in kinds.get(DEPLOYMENT, []))
    version = next((found[1] for found in images if found), usual.version)
    for body in kinds.get(CONFIG_MAP, []):
        if name_of(body) == _CONFIG and (read := _plugins(body)):
            arguments = {name: stated for name, stated in read.items() if stated}
            return Scheduler(version=version, plugins=frozenset(read), arguments=arguments)
    return Scheduler(version=version)


def _plugins(config: Body) -> dict[str, dict[str, str]]:
    """Return the plugins of a scheduler config with their arguments; none if it is unreadable."""
    for text in mapping(config.get("data")).values():
        try:
            tiers: Any = sequence(mapping(yaml.safe_load(str(text))).get("tiers"))
        except yaml.YAMLError:
            continue
        found = [mapping(each) for tier in tiers for each in sequence(mapping(tier).get("plugins"))]
        if found:
            return {
                str(each.get("name")): {
                    str(key): str(value) for key, value in mapping(each.get("arguments")).items()
                }
                for each in found
            }
    return {}


# What contradicts itself.


def _listed_twice(kinds: Mapping[GroupKind, Sequence[Body]]) -> Iterator[Finding]:
    """Report objects that are listed twice: their pods would count twice."""
    for (_, kind), bodies in kinds.items():
        titles = Counter(map(title_of, bodies))
        twice = [title for title, number in titles.items() if title and number > 1]
        if twice:
            more = f", and {len(twice) - 1} more like it" if len(twice) > 1 else ""
            message = f"{kind} '{twice[0]}' is listed twice{more}"
            yield _finding(message, "list each object once")


def _check_objects(kinds: Mapping[GroupKind, Sequence[Body]]) -> Iterator[Finding]:
    yield from _listed_twice(kinds)
    for node in kinds.get(NODE, []):
        name = name_of(node)
        if not name:
            yield _finding("a node has no name", "list nodes as `kubectl get -o yaml` does")
    yield from check_amounts(kinds)


def _check_tree(hyper_nodes: Iterable[Body]) -> Iterator[Finding]:
    """Report cycles and second parents. Volcano accepts whatever else there is."""
    read = (read_hyper_node(body)[0] for body in hyper_nodes)
    entries: list[HyperNodeSpec] = [entry for entry in read if entry]
    for finding in check_tree(entries):
        if finding.rule in _BREAKS:
            yield _finding(finding.seen, finding.remedy)


def _check_pods(pods: Iterable[Body], nodes: Mapping[str, Labels]) -> Iterator[Finding]:
    """Report a pod of a node that is not listed."""
    lost = [pod for pod in pods if node_of(pod) and node_of(pod) not in nodes
            and status_of(pod).get("phase") not in _ENDED]  # fmt: skip
    if lost:
        message = f"{title_of(lost[0])} runs on node '{node_of(lost[0])}', which is not listed"
        more = f", and {len(lost) - 1} more pods are alike" if len(lost) > 1 else ""
        yield _finding(f"{message}{more}", "read nodes and pods again, at the same time")


def _finding(seen: str, remedy: str) -> Finding:
    return Finding(path="", seen=seen, remedy=remedy)
