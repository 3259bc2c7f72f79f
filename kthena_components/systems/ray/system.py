"""KubeRay: RayCluster, RayService and RayJob."""

from kthena_components.core.objects.reduction import kept_pods
from kthena_components.systems.contract import System, legacy
from kthena_components.systems.ray.facts import judge, read
from kthena_components.systems.ray.pods import CLUSTERS, pods_of_cluster
from kthena_components.systems.ray.rules import RULES
from kthena_components.systems.ray.rules_serve import ray_serve_gpus

_TEMPLATES = ("headGroupSpec.template", "workerGroupSpecs[].template")

SYSTEM = System(
    name="ray",
    title="KubeRay",
    kinds=tuple(
        legacy(
            ("ray.io", name),
            read,
            judge,
            rules=(*RULES, ray_serve_gpus),
            pods=pods_of_cluster,
            templates=tuple(".".join(filter(None, ("spec", inner, at))) for at in _TEMPLATES),
            kept=kept_pods,
        )
        for name, inner in CLUSTERS.items()
    ),
)
