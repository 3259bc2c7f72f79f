"""Reads the objects of one cluster once, for the rules that compare them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from kthena_components.checker.manifest import read_ports
from kthena_components.core.facts.context import Context, ReferencedObjects
from kthena_components.core.facts.serving import GpuDemand
from kthena_components.core.objects.cluster_objects import ClusterObjects, Ports
from kthena_components.core.objects.object import Object, read_object
from kthena_components.core.values.read import group_kind
from kthena_components.systems import CLAIMING, NAMED_BY, find_kind
from kthena_components.systems.system import Kind


def read_objects(
    manifests: Sequence[object],
    paths: Sequence[str],
    demands: Mapping[int, GpuDemand] | None = None,
    *,
    complete: bool = True,
    sources: Sequence[str] = (),
    ports: Mapping[int, Ports] | None = None,
    versions: Mapping[str, str] = MappingProxyType({}),
) -> ClusterObjects:
    """Read the objects of one cluster, in one pass.

    Args:
        manifests: The objects. Values that are not maps are skipped.
        paths: Their paths; none if left out.
        demands: Accelerators of objects without pod templates, by index.
        complete: Whether the cluster has no other objects.
        sources: The file that each was read from; one file if left out.
        ports: Where their pods listen, by index; read from the objects that are not in it.
        versions: The releases that the cluster runs, by system; the newest if left out.
    """
    cluster = ClusterObjects(complete=complete, sources=sources)
    cluster.ports = partial(_listening, ports or {})
    claims = ReferencedObjects(CLAIMING, NAMED_BY)
    for manifest in manifests:
        if isinstance(manifest, Mapping):
            claims.add(manifest)
    context = Context(versions=versions, referenced=claims)
    for index, manifest in enumerate(manifests):
        if not isinstance(manifest, Mapping):
            continue
        kind = find_kind(group_kind(manifest))
        found = read_object(
            manifest,
            paths[index] if index < len(paths) else "",
            context,
            index=index,
            cluster_wide=kind is not None and kind.cluster_wide,
        )
        view = kind.view(found) if kind is not None else None
        pods = kind.pods(view) if kind is not None and kind.pods is not None else None
        gangs = kind.gangs(view) if kind is not None and kind.gangs is not None else ()
        cluster.add(found, view, pods=pods, demand=(demands or {}).get(index), gangs=gangs)
    return cluster


def _listening(stated: Mapping[int, Ports], found: Object) -> Ports:
    return stated[found.index] if found.index in stated else read_ports(found)


def known(cluster: ClusterObjects) -> Iterator[tuple[Object, Kind[Any], Any]]:
    """Return each object of a known kind, with its view."""
    for found in cluster.objects:
        kind = find_kind(found.group_kind)
        if kind is not None:
            yield found, kind, cluster.views[found.index]
