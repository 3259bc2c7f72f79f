"""The pods of KubeRay's clusters."""

from collections.abc import Iterator

from kthena_components.core.objects.object import PodSet, copies_in, pod_set
from kthena_components.core.objects.sketch import Sketch
from kthena_components.core.values.arithmetic import product
from kthena_components.core.values.read import mapping, name_of
from kthena_components.core.values.unknown import Unknown
from kthena_components.systems.ray.view import RayView


def pods_of_cluster(view: RayView) -> Iterator[PodSet]:
    """Return the head and the workers of each group."""
    head, at = mapping(view.head.stated).get("template"), f"{view.head.path}.template"
    yield pod_set(view.object, at, head, 1, by_controller=True)
    for group in view.workers:
        fields, at = mapping(group.stated), f"{group.path}.template"
        each = (copies_in(fields.get(key), 1) for key in ("replicas", "numOfHosts"))
        hosts, made = product(*each), fields.get("template")
        yield pod_set(view.object, at, made, hosts, by_controller=True, spread=hosts != 0)


_NUMBERS = ("replicas", "minReplicas", "maxReplicas")
_SERVES = "serveConfigV2 starts it, and places its replicas on the cluster by itself"


def sketch(view: RayView) -> Sketch:
    """Return the engine that the head starts, with the pods of the cluster."""
    name, served = name_of(view.object.body), view.served
    by_serve = isinstance(served, Unknown) or bool(served)
    return Sketch(
        sets=tuple(pods_of_cluster(view)),
        known=tuple(_same_numbers(view)),
        refused=f"is an application of Ray Serve: {_SERVES}" if by_serve else "",
        beside={f"Service/{name}-head-svc": "KubeRay makes it; --set expose.port=80 writes one"},
    )


def _same_numbers(view: RayView) -> Iterator[str]:
    """Yield the numbers of a group that all say how many pods it has."""
    for group in view.workers:
        fields = mapping(group.stated)
        hosts = copies_in(fields.get("numOfHosts"), 1)
        for key in (key for key in _NUMBERS if fields.get(key) is not None):
            if group.low == group.high == product(copies_in(fields[key], 0), hosts):
                yield view.object.at(f"{group.path}.{key}")
