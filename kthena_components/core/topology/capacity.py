"""How many equal pods fit on a node: for gangs in HyperNodes, of manifests and of a cluster."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal

Amounts = Mapping[str, Decimal]
"""Amounts by resource name, in the base unit of each."""
USUAL_PODS = Decimal(110)
"""Pods of a node that states no limit: the kubelet's default.

Source: kubernetes pkg/kubelet/apis/config/v1beta1/defaults.go, MaxPods.
"""


def slots(room: Amounts, each: Amounts) -> int:
    """Say how many pods fit into what a node has left.

    Args:
        room: What is left; of a resource that is not named there is none, except `pods`.
        each: What one pod asks for. Amounts of zero ask for nothing.
    """
    fits = [room.get(key, Decimal(0)) / amount for key, amount in each.items() if amount]
    most = min((*fits, room.get("pods", USUAL_PODS)))
    return max(0, math.floor(most)) if most.is_finite() else 0


def least_of(requests: Sequence[Amounts]) -> dict[str, Decimal]:
    """Return what each of several pods asks for at least, resource by resource."""
    shared = set(requests[0]).intersection(*requests[1:]) if requests else set()
    return {key: min(one[key] for one in requests) for key in shared}
