"""The pods that KubeRay's clusters make."""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object, PodSet, copies_in, pod_set
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import items, mapping

CLUSTERS = {"RayCluster": "", "RayService": "rayClusterConfig", "RayJob": "rayClusterSpec"}
"""Where each kind of KubeRay keeps its cluster."""


def pods_of_cluster(entry: Object) -> Iterator[PodSet]:
    """Give the head and the workers of each group."""
    inner = CLUSTERS.get(entry.kind, "")
    cluster, at = (
        mapping(entry.spec.get(inner)) if inner else entry.spec,
        f"spec.{inner}".strip("."),
    )
    head = mapping(cluster.get("headGroupSpec"))
    yield pod_set(
        entry, f"{at}.headGroupSpec.template", head.get("template"), 1, by_controller=True
    )
    for i, item in enumerate(items(cluster.get("workerGroupSpecs"))):
        group, place = mapping(item), f"{at}.workerGroupSpecs[{i}].template"
        hosts = product(copies_in(group.get("replicas"), 1), copies_in(group.get("numOfHosts"), 1))
        made = group.get("template")
        yield pod_set(entry, place, made, hosts, by_controller=True, spread=hosts != 0)
