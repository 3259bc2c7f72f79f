"""MatrixInfer's ModelInfer, from which Kthena's ModelServing grew."""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object
from kthena_components.core.objects.reduction import kept_pods
from kthena_components.core.values.read import count, mapping
from kthena_components.systems.contract import Restart, Rollout, System, legacy
from kthena_components.systems.kthena.pods import pods_of_roles
from kthena_components.systems.kthena.system import ROLE_PATHS
from kthena_components.systems.matrixinfer.facts import MODEL_INFERS, read

_ROLLING = "rollingUpdateConfiguration"


def rollouts(found: Object) -> Iterator[Rollout]:
    """Give how the groups are updated."""
    rolling = mapping(mapping(found.spec.get("rolloutStrategy")).get(_ROLLING))
    yield Rollout(
        at=f"spec.rolloutStrategy.{_ROLLING}",
        replicas=count(found.spec.get("replicas"), 1),
        max_unavailable=rolling.get("maxUnavailable"),
        max_surge=rolling.get("maxSurge"),
        usual=(1, 0),
    )


SYSTEM = System(
    name="matrixinfer",
    title="MatrixInfer ModelInfer",
    kinds=tuple(
        legacy(
            group_kind,
            read,
            pods=pods_of_roles,
            rollouts=rollouts,
            templates=(
                "spec.template.roles[].entryTemplate",
                "spec.template.roles[].workerTemplate",
            ),
            kept=kept_pods,
            restarts=Restart(paths=ROLE_PATHS, how="group after group restarts"),
            copies="replicas",
            unscalable="has no scale subresource",
        )
        for group_kind in MODEL_INFERS
    ),
)
