"""Kueue: the kinds of its queues, and the rules over all objects about them."""

from kthena_components.core.objects.object import Object
from kthena_components.systems.kueue.rules import (
    kueue_queue_exists,
    kueue_queue_open,
    kueue_quota,
    kueue_ray,
    kueue_topology,
)
from kthena_components.systems.kueue.view import CLUSTER_QUEUE, GROUP, LOCAL_QUEUE, RESOURCE_FLAVOR
from kthena_components.systems.system import Kind, System, as_it_is


def _kind(name: str, *, wide: bool) -> Kind[Object]:
    return Kind(group=GROUP, name=name, view=as_it_is, only_fields=True, cluster_wide=wide)


SYSTEM = System(
    name="kueue",
    title="Kueue",
    kinds=(
        _kind(LOCAL_QUEUE[1], wide=False),
        _kind(CLUSTER_QUEUE[1], wide=True),
        _kind(RESOURCE_FLAVOR[1], wide=True),
        _kind("Cohort", wide=True),
    ),
    cluster_rules=(kueue_queue_exists, kueue_queue_open, kueue_quota, kueue_topology, kueue_ray),
)
