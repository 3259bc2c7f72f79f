"""Rollouts of LeaderWorkerSets and DisaggregatedSets: what a surge needs.

rules/rollout.py checks what the webhook requires of the numbers.
"""

from collections.abc import Iterator

from kthena_components.core.values.read import mapping
from kthena_components.systems.contract import Rollout
from kthena_components.systems.lws.rules.rollout import is_refused
from kthena_components.systems.lws.view import ROLLING, Sets


def rollouts(view: Sets) -> Iterator[Rollout]:
    """Return the rollout of each set of groups; none if the webhook would reject the numbers.

    Source: kubernetes-sigs/lws pkg/webhooks/leaderworkerset_webhook.go Default: maxUnavailable 1
    and maxSurge 0.
    """
    for group in view.groups:
        rolling = mapping(group.rolling)
        down, up = rolling.get("maxUnavailable"), rolling.get("maxSurge")
        if is_refused(down) or is_refused(up):
            continue
        yield Rollout(
            at=f"{group.path}.{ROLLING}",
            pods=f"{group.path}.",
            replicas=group.replicas,
            max_unavailable=down,
            max_surge=up,
            usual=(1, 0),
        )
