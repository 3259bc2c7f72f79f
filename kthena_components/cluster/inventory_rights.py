"""The least permissions in a cluster that an inventory needs: lists of the whole cluster. Pure."""

from kthena_components.core.plan.rights import Resource


def _listed(api_version: str, kind: str, plural: str, *, wide: bool = False) -> Resource:
    return Resource(api_version=api_version, kind=kind, plural=plural, verbs=("list",), wide=wide)


INVENTORY: tuple[Resource, ...] = (
    _listed("v1", "Node", "nodes", wide=True),
    _listed("v1", "Pod", "pods"),
    _listed("v1", "ResourceQuota", "resourcequotas"),
    _listed("v1", "PersistentVolume", "persistentvolumes", wide=True),
    _listed("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    _listed("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", wide=True),
    _listed("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", wide=True),
    _listed("scheduling.volcano.sh/v1beta1", "Queue", "queues", wide=True),
    _listed("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
    _listed("kueue.x-k8s.io/v1beta1", "Topology", "topologies", wide=True),
)
"""What `inventory` lists in the whole cluster. Kinds that a cluster does not serve are left out."""
