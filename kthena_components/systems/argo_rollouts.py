"""Argo Rollouts: a Rollout is a Deployment with other strategies.

Source: argoproj/argo-rollouts v1.8 pkg/apis/rollouts/v1alpha1/types.go, utils/defaults/defaults.go.
"""

from collections.abc import Iterator

from kthena_components.core.objects.object import Object
from kthena_components.core.objects.retained_fields import kept_pods
from kthena_components.core.values.read import count, mapping
from kthena_components.systems.kubernetes.facts import facts_of_copies, pods_of_copies
from kthena_components.systems.system import Kind, Restart, Rollout, System, as_it_is

_QUARTER = "25%"


def rollouts(found: Object) -> Iterator[Rollout]:
    """Return how a Rollout is updated.

    A blue-green update, and a canary with traffic routing, keep all old pods until all new ones
    exist (utils/replicaset/canary.go). A canary with dynamicStableScale is not read.
    """
    strategy, replicas = mapping(found.spec.get("strategy")), count(found.spec.get("replicas"), 1)
    canary = mapping(strategy.get("canary"))
    if mapping(strategy.get("blueGreen")) or canary.get("trafficRouting"):
        at = "blueGreen" if strategy.get("blueGreen") else "canary"
        if not canary.get("dynamicStableScale"):
            yield Rollout(
                at=f"spec.strategy.{at}",
                replicas=replicas,
                all_at_once="is updated by Argo Rollouts beside all old pods",
            )
    else:
        yield Rollout(
            at="spec.strategy.canary",
            replicas=replicas,
            max_unavailable=canary.get("maxUnavailable"),
            max_surge=canary.get("maxSurge"),
            usual=(_QUARTER, _QUARTER),
        )


SYSTEM = System(
    name="argo_rollouts",
    title="Argo Rollouts",
    kinds=(
        Kind(
            group="argoproj.io",
            name="Rollout",
            view=as_it_is,
            facts=facts_of_copies,
            pods=pods_of_copies,
            rollouts=rollouts,
            templates=("spec.template",),
            kept=kept_pods,
            restarts=Restart(paths=r"spec\.template\b", how="pods restart as its strategy says"),
        ),
    ),
)
