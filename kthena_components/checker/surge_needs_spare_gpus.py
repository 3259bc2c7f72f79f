"""Checks updates that need more accelerators than a stack has."""

from collections.abc import Iterator

from kthena_components.checker.read_cluster_objects import known
from kthena_components.core.findings import Finding, Level, count_of, part_of_rule
from kthena_components.core.objects.cluster_objects import ClusterObjects
from kthena_components.core.objects.object import Object, PodSet
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import is_budget, scaled
from kthena_components.core.values.read import require_known
from kthena_components.core.values.unknown import MaybeInt, total
from kthena_components.systems.kubernetes.rules.gpu_budget_and_type_rwx import (
    gpus_asked,
    gpus_of_pods,
)
from kthena_components.systems.system import Rollout

_RULE = "surge-needs-spare-gpus"
_MOST_DOWN = 100
"""Maximum percentage of maxUnavailable; maxSurge may be higher."""


def surge_needs_spare_gpus(cluster: ClusterObjects, budget: int) -> Iterator[Finding]:
    """The budget has GPUs for the additional replicas of an update.

    With maxSurge above 0, new replicas start before old ones stop. If maxUnavailable is 0, none
    stops until a new one is ready, and an update without room never ends. A Deployment's defaults
    are maxSurge 25%, rounded up, and maxUnavailable 25%, rounded down.

    Pass: a budget of 24, two replicas of 8 GPUs, maxSurge 1.
    Fail: a budget of 16, two replicas of 8 GPUs, maxSurge 1.
    Level: mandatory if maxUnavailable is 0, else advisory. It applies only if a budget is given and
    all pods are within it.
    Source: kubernetes pkg/controller/deployment/util (ResolveFenceposts); kubernetes-sigs/lws
    pull request 779; kserve pkg/controller/v1beta1 (multi-node: 0% and 100%).
    """
    used, _ = gpus_asked(cluster)
    if used > budget:
        return
    pods: dict[int, list[PodSet]] = {}
    for item in cluster.pods:
        pods.setdefault(item.owner.index, []).append(item)
    demands = {found.index: demand.gpus for found, demand in cluster.demands}
    for found, kind, view in known(cluster):
        for rollout in kind.rollouts(view) if kind.rollouts is not None else ():
            mine = [one for one in pods.get(found.index, ()) if one.path.startswith(rollout.pods)]
            gpus = demands.get(found.index, total(map(gpus_of_pods, mine)))
            check = _at_once if rollout.all_at_once else _check
            yield from check(found, rollout, gpus, used, budget)


@part_of_rule
def _check(
    found: Object, rollout: Rollout, gpus: MaybeInt, used: int, budget: int
) -> Iterator[Finding]:
    """Check that the replicas which an update adds fit the budget of accelerators."""
    at, replicas = found.at(f"{rollout.at}.maxSurge"), rollout.replicas
    if gpus == 0 or not replicas or (isinstance(replicas, int) and replicas < 0):
        return
    stated = rollout.max_unavailable, rollout.max_surge
    require_known(at, gpus, replicas, *stated)
    down, up = (u if s is None else s for s, u in zip(stated, rollout.usual, strict=True))
    legal = is_budget(down, _MOST_DOWN) and is_budget(up)
    if isinstance(gpus, int) and isinstance(replicas, int) and legal:
        more, fewer = scaled(up, replicas, up=True) or 0, scaled(down, replicas, up=False)
        needed = gpus // replicas * more
        if more and used + needed > budget:
            surge = "is not stated, so it is 25%" if stated[1] is None else f"is {display(up)}"
            extra = (
                f"{surge}, and adds {count_of(more, 'replica')} of "
                f"{count_of(gpus // replicas, 'GPU')}"
            )
            yield _short(at, extra, used + needed, budget, stuck=fewer == 0)


@part_of_rule
def _at_once(
    found: Object, rollout: Rollout, gpus: MaybeInt, used: int, budget: int
) -> Iterator[Finding]:
    """Check updates that replace everything at once, new pods first."""
    at = found.at(rollout.at)
    require_known(at, gpus)
    if isinstance(gpus, int) and gpus and used + gpus > budget:
        extra = f"{rollout.all_at_once}, and adds {count_of(gpus, 'GPU')}"
        yield _short(at, extra, used + gpus, budget, stuck=True)


def _short(at: str, extra: str, needed: int, budget: int, *, stuck: bool) -> Finding:
    """Write the finding of an update above the budget; `stuck` updates never end."""
    end = "; no old replica stops before, so the update never ends" if stuck else ""
    free = "maxSurge: 0 and maxUnavailable: 1"
    return Finding(
        path=at,
        seen=f"{extra} during an update: {count_of(needed, 'GPU')} in all, "
        f"but the budget is {budget}{end}",
        remedy=f"write {free} if the system supports it, "
        f"or free {count_of(needed - budget, 'GPU')}",
        rule=_RULE,
        level=Level.MANDATORY if stuck else Level.ADVISORY,
    )
