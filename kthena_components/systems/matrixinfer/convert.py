"""Reads a ModelInfer back to the arguments of a serving.

Source of the defaults: volcano-sh/kthena 98380a67 and e4fb6663, pkg/apis/workload/v1alpha1.
"""

from typing import Any

from kthena_components.core import naming
from kthena_components.core.plan.read_back import filled_map, stated
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.systems.emitter import Converter, Pair
from kthena_components.systems.kthena.convert import (
    described_gang,
    described_role,
    described_rollout,
    filled_object,
    filled_roles,
    filled_rollout,
    renamed,
)
from kthena_components.systems.matrixinfer.view import MODEL_INFERS
from kthena_components.systems.system import Body

_BY_GROUP = "InferGroupRollingUpdate"
_RECOVERY = {"InferGroupRecreate": "ServingGroupRecreate"}
_TIER = {"mode": "mode", "highestTierAllowed": "highest_tier_allowed"}
_LABELS = {"name": naming.NAME, "role": naming.ROLE, "entry": naming.ENTRY}


def filled(body: Body) -> dict[str, Any]:
    """Fill in the defaults of the CRD, and the gang that an empty gangSchedule means."""
    spec = filled_map(body.get("spec"), {"replicas": 1, "recoveryPolicy": "RoleRecreate"})
    rollout = filled_rollout(spec.get("rolloutStrategy"), _BY_GROUP)
    rolling = mapping(rollout.get("rollingUpdateConfiguration"))
    rolling = {key: 0 if value == "0%" else value for key, value in rolling.items()}
    rollout["rollingUpdateConfiguration"] = filled_map(rolling, {"maxSurge": 0, "partition": 0})
    spec["rolloutStrategy"] = rollout
    template = filled_roles(spec.get("template"))
    gang = template.get("gangSchedule")
    if gang is not None:
        roles = map(mapping, sequence(template["roles"]))
        minima = {str(role.get("name")): role.get("replicas") for role in roles}
        stated_minima = mapping(mapping(gang).get("minRoleReplicas"))
        gang = {**mapping(gang), "minRoleReplicas": {**minima, **stated_minima}}
        if gang.get("networkTopology") is not None:
            gang["networkTopology"] = filled_map(gang["networkTopology"], {"mode": "hard"})
        template["gangSchedule"] = gang
    return filled_object(body, {**spec, "template": template})


def arguments(body: Body) -> dict[str, Any]:
    """Describe a filled ModelInfer."""
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    template, scheduler = mapping(spec.get("template")), spec.get("schedulerName")
    gang = mapping(template.get("gangSchedule"))
    topology = renamed(mapping(gang.get("networkTopology")), _TIER)
    recovery = spec.get("recoveryPolicy")
    return stated(
        name=metadata.get("name"),
        namespace=metadata.get("namespace"),
        replicas=spec.get("replicas"),
        scheduler_name=scheduler,
        gang_policy=_described_minima(template),
        network_topology={"group_policy": topology} if topology else None,
        rollout_strategy=_rollout(mapping(spec.get("rolloutStrategy"))),
        recovery_policy=_RECOVERY.get(recovery, recovery) if isinstance(recovery, str) else None,
        restart_grace_period_seconds=template.get("restartGracePeriodSeconds") or None,
        roles=[described_role(role, scheduler) for role in sequence(template.get("roles"))],
        backend_options={"api_group": group_kind(body)[0]},
    )


def _described_minima(template: Any) -> dict[str, Any] | None:
    """Describe the gang, None if it covers all engines."""
    roles = map(mapping, sequence(template.get("roles")))
    full = {role.get("name"): role.get("replicas") for role in roles}
    policy = described_gang(template.get("gangSchedule"))
    return policy if policy and policy["min_role_replicas"] != full else None


def _rollout(strategy: Any) -> dict[str, Any] | None:
    """Describe a rollout. No surge and no partition are the defaults, so they are not stated."""
    rolling = mapping(strategy.get("rollingUpdateConfiguration"))
    kept = {k: v for k, v in rolling.items() if k == "maxUnavailable" or v != 0}
    kind = (
        "ServingGroupRollingUpdate" if strategy.get("type") == _BY_GROUP else strategy.get("type")
    )
    return described_rollout({"type": kind, "rollingUpdateConfiguration": kept})


def _label(pair: Pair) -> Pair | None:
    key, value = pair
    same = _LABELS.get(key.partition("/")[2])
    return None if same is None else (same, value)


CONVERTER = Converter(
    kinds=MODEL_INFERS,
    filled=filled,
    arguments=arguments,
    labels=("modelinfer.matrixinfer.ai/", "modelinfer.volcano.sh/"),
    label=_label,
)
