"""LeaderWorkerSet and DisaggregatedSet: a leader and its workers, several times."""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.objects.reduction import kept_pods
from kthena_components.core.values.read import mapping
from kthena_components.systems.contract import Restart, Rollout, System, legacy
from kthena_components.systems.lws.changes import lws_lower_then_raise
from kthena_components.systems.lws.facts import read
from kthena_components.systems.lws.pods import DISAGGREGATED, LWS, pods_of_groups
from kthena_components.systems.lws.rules import RULES, judge_leader_worker_set
from kthena_components.systems.lws.view import read_sets

_ROLLING = "rolloutStrategy.rollingUpdateConfiguration"
_RESTART = "group after group restarts"
_LEADER, _WORKER = "leaderWorkerTemplate.leaderTemplate", "leaderWorkerTemplate.workerTemplate"


def rollouts(found: Object) -> Iterator[Rollout]:
    """Give how each set of groups is updated."""
    for group in read_sets(found.body).groups:
        rolling = _rolling(group.spec)
        yield Rollout(
            at=f"{group.path}.{_ROLLING}",
            pods=f"{group.path}.",
            replicas=group.replicas,
            max_unavailable=rolling.get("maxUnavailable"),
            max_surge=rolling.get("maxSurge"),
            usual=(1, 0),
        )


def _rolling(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(spec.get("rolloutStrategy")).get("rollingUpdateConfiguration"))


SYSTEM = System(
    name="lws",
    title="LeaderWorkerSet and DisaggregatedSet",
    kinds=(
        legacy(
            LWS,
            read,
            judge_leader_worker_set,
            rules=RULES,
            pods=pods_of_groups,
            change_rules=(lws_lower_then_raise,),
            rollouts=rollouts,
            templates=(f"spec.{_LEADER}", f"spec.{_WORKER}"),
            kept=kept_pods,
            restarts=Restart(paths=r"spec\.leaderWorkerTemplate\b", how=_RESTART),
        ),
        legacy(
            DISAGGREGATED,
            read,
            judge_leader_worker_set,
            rules=RULES,
            pods=pods_of_groups,
            rollouts=rollouts,
            templates=(
                *(f"spec.roles[].spec.{at}" for at in (_LEADER, _WORKER)),
                *(f"spec.roles[].{at}" for at in (_LEADER, _WORKER)),
            ),
            kept=kept_pods,
            restarts=Restart(paths=r"spec\.roles\b.*[tT]emplate\b", how=_RESTART),
            copies="slices",
            unscalable="has no scale subresource",
        ),
    ),
)
