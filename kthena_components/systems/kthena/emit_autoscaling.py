"""Writes the AutoscalingPolicy of a serving; before Kthena 1.0, with AutoscalingPolicyBindings.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/autoscalingpolicy_types.go and v0.4.0
autoscalingpolicybinding_types.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.objects.object import MODEL_SERVING
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.manifest import REPLICAS, Manifest
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.spec.enums import KthenaVersion
from kthena_components.systems.kthena.limits import since
from kthena_components.systems.kthena.options import (
    AutoscalingSpec,
    MetricSourceSpec,
    RoleScalingSpec,
    metrics_of,
    options_of,
    render,
    sources_of,
    units,
)
from kthena_components.systems.kthena.view import BINDING, POLICY

_VERSION = f"{MODEL_SERVING[0]}/v1alpha1"


def kept_replicas(plan: ServingPlan) -> tuple[str, ...]:
    """List the paths in the ModelServing that an autoscaler changes."""
    options = options_of(plan)
    scaling = options.autoscaling
    if plan.autoscaled or (scaling is not None and not scaling.roles):
        return (REPLICAS,)
    return tuple(
        f"spec.template.roles[{index}].replicas"
        for index, role in enumerate(plan.roles)
        if scaling is not None and role.name in scaling.roles
    )


def emit_autoscaling(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write what scales the serving; nothing if nothing does."""
    scaling = options_of(plan).autoscaling
    if scaling is None:
        return ()
    if since(plan, KthenaVersion.V1_0):
        return (Manifest(body=policy_body(plan, scaling)),)
    return tuple(_bound(plan, scaling))


def policy_body(plan: ServingPlan, scaling: AutoscalingSpec) -> dict[str, Any]:
    """Write the AutoscalingPolicy of Kthena 1.0."""
    ref = {"kind": MODEL_SERVING[1], "name": plan.name}
    spec = _rules(scaling)
    if scaling.metrics:
        spec["metrics"] = render(scaling.metrics)
    if not scaling.roles:
        sources = _sources(plan, scaling, None, None)
        spec["homogeneousTarget"] = {
            "target": {"targetRef": ref, **({"metricSources": sources} if sources else {})},
            "minReplicas": scaling.min_replicas,
            "maxReplicas": scaling.max_replicas,
        }
        return _object(plan, POLICY[1], plan.name, spec)
    target: dict[str, Any] = {"targetRef": ref, "roles": {}}
    for name, role in scaling.roles.items():
        sources = _sources(plan, scaling, name, role)
        target["roles"][name] = {
            "minReplicas": role.min_replicas,
            "maxReplicas": role.max_replicas,
            **({"metrics": render(role.metrics)} if role.metrics else {}),
            **({"metricSources": sources} if sources else {}),
        }
    if scaling.ratio_constraint is not None:
        target["ratioConstraint"] = render(scaling.ratio_constraint)
    spec["disaggregatedTarget"] = target
    return _object(plan, POLICY[1], plan.name, spec)


def _rules(scaling: AutoscalingSpec) -> dict[str, Any]:
    behavior = render(scaling.behavior) if scaling.behavior is not None else {}
    rules: dict[str, Any] = {"tolerancePercent": scaling.tolerance_percent}
    return {**rules, **({"behavior": behavior} if behavior else {})}


def _sources(
    plan: ServingPlan, scaling: AutoscalingSpec, name: str | None, role: RoleScalingSpec | None
) -> dict[str, Any]:
    """Write where metrics are read, with the port of the engine."""
    written = {}
    for key, source in sources_of(scaling, role).items():
        written[key] = render(source)
        if source.pod is not None:
            written[key]["pod"]["port"] = source.pod.port or engine_port(plan, name)
    return written


def engine_port(plan: ServingPlan, role: str | None) -> int | None:
    """Return the port on which the engines of a role, or of all roles, listen; None if unknown."""
    ports = {
        port_of(engine) for engine in facts_from_plan(plan).engines if role in (None, engine.name)
    }
    return ports.pop() if len(ports) == 1 else None


def port_of(engine: EngineFacts) -> int | None:
    """Return the port on which an engine listens; None if unknown."""
    command = engine.entry.command
    port = command.options.get("--port") if command is not None and command.engine else None
    return port if isinstance(port, int) else None


def _bound(plan: ServingPlan, scaling: AutoscalingSpec) -> Iterator[Manifest]:
    """Write a policy and its binding for each part that is scaled.

    The webhook requires the policy first.
    """
    for _, name, role in units(scaling):
        own = plan.name if name is None else f"{plan.name}-{name}"
        sources = sources_of(scaling, role)
        metrics = [
            {"metricName": _shown(metric.name, sources), "targetValue": metric.target_value}
            for metric in metrics_of(scaling, role)
        ]
        policy = Manifest(
            body=_object(plan, POLICY[1], own, {**_rules(scaling), "metrics": metrics})
        )
        yield policy
        target: dict[str, Any] = {"targetRef": {"kind": MODEL_SERVING[1], "name": plan.name}}
        if name is not None:
            target["subTargets"] = {"kind": "Role", "name": name}
        target["metricEndpoint"] = endpoint(plan, name, next(iter(sources.values())))
        bounds = role or scaling
        homogeneous = {
            "target": target,
            "minReplicas": bounds.min_replicas,
            "maxReplicas": bounds.max_replicas,
        }
        spec = {"policyRef": {"name": own}, "homogeneousTarget": homogeneous}
        yield Manifest(body=_object(plan, BINDING[1], own, spec), after=(policy.key,))


def endpoint(plan: ServingPlan, role: str | None, source: MetricSourceSpec) -> dict[str, Any]:
    """Write the only place at which a binding reads metrics."""
    written: dict[str, Any] = render(source.pod) if source.pod is not None else {}
    written.pop("name", None)
    if source.pod is not None:
        written["port"] = source.pod.port or engine_port(plan, role)
    return written


def _shown(name: str, sources: Mapping[str, MetricSourceSpec]) -> str:
    """Return the name of a metric at the pods, by which a policy before 1.0 knows it."""
    pod = sources[name].pod
    return pod.name if pod is not None and pod.name else name


def _object(plan: ServingPlan, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": plan.namespace}
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "spec": spec}
