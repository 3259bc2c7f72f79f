"""The pods of AIBrix's StormService, RoleSet and RayClusterFleet."""

from collections.abc import Iterator
from dataclasses import replace

from kthena_components.core.objects.engine_sketch import Sketch
from kthena_components.core.objects.object import PodSet, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.systems.aibrix.view import RoleSets, pods_in
from kthena_components.systems.aibrix.view_fleet import Fleet
from kthena_components.systems.ray.pods import pods_of_cluster, sketch


def pods_of_roles(view: RoleSets) -> Iterator[PodSet]:
    """Yield the pods of each role in all RoleSets."""
    for role in view.roles:
        number = product(view.copies, pods_in(role))
        path = f"{role.path}.template"
        grouped = role.size != 1
        yield pod_set(view.object, path, role.template, number, by_controller=True, spread=grouped)


def pods_of_fleet(view: Fleet) -> Iterator[PodSet]:
    """Yield the pods of all Ray clusters of a fleet."""
    for pods in pods_of_cluster(view.cluster):
        yield replace(pods, count=product(view.copies, pods.count))


def sketch_of_fleet(view: Fleet) -> Sketch:
    """Return the engine of each cluster, with the pods of all; AIBrix makes no Service itself."""
    return replace(sketch(view.cluster), sets=tuple(pods_of_fleet(view)), beside={})
