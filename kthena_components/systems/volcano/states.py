"""What a Volcano Job states about all of its pods, for `convert`.

Source: volcano-sh/volcano pkg/controllers/job/job_controller_actions.go, createOrUpdatePodGroup,
which copies these fields to the PodGroup.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core.objects.object import Object
from kthena_components.core.plan.read_back import stated
from kthena_components.core.values.read import mapping
from kthena_components.systems.volcano.emit import described_topology


def states(found: Object) -> Mapping[str, Any]:
    """Return the queue, the priority and the topology of a Job."""
    spec = found.spec
    topology = mapping(spec.get("networkTopology"))
    policy = described_topology({"mode": "hard", **topology}) if topology else None
    return stated(
        queue=spec.get("queue"),
        priority_class=spec.get("priorityClassName"),
        network_topology=None if policy is None else {"group_policy": policy},
    )
