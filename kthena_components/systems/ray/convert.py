"""The engines of KubeRay's clusters for `convert`."""

from collections.abc import Iterator

from kthena_components.core.findings import count_of
from kthena_components.core.objects.engine_containers import Sketch
from kthena_components.core.objects.object import PodSet, copies_in
from kthena_components.core.values.read import mapping, name_of, sequence
from kthena_components.core.values.unknown import Unknown, product
from kthena_components.systems.ray.facts import pods_of_cluster
from kthena_components.systems.ray.view import RayView

_NUMBERS = ("replicas", "minReplicas", "maxReplicas")
_OF_RAY = "rayproject/"
_NO_SCRIPT = "an image of Ray has no script to join pods; name an image of vLLM"


def sketch(view: RayView) -> Sketch:
    """Return the engine that the head starts, or those of Ray Serve, with the pods of the cluster.

    The proxy and the router of Ray Serve run on the cluster, too.
    """
    name, served = name_of(view.object.body), view.served
    service = "serve" if served else "head"
    sets = tuple(pods_of_cluster(view))
    images = {each.path: _image(each) for each in sets}
    return Sketch(
        sets=sets,
        known=tuple(_same_numbers(view)),
        unsaid={at: {"engine.image": _NO_SCRIPT} for at, i in images.items() if _OF_RAY in i},
        refused=_refused(view),
        beside={
            f"Service/{name}-{service}-svc": "KubeRay makes it; --set expose.port=80 writes one"
        },
    )


def _refused(view: RayView) -> str:
    if isinstance(view.served, Unknown):
        return f"has a serveConfigV2 that is not read: {view.served.because}"
    sizes = [g.pod.gpus for g in view.cluster.with_gpus] if view.cluster is not None else []
    size = max((n for n in sizes if isinstance(n, int)), default=0)
    for one in view.served:
        ranks = one.ranks
        if isinstance(ranks, Unknown):
            return f"runs {one.name} on a number of GPUs that is not known: {ranks.because}"
        if not size or (ranks > size and ranks % size):
            return (
                f"runs {one.name} on {count_of(ranks, 'GPU')}, which are no whole pods "
                f"of {count_of(size, 'GPU')}"
            )
    return ""


def _image(pods: PodSet) -> str:
    containers = [mapping(item) for item in sequence(pods.spec.get("containers"))]
    return str(containers[0].get("image")) if containers else ""


def _same_numbers(view: RayView) -> Iterator[str]:
    """Yield the numbers of a group that all say how many pods it has."""
    for group in view.workers:
        fields = mapping(group.stated)
        hosts = copies_in(fields.get("numOfHosts"), 1)
        for key in (key for key in _NUMBERS if fields.get(key) is not None):
            if group.low == group.high == product(copies_in(fields[key], 0), hosts):
                yield view.object.at(f"{group.path}.{key}")
