"""Writes what a serving in production has beside its ModelServing: autoscaling, and routes.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/autoscalingpolicy_types.go,
pkg/apis/networking/v1alpha1 and pkg/kthena-router; v0.4.0 autoscalingpolicybinding_types.go.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from kthena_components.core import naming
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.objects.object import MODEL_SERVER, MODEL_SERVING
from kthena_components.core.plan.facts import facts_from_plan
from kthena_components.core.plan.manifest import REPLICAS, Manifest
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.spec.enums import KthenaVersion
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
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
from kthena_components.systems.kthena.options_router import (
    Connector,
    ConnectorSpec,
    InferenceEngine,
    ModelRouteSpec,
    ModelServerSpec,
    PairSpec,
)
from kthena_components.systems.kthena.view import BINDING, MODEL_ROUTE, POLICY

# Writes the AutoscalingPolicy of a serving; before Kthena 1.0, with AutoscalingPolicyBindings.
#
# Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1/autoscalingpolicy_types.go and v0.4.0
# autoscalingpolicybinding_types.go.


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
        return _write_object(plan, POLICY[1], plan.name, spec)
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
    return _write_object(plan, POLICY[1], plan.name, spec)


def _rules(scaling: AutoscalingSpec) -> dict[str, Any]:
    behavior = render(scaling.behavior) if scaling.behavior is not None else {}
    rules: dict[str, Any] = {"tolerancePercent": scaling.tolerance_percent}
    return {**rules, **({"behavior": behavior} if behavior else {})}


def _sources(
    plan: ServingPlan,
    scaling: AutoscalingSpec,
    name: str | None,
    role: RoleScalingSpec | None,
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
            body=_write_object(plan, POLICY[1], own, {**_rules(scaling), "metrics": metrics})
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
        yield Manifest(body=_write_object(plan, BINDING[1], own, spec), after=(policy.key,))


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


def _write_object(plan: ServingPlan, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": plan.namespace}
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "spec": spec}


# Writes the ModelServer and the ModelRoute of a serving, for Kthena's router.
#
# Source: Kthena v1.0.0 pkg/apis/networking/v1alpha1 and pkg/kthena-router.


_ENGINES = {"vllm": InferenceEngine.VLLM, "sglang": InferenceEngine.SGLANG}
_SERVED_AS = "--served-model-name"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the router needs to know of the entry pods that it sends requests to."""

    roles: tuple[str, ...]
    """One role, or prefill and decode; empty if that is not decided."""
    pair: PairSpec | None
    port: int | None
    """None: unknown, or not the same for both roles."""
    engine: InferenceEngine | None
    model: str | None
    """The name that the engine serves. None: unknown."""
    connector: Connector | None
    """What the engines of the pair transfer with. None: unknown, or not for vLLM's engines."""


def served(plan: ServingPlan) -> Served:
    """Read from the command lines what the options do not state."""
    server = options_of(plan).model_server or ModelServerSpec()
    pair = server.pd_group or _usual_pair(plan, server)
    roles = _entry_roles(plan, server, pair)
    engines = [engine for engine in facts_from_plan(plan).engines if engine.name in roles]
    return Served(
        roles=roles,
        pair=pair,
        port=server.workload_port.port or _only(map(port_of, engines)),
        engine=server.inference_engine or _only(map(_engine, engines)),
        model=server.model or _common_model(plan, engines),
        connector=connector_of(engines) if pair else None,
    )


def _usual_pair(plan: ServingPlan, server: ModelServerSpec) -> PairSpec | None:
    """Return the pair of a serving whose roles are named decode and prefill."""
    names = sorted(role.name for role in plan.roles)
    return PairSpec() if server.role is None and names == ["decode", "prefill"] else None


def _entry_roles(
    plan: ServingPlan, server: ModelServerSpec, pair: PairSpec | None
) -> tuple[str, ...]:
    """Return the roles that get requests: the stated one, the pair, or the only one."""
    if server.role is not None:
        return (server.role,)
    if pair is not None:
        return (pair.prefill, pair.decode)
    return (plan.roles[0].name,) if len(plan.roles) == 1 else ()


def _only(values: Iterable[T]) -> T | None:
    """Return the value that all have in common; None if there is none."""
    different = set(values)
    return different.pop() if len(different) == 1 else None


def _common_model(plan: ServingPlan, engines: Sequence[EngineFacts]) -> str | None:
    """Return the first name of their model that all engines have in common.

    The router writes it into each request, under whatever name a route matched it.
    Source: Kthena v1.0.0 pkg/kthena-router/router/router.go; vLLM
    vllm/entrypoints/openai/models/serving.py answers 404 for a model of another name.
    """
    entries = {role.name: role.entry for role in plan.roles}
    return _only(_model(each, json.dumps(entries[each.name])) for each in engines)


