"""AIBrix: StormService and RoleSet, and RayClusterFleet, which uses KubeRay."""

from collections.abc import Iterator

from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.values.read import count, mapping
from kthena_components.systems.aibrix.facts import facts
from kthena_components.systems.aibrix.pod_variables import tells
from kthena_components.systems.aibrix.pods import pods_of_fleet, pods_of_roles, sketch_of_fleet
from kthena_components.systems.aibrix.view import GROUP, read_role_sets
from kthena_components.systems.aibrix.view_fleet import Fleet, of_cluster, read_fleet
from kthena_components.systems.aibrix.view_fleet import facts as facts_of_fleet
from kthena_components.systems.contract import PRODUCTION, Kind, Restart, Rollout, System
from kthena_components.systems.ray.system import SYSTEM as RAY

_CLUSTER = next(kind for kind in RAY.kinds if kind.name == "RayCluster")
_ROLES = {"StormService": "spec.template.spec.roles", "RoleSet": "spec.roles"}
"""Path of the roles, by kind."""


def rollouts(view: Fleet) -> Iterator[Rollout]:
    """Return how the clusters of a fleet are updated. Without a type they are not."""
    strategy = mapping(view.object.spec.get("strategy"))
    rolling = mapping(strategy.get("rollingUpdate"))
    if strategy.get("type") == "RollingUpdate":
        yield Rollout(
            at="spec.strategy.rollingUpdate",
            replicas=count(view.object.spec.get("replicas"), 1),
            max_unavailable=rolling.get("maxUnavailable"),
            max_surge=rolling.get("maxSurge"),
            usual=(0, 0),
        )


SYSTEM = System(
    name="aibrix",
    title="AIBrix",
    kinds=(
        *(
            Kind(
                group=GROUP,
                name=name,
                view=read_role_sets,
                facts=facts,
                pods=pods_of_roles,
                tells=tells,
                templates=(f"{roles}[].template",),
                kept=kept_pods,
                restarts=Restart(
                    paths=r"spec\..*\broles\b.*\btemplate\b", how="role after role restarts"
                ),
            )
            for name, roles in _ROLES.items()
        ),
        Kind(
            group=GROUP,
            name="RayClusterFleet",
            view=read_fleet,
            facts=facts_of_fleet,
            pods=pods_of_fleet,
            rules=tuple(map(of_cluster, _CLUSTER.rules)),
            rollouts=rollouts,
            sketch=sketch_of_fleet,
            templates=tuple(f"spec.template.{at}" for at in _CLUSTER.templates),
            adds_volumes=_CLUSTER.adds_volumes,
            kept=kept_pods,
            restarts=Restart(paths=r"spec\.template\b", how="new clusters start, and old ones end"),
            title=RAY.title,
            without={PRODUCTION: _CLUSTER.without[PRODUCTION]},
        ),
    ),
)
