"""Writes PodGroups. emit_cluster.py writes Queues and HyperNodes.

Source: Volcano v1.14 config/crd/volcano/bases; PodGroups have the form that Kthena v1.0.0 writes
(pkg/model-serving-controller/podgroupmanager/manager.go).
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from kthena_components.core import naming
from kthena_components.core.facts.serving import GangFacts
from kthena_components.core.plan.manifest import PATCH_FORCE, Manifest, Resource
from kthena_components.core.values.quantity import render_quantity
from kthena_components.core.values.read import count_or_unknown, mapping, sequence
from kthena_components.core.values.unknown import MaybeInt

if TYPE_CHECKING:  # `check` reads gangs by this module, and has no plan
    from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
    from kthena_components.core.spec.serving_spec import TopologySpec

SCHEDULING = "scheduling.volcano.sh/v1beta1"
TIER = {
    "mode": "mode",
    "highestTierAllowed": "highest_tier_allowed",
    "highestTierName": "highest_tier_name",
}
"""The fields of a topology, and their arguments."""


def emit_pod_group(plan: "ServingPlan", group: int, after: tuple[str, ...] = ()) -> Manifest:
    """Write the gang of one ServingGroup."""
    name = naming.group_name(plan.name, group)
    spec: dict[str, Any] = {
        "minMember": plan.min_member,
        "minResources": _resource_list(plan.min_resources),
        "subGroupPolicy": [_sub_group(plan, role) for role in plan.roles],
    }
    if plan.queue is not None:
        spec["queue"] = plan.queue
    if plan.priority_class is not None:
        spec["priorityClassName"] = plan.priority_class
    if plan.group_topology is not None:
        spec["networkTopology"] = render_topology(plan.group_topology)
    metadata = {
        "name": name,
        "namespace": plan.namespace,
        "labels": {naming.NAME: plan.name, naming.GROUP_NAME: name},
        "annotations": {naming.POD_GROUP: name, **_force(plan)},
    }
    body = {"apiVersion": SCHEDULING, "kind": "PodGroup", "metadata": metadata, "spec": spec}
    return Manifest(
        body=body,
        group=group,
        after=after,
        # Volcano's scheduler replaces the name of a tier by its number. An in-place change would
        # leave both fields, and the old number would take precedence. The pods stay meanwhile.
        replace_on=("spec.networkTopology",),
        delete_first=True,
    )


def _force(plan: "ServingPlan") -> Mapping[str, str]:
    """Overwrite the sub groups if Volcano's scheduler owns them.

    They are one value. The scheduler writes it when it replaces the name of a tier by its number.
    """
    named = plan.role_topology is not None and plan.role_topology.highest_tier_name is not None
    return PATCH_FORCE if named else {}


def _sub_group(plan: "ServingPlan", role: "RolePlan") -> dict[str, Any]:
    """Keep the pods of each engine of a role together.

    Without matchLabelKeys a subgroup matches no pod at all, and the gang waits forever.
    """
    item: dict[str, Any] = {
        "name": role.name,
        "labelSelector": {"matchLabels": {naming.NAME: plan.name, naming.ROLE: role.name}},
        "matchLabelKeys": [naming.ROLE_ID],
        "subGroupSize": role.pods,
        "minSubGroups": role.gang_replicas,
    }
    if plan.role_topology is not None:
        item["networkTopology"] = render_topology(plan.role_topology)
    return item


def render_topology(topology: "TopologySpec") -> dict[str, Any]:
    """Write a topology for Volcano and Kthena (since 0.2)."""
    rendered: dict[str, Any] = {"mode": str(topology.mode)}
    if topology.highest_tier_allowed is not None:
        rendered["highestTierAllowed"] = topology.highest_tier_allowed
    if topology.highest_tier_name is not None:
        rendered["highestTierName"] = topology.highest_tier_name
    return rendered


def described_topology(fields: object) -> dict[str, Any] | None:
    """Read a topology back to its arguments; None if there is none."""
    given = mapping(fields)
    return {TIER[key]: value for key, value in given.items() if key in TIER} or None


def _resource_list(amounts: Mapping[str, Decimal]) -> dict[str, str]:
    return {resource: render_quantity(amounts[resource]) for resource in sorted(amounts)}


def read_gang(body: Mapping[str, Any], path: str = "") -> GangFacts:
    """Read the gang that a PodGroup describes; minima by sub group name."""
    spec = mapping(body.get("spec"))
    minima: dict[str, MaybeInt] = {}
    for item in sequence(spec.get("subGroupPolicy")):
        policy = mapping(item)
        name = policy.get("name")
        if isinstance(name, str):
            minima[name] = count_or_unknown(policy.get("minSubGroups"), "minSubGroups", 0)
    at = f"{path}.spec.minMember" if path else "spec.minMember"
    return GangFacts(
        path=at, min_member=count_or_unknown(spec.get("minMember"), "minMember", 0), minima=minima
    )


POD_GROUPS = Resource(api_version=SCHEDULING, kind="PodGroup", plural="podgroups")
QUEUES = Resource(api_version=SCHEDULING, kind="Queue", plural="queues", wide=True)
HYPER_NODES = Resource(
    api_version="topology.volcano.sh/v1alpha1", kind="HyperNode", plural="hypernodes", wide=True
)
