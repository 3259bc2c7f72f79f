"""Compares the devices that pods claim with those that a cluster has, as far as it is known. Pure.

A cluster lists the devices of each node under the name of their class (`deviceclass/…`). One that
lists none of a class has the GPUs that its nodes offer as a resource: a claim then counts as one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from kthena_components.cluster.objects import CLAIMED, labels_of
from kthena_components.core.hardware.gpu_table import CLASSES
from kthena_components.core.topology.node_fit import Amounts
from kthena_components.core.values.quantity import add_resources
from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.claims_and_slices import PRODUCT
from kthena_components.placement.model import (
    VOLCANO,
    Cluster,
    PodGroup,
    PodSet,
    Queue,
    Running,
    Scheduler,
)
from kthena_components.placement.volcano.scheduler import since

_DRA = "predicate.DynamicResourceAllocationEnable"
_QUOTA = ".deviceclass.resource.k8s.io/devices"


def with_devices(
    cluster: Cluster, groups: Sequence[PodGroup]
) -> tuple[Cluster, list[PodGroup], tuple[str, ...]]:
    """Return a cluster and groups whose claims count, or say why not, and what a reader must know.

    Args:
        groups: The groups to place.
    """
    asked = _keys(pods.requests for group in groups for pods in group.pods)
    if not asked:
        return cluster, list(groups), ()
    offered = _keys(node.allocatable for node in cluster.nodes)
    have = {name for node in cluster.nodes for name in node.allocatable}
    instead = {key: CLASSES[key.removeprefix(CLAIMED)] for key in asked - offered}
    limits = _read_limits(cluster)
    known = [_checked(cluster, group, instead, have, limits) for group in groups]
    notes = tuple(
        f"no ResourceSlices with devices of the class {key.removeprefix(CLAIMED)} are listed, so "
        f"claims of them are counted among the {name} of the nodes"
        for key, name in sorted(instead.items())
        if name in have
    )
    return _counted(cluster, instead), [_group(one, instead) for one in known], notes


def _keys(stated: Iterable[Amounts]) -> set[str]:
    return {key for amounts in stated for key in amounts if key.startswith(CLAIMED)}


class _Limits(NamedTuple):
    """What a cluster has that may not count claims, or not find their devices."""

    queues: Mapping[str, Queue]
    quotas: Mapping[str, str]
    """The first quota of claims, by its namespace."""
    unlabelled: Mapping[str, tuple[int, str]]
    """The first node without the product of its GPUs, by what it has, with its position."""


def _read_limits(cluster: Cluster) -> _Limits:
    """Read what limits devices in a cluster: queues, quotas, and nodes without a product."""
    quotas, unlabelled = dict[str, str](), dict[str, tuple[int, str]]()
    for quota in cluster.quotas:
        if any(key.endswith(_QUOTA) for key in quota.hard):
            quotas.setdefault(quota.namespace, quota.name)
    for position, node in enumerate(cluster.nodes):
        for key in node.allocatable if PRODUCT not in labels_of(node.body) else ():
            unlabelled.setdefault(key, (position, node.name))
    return _Limits({queue.name: queue for queue in cluster.queues}, quotas, unlabelled)


def _checked(
    cluster: Cluster, group: PodGroup, instead: Mapping[str, str], have: set[str], limits: _Limits
) -> PodGroup:
    """Mark a group as unknown if its devices cannot be compared with those of the cluster."""
    keys = sorted(_keys(pods.requests for pods in group.pods))
    if group.unknown is not None or not keys:
        return group
    gap = cluster.unknown_devices or _unscheduled(cluster.scheduler, group)
    for key in keys:
        names = {key, instead.get(key, key)}
        gap = gap or _absent(key, instead, have) or _limited(limits, group, names)
        gap = gap or _unlabelled(limits, group, names)
    return replace(group, unknown=Unknown(gap)) if gap else group


def _unscheduled(scheduler: Scheduler, group: PodGroup) -> str:
    """Say why Volcano's scheduler may not allocate claims.

    Source: Volcano v1.14.1 pkg/scheduler/plugins/predicates/predicates.go, where it is off unless
    an argument turns it on; v1.15.0 turns it on.
    """
    enabled = scheduler.arguments.get("predicates", {}).get(_DRA, "").casefold() == "true"
    if group.scheduler != VOLCANO or enabled or since(scheduler.version, 1, 15):
        return ""
    return (
        f"its pods take GPUs by claims, which Volcano {scheduler.version} allocates only with "
        f"`{_DRA}: true` among the arguments of its plugin predicates: if the scheduler has that, "
        "or is newer, state it in `scheduler` of the inventory"
    )


def _absent(key: str, instead: Mapping[str, str], have: set[str]) -> str:
    """Say why a cluster has no devices of a class, whose device plugin has another name."""
    name = instead.get(key)
    if name is None or name in have:
        return ""
    named = key.removeprefix(CLAIMED)
    return (
        f"its pods claim devices of the class {named}, and the cluster lists neither "
        f"ResourceSlices with such devices nor nodes with {name}"
    )


def _limited(limits: _Limits, group: PodGroup, names: set[str]) -> str:
    """Say which limit counts claims in a way that is not modelled."""
    queue, seen = limits.queues.get(group.queue), set[str]()
    while queue is not None and queue.name not in seen:
        if names & {*queue.capability, *queue.deserved, *queue.guarantee}:
            return f"how the queue {queue.name} counts claimed devices is not modelled"
        seen.add(queue.name)
        queue = limits.queues.get(queue.parent)
    quota = limits.quotas.get(group.namespace)
    if quota is None:
        return ""
    return f"the quota {quota} limits claimed devices, which is not modelled"


def _unlabelled(limits: _Limits, group: PodGroup, names: set[str]) -> str:
    """Say which node does not name the product of its GPUs, if a claim selects one."""
    if not any(PRODUCT in str(pods.spec.get("affinity")) for pods in group.pods):
        return ""
    found = min(
        (limits.unlabelled[name] for name in names & limits.unlabelled.keys()), default=None
    )
    if found is None:
        return ""
    return f"a claim of its pods selects a product, and node {found[1]} has no label {PRODUCT}"


# A cluster without ResourceSlices: claims count as the resource of the same devices.


def _counted(cluster: Cluster, instead: Mapping[str, str]) -> Cluster:
    """Count claimed devices as the resource that the cluster lists them by."""
    if not instead:
        return cluster
    return replace(
        cluster,
        nodes=[replace(node, used=_amounts(node.used, instead)) for node in cluster.nodes],
        running=tuple(
            Running(group=_group(one.group, instead), nodes=one.nodes) for one in cluster.running
        ),
        waiting=tuple(_group(one, instead) for one in cluster.waiting),
    )


def _group(group: PodGroup, instead: Mapping[str, str]) -> PodGroup:
    return replace(group, pods=tuple(_pods(one, instead) for one in group.pods))


def _pods(pods: PodSet, instead: Mapping[str, str]) -> PodSet:
    return replace(pods, requests=_amounts(pods.requests, instead))


def _amounts(amounts: Amounts, instead: Mapping[str, str]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for key, amount in amounts.items():
        found = add_resources(found, {instead.get(key, key): amount})
    return found
