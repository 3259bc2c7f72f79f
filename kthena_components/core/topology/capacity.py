"""Counts equal pods that fit on a node, for gangs in HyperNodes."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

Amounts = Mapping[str, Decimal]
"""Amounts by resource name, in the base unit of each."""
USUAL_PODS = Decimal(110)
"""Maximum pods of a node that states no limit: the kubelet's default.

Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go, MaxPods.
"""


def slots(room: Amounts, each: Amounts) -> int:
    """Count the pods that fit into a node's free resources.

    Args:
        room: Free resources; a resource that is not listed has none, except `pods`.
        each: Requests of one pod. Zero amounts are ignored.
    """
    fits = [room.get(key, Decimal(0)) / amount for key, amount in each.items() if amount]
    most = min((*fits, room.get("pods", USUAL_PODS)))
    return max(0, math.floor(most)) if most.is_finite() else 0


def least_of(requests: Sequence[Amounts]) -> dict[str, Decimal]:
    """Return the smallest request of several pods, for each resource."""
    shared = set(requests[0]).intersection(*requests[1:]) if requests else set()
    return {key: min(one[key] for one in requests) for key in shared}
