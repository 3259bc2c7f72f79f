"""MatrixInfer's ModelInfer, the predecessor of Kthena's ModelServing."""

from collections.abc import Iterator

from kthena_components.core.objects.reduction import kept_pods
from kthena_components.core.values.read import mapping
from kthena_components.systems.contract import Kind, Restart, Rollout, System
from kthena_components.systems.kthena.pods import pods
from kthena_components.systems.kthena.system import ROLE_PATHS
from kthena_components.systems.kthena.view import Serving
from kthena_components.systems.matrixinfer.facts import facts
from kthena_components.systems.matrixinfer.view import MODEL_INFERS, read_model_infer

_ROLLING = "rollingUpdateConfiguration"


def rollouts(view: Serving) -> Iterator[Rollout]:
    """Return the rollout of the groups."""
    rolling = mapping(view.strategy.get(_ROLLING))
    yield Rollout(
        at=f"spec.rolloutStrategy.{_ROLLING}",
        replicas=view.replicas,
        max_unavailable=rolling.get("maxUnavailable"),
        max_surge=rolling.get("maxSurge"),
        usual=(1, 0),
    )


SYSTEM = System(
    name="matrixinfer",
    title="MatrixInfer ModelInfer",
    kinds=tuple(
        Kind(
            group=group,
            name=name,
            view=read_model_infer,
            facts=facts,
            pods=pods,
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
        for group, name in MODEL_INFERS
    ),
)
