"""What a Ray cluster states about the gang of its pods, for `convert`.

Source: ray-project/kuberay ray-operator/controllers/ray/batchscheduler/volcano/volcano_scheduler.go
and controllers/ray/utils/constant.go.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.plan.read_back import stated
from kthena_components.core.values.read import mapping
from kthena_components.systems.ray.view import RayView

_TOPOLOGY = "volcano.sh/network-topology-"
_DIGITS = 3


def states(view: RayView) -> Mapping[str, Any]:
    """Return the queue, the priority and the topology in the labels of a cluster."""
    labels = mapping(view.object.metadata.get("labels"))
    tier = labels.get(f"{_TOPOLOGY}highest-tier-allowed")
    is_number = (
        isinstance(tier, str) and tier.isascii() and tier.isdecimal() and len(tier) <= _DIGITS
    )
    policy = stated(
        mode=labels.get(f"{_TOPOLOGY}mode"),
        highest_tier_allowed=int(str(tier)) if is_number else None,
    )
    return stated(
        queue=labels.get("volcano.sh/queue-name"),
        priority_class=labels.get("ray.io/priority-class-name"),
        network_topology={"group_policy": policy} if policy else None,
    )