def _engine(engine: EngineFacts) -> InferenceEngine | None:
    return _ENGINES.get(str(engine.entry.command and engine.entry.command.engine))


def _model(engine: EngineFacts, entry: str) -> str | None:
    """Return the first name under which an engine serves; None if it may be in a file."""
    command = engine.entry.command
    if command is None or (_SERVED_AS in entry) != (_SERVED_AS in command.options):
        return None
    stated = command.options.get(_SERVED_AS, command.model)
    name = next(iter(stated), None) if isinstance(stated, tuple) else stated
    return name if isinstance(name, str) else None


def emit_router(plan: ServingPlan) -> tuple[Manifest, ...]:
    """Write the ModelServer and the ModelRoute that the options state."""
    options, manifests = options_of(plan), list[Manifest]()
    if options.model_server is not None:
        spec = _server(plan, options.model_server)
        manifests.append(Manifest(body=_object(plan, MODEL_SERVER[1], spec)))
    if options.model_route is not None:
        body = _object(plan, MODEL_ROUTE[1], _route(plan, options.model_route))
        # The CRD forbids changing it.
        route = Manifest(body=body, replace_on=("spec.modelName",), delete_first=True)
        manifests.append(route)
    return tuple(manifests)


def _server(plan: ServingPlan, server: ModelServerSpec) -> dict[str, Any]:
    found = served(plan)
    selector: dict[str, Any] = {"matchLabels": {naming.NAME: plan.name, naming.ENTRY: "true"}}
    if found.pair is not None:
        selector["pdGroup"] = {
            "groupKey": naming.GROUP_NAME,
            "prefillLabels": {naming.ROLE: found.pair.prefill},
            "decodeLabels": {naming.ROLE: found.pair.decode},
        }
    elif len(plan.roles) > 1:
        selector["matchLabels"][naming.ROLE] = found.roles[0]
    port = {"port": found.port, "protocol": str(server.workload_port.protocol)}
    spec: dict[str, Any] = {
        "inferenceEngine": str(found.engine),
        "workloadSelector": selector,
        "workloadPort": port,
    }
    if found.model is not None:
        spec["model"] = found.model
    # Without it, the router sends no transfer parameters, and decode computes the prompt again.
    derived = ConnectorSpec(type=found.connector) if found.connector else None
    connector = server.kv_connector or derived
    stated = {"trafficPolicy": server.traffic_policy, "kvConnector": connector}
    return spec | {key: render(value) for key, value in stated.items() if value is not None}


def _route(plan: ServingPlan, route: ModelRouteSpec) -> dict[str, Any]:
    written: dict[str, Any] = render(route)
    for rule in written["rules"]:
        for target in rule["targetModels"]:
            target.setdefault("modelServerName", plan.name)
    name = route.model_name or served(plan).model
    return written | ({"modelName": name} if name is not None else {})


def _object(plan: ServingPlan, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": plan.name, "namespace": plan.namespace}
    return {
        "apiVersion": f"{MODEL_SERVER[0]}/v1alpha1",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


# Reads from command lines how Kthena's router must hand the KV cache from prefill to decode.
#
# Source: Kthena v1.0.0 pkg/model-booster-controller/convert/model_server.go VLLMKvConnectorType;
# examples/models/deepseek-v4-flash for MooncakeConnectorV1 of vllm-ascend;
# pkg/kthena-router/connectors for what the router sends.


_CONNECTORS = {
    "NixlConnector": Connector.NIXL,
    # NixlConnector is another name of it since vLLM 0.24.
    "NixlPullConnector": Connector.NIXL,
    "MooncakeConnector": Connector.MOONCAKE,
    "MooncakeConnectorV1": Connector.MOONCAKE,
    "LMCacheConnectorV1": Connector.LMCACHE,
}
WITH_PARAMETERS = frozenset({Connector.NIXL, Connector.MOONCAKE})
"""With these, the router sends `kv_transfer_params` to both engines; with the others, to none."""


def connector_of(engines: Iterable[EngineFacts]) -> Connector | None:
    """Return the connector of vLLM engines; None if none is known, or if they differ."""
    found = {
        _CONNECTORS[name]
        for engine in engines
        for name in _names(_config(engine))
        if name in _CONNECTORS
    }
    if Connector.LMCACHE in found and len(found) > 1:
        # A MultiConnector that also stores the cache: LMCache needs nothing from the router.
        found.remove(Connector.LMCACHE)
    return found.pop() if len(found) == 1 else None


def _config(engine: EngineFacts) -> object:
    command = engine.entry.command
    return command.options.get("--kv-transfer-config") if command else None


def _names(config: object) -> Iterator[Any]:
    """List the connector of a transfer, and those that a MultiConnector combines."""
    fields = mapping(config)
    if isinstance(name := fields.get("kv_connector"), str):
        yield name
    for part in sequence(mapping(fields.get("kv_connector_extra_config")).get("connectors")):
        yield from _names(part)
