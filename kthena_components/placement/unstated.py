"""Finds groups about which a cluster does not state enough. Pure."""

from dataclasses import replace

from kthena_components.core.values.unknown import Unknown
from kthena_components.placement.model import Cluster, PodGroup
from kthena_components.placement.volcano.pod_terms import asks_others, selects_namespaces

_NEIGHBOURS = Unknown(
    "other pods decide where its pods can be (host ports, affinity, spread constraints), and the "
    "inventory does not list the pods that run, in `neighbours`"
)
_NAMESPACES = Unknown("an affinity chooses namespaces by labels, which an inventory does not have")


def with_gap(cluster: Cluster, group: PodGroup) -> PodGroup:
    """Return a group with the reason why nothing can be said about it, if there is one."""
    if group.unknown is not None:
        return group
    specs = [pods.spec for pods in group.pods]
    if any(map(selects_namespaces, specs)):
        return replace(group, unknown=_NAMESPACES)
    hidden = cluster.neighbours is None and any(node.used for node in cluster.nodes)
    if hidden and any(map(asks_others, specs)):
        return replace(group, unknown=_NEIGHBOURS)
    return group
