"""Reads a ModelServing back to the arguments of a serving.

Source of the defaults: Kthena v1.0.0 and v0.1.0, pkg/apis/workload/v1alpha1; no webhook sets more.
"""

from collections.abc import Mapping
from typing import Any

from kthena_components.core import naming
from kthena_components.core.objects.object import MODEL_SERVING
from kthena_components.core.plan.read_back import described_template, filled_map, namespaced, stated
from kthena_components.core.spec.enums import KthenaVersion
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.emitter import Converter
from kthena_components.systems.system import Body
from kthena_components.systems.volcano.emit import TIER, described_topology

_POLICIES = {"groupPolicy": "group_policy", "rolePolicy": "role_policy"}
_BUDGETS = {"maxUnavailable": "max_unavailable", "maxSurge": "max_surge", "partition": "partition"}


def filled(body: Body) -> dict[str, Any]:
    """Fill in the defaults of the CRD."""
    spec = filled_map(
        body.get("spec"),
        {"replicas": 1, "schedulerName": "volcano", "recoveryPolicy": "RoleRecreate"},
    )
    spec["rolloutStrategy"] = filled_rollout(
        spec.get("rolloutStrategy"), "ServingGroupRollingUpdate"
    )
    spec["template"] = filled_roles(spec.get("template"))
    topology = mapping(spec["template"].get("networkTopology"))
    if _is_flat(topology):
        defaults = {"mode": "hard", "highestTierAllowed": 1}
        spec["template"]["networkTopology"] = filled_map(topology, defaults)
    elif topology:
        spec["template"]["networkTopology"] = {
            key: filled_map(policy, {"mode": "hard"}) for key, policy in topology.items()
        }
    plugins = [_filled_plugin(plugin) for plugin in sequence(spec.get("plugins"))]
    return filled_object(body, {**spec, **({"plugins": plugins} if plugins else {})})


def filled_object(body: Body, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with its namespace and a filled spec."""
    metadata = namespaced(body.get("metadata"))
    return {**body, "metadata": metadata, "spec": dict(spec)}


def filled_roles(template: object) -> dict[str, Any]:
    """Fill in the template of a ServingGroup, which ModelInfers have, too."""
    result = filled_map(template, {"restartGracePeriodSeconds": 0})
    result["roles"] = [
        filled_map(role, {"replicas": 1, "workerReplicas": 0})
        for role in sequence(result.get("roles"))
    ]
    return result


def filled_rollout(strategy: object, usual: str) -> dict[str, Any]:
    """Fill in a rollout strategy; a missing one is one group at a time."""
    result = filled_map(strategy, {"type": usual})
    rolling = result.get("rollingUpdateConfiguration")
    if rolling is not None or result["type"] == usual:
        result["rollingUpdateConfiguration"] = filled_map(rolling, {"maxUnavailable": 1})
    return result


def _filled_plugin(plugin: object) -> dict[str, Any]:
    result = filled_map(plugin, {"type": "BuiltIn"})
    scope = mapping(result.get("scope"))
    return {**result, "scope": filled_map(scope, {"target": "All"})}


def arguments(body: Body) -> dict[str, Any]:
    """Return the arguments that describe a ModelServing whose defaults are filled in."""
    metadata, spec = mapping(body.get("metadata")), mapping(body.get("spec"))
    template = mapping(spec.get("template"))
    topology = mapping(template.get("networkTopology"))
    flat = _is_flat(topology)
    policies = {"groupPolicy": topology} if flat else topology
    plugins = [described_plugin(plugin) for plugin in sequence(spec.get("plugins"))]
    return stated(
        name=metadata.get("name"),
        namespace=metadata.get("namespace"),
        replicas=spec.get("replicas"),
        kthena_version=_version(template, flat=flat),
        scheduler_name=spec.get("schedulerName"),
        queue=mapping(metadata.get("annotations")).get(naming.QUEUE_NAME),
        gang_policy=described_gang(template.get("gangPolicy")),
        network_topology=renamed(
            {key: described_topology(policy) or {} for key, policy in policies.items()}, _POLICIES
        )
        or None,
        rollout_strategy=described_rollout(mapping(spec.get("rolloutStrategy"))),
        recovery_policy=spec.get("recoveryPolicy"),
        restart_grace_period_seconds=template.get("restartGracePeriodSeconds") or None,
        roles=[described_role(role) for role in sequence(template.get("roles"))],
        backend_options={"plugins": plugins} if plugins else None,
    )


def _is_flat(topology: Mapping[str, Any]) -> bool:
    """Return whether a topology has the form of Kthena 0.1."""
    return any(key in TIER for key in topology)


def _version(template: Mapping[str, Any], *, flat: bool) -> str | None:
    """Return the newest Kthena that takes the object, None for the newest of all.

    Version 0.3 first requires that the name of a role starts with a letter.
    """
    if flat:
        return KthenaVersion.V0_1.value
    names = [mapping(role).get("name") for role in sequence(template.get("roles"))]
    late = all(naming.DNS_1035.fullmatch(name) for name in names if isinstance(name, str))
    return None if late else KthenaVersion.V0_2.value


def renamed(fields: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields that are known, by the names of the arguments."""
    return {names[key]: value for key, value in fields.items() if key in names}


def described_gang(policy: object) -> dict[str, Any] | None:
    """Describe the gang; one without minima is the gang of all engines."""
    if policy is None:
        return None
    return {"min_role_replicas": dict(mapping(mapping(policy).get("minRoleReplicas")))}


def described_rollout(strategy: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a rollout; None for the usual one, of one group at a time."""
    rolling = renamed(mapping(strategy.get("rollingUpdateConfiguration")), _BUDGETS)
    configured = rolling if rolling and rolling != {"max_unavailable": 1} else None
    usual = strategy.get("type") == "ServingGroupRollingUpdate"
    return (
        None
        if usual and configured is None
        else stated(type=strategy.get("type"), rolling_update_configuration=configured)
    )


def described_role(role: object, scheduler: object = None) -> dict[str, Any]:
    """Describe a role with its pod templates."""
    fields = mapping(role)
    return stated(
        name=fields.get("name"),
        replicas=fields.get("replicas"),
        worker_replicas=fields.get("workerReplicas"),
        entry_template=described_template(fields.get("entryTemplate"), scheduler),
        worker_template=described_template(fields.get("workerTemplate"), scheduler),
        max_unavailable=fields.get("maxUnavailable"),
    )


def described_plugin(plugin: object) -> dict[str, Any]:
    """Return the arguments of a plugin; its only type is not an argument."""
    return {key: value for key, value in mapping(plugin).items() if key != "type"}


CONVERTER = Converter(
    kinds=(MODEL_SERVING,),
    filled=filled,
    arguments=arguments,
    labels=("modelserving.volcano.sh/",),
    label=lambda pair: pair,
)
