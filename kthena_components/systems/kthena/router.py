"""Writes the ModelServer and the ModelRoute of a serving, and reports options that do not fit it.

Source: Kthena v1.0.0 pkg/apis/networking/v1alpha1 and pkg/kthena-router.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from kthena_components.core import naming
from kthena_components.core.facts.serving import EngineFacts
from kthena_components.core.findings import Finding, suggest
from kthena_components.core.objects.object import MODEL_SERVER
from kthena_components.core.plan.facts import facts_from_plan, listening_entry
from kthena_components.core.plan.manifest import Manifest
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.systems.kthena.emit_autoscaling import port_of
from kthena_components.systems.kthena.options import KthenaOptions, options_of, render, wrong
from kthena_components.systems.kthena.options_router import (
    Connector,
    ConnectorSpec,
    InferenceEngine,
    ModelRouteSpec,
    ModelServerSpec,
    PairSpec,
    RuleSpec,
    StringMatchSpec,
)
from kthena_components.systems.kthena.view import MODEL_ROUTE

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
    """Write the spec of the ModelServer; what is not stated is derived from the engines."""
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


# Reports options of Kthena's router that do not fit the serving.
#
# Source: Kthena v1.0.0 pkg/kthena-router.


_SERVER, _ROUTE = "backend_options.model_server", "backend_options.model_route"


def refuse_router(plan: ServingPlan) -> Iterator[Finding]:
    """Report options that do not fit."""
    options = options_of(plan)
    if options.model_server is not None:
        yield from _refuse_server(plan, options.model_server, served(plan))
    if options.model_route is not None:
        yield from _refuse_route(plan, options, options.model_route)


def _refuse_server(plan: ServingPlan, server: ModelServerSpec, found: Served) -> Iterator[Finding]:
    """Refuse a ModelServer whose role, port or engine is not known."""
    known = [role.name for role in plan.roles]
    unknown = list(_refuse_roles(server, known))
    yield from unknown
    if unknown:
        return
    if not found.roles:
        yield wrong(
            f"{_SERVER}.role",
            f"is missing, and the roles are {', '.join(known)}",
            "write the role whose engines serve, or pd_group",
        )
        return
    yield from _refuse_connector(server, found)
    of = f"role '{found.roles[0]}'" if len(found.roles) == 1 else "both roles"
    if found.port is None:
        seen = f"is not given, and the command line of {of} does not show it"
        yield wrong(f"{_SERVER}.workload_port.port", seen, "write the port of the engine")
    yield from _refuse_port(plan, server.workload_port.port, found)
    if found.engine is None:
        seen = f"is not given, and the command line of {of} does not show vLLM or SGLang"
        yield wrong(f"{_SERVER}.inference_engine", seen, "write vLLM or SGLang")


def _refuse_port(plan: ServingPlan, stated: int | None, found: Served) -> Iterator[Finding]:
    """Report a stated port on which the entry pods of a role do not listen."""
    for role in plan.roles if stated is not None else ():
        ports = listening_entry(role) if role.name in found.roles else None
        if ports is None or stated is None or ports.may_listen(stated):
            continue
        if isinstance(ports.answers, int):
            seen = f"is {stated}, but {ports.title} in the entry pods of role '{role.name}'"
            yield wrong(f"{_SERVER}.workload_port.port", seen, f"write {ports.answers}")


def _refuse_connector(server: ModelServerSpec, found: Served) -> Iterator[Finding]:
    """Check that the router's KV connector sends what the engines' connectors need."""
    if server.kv_connector is None:
        return
    path, stated = f"{_SERVER}.kv_connector", server.kv_connector.type
    needed = found.connector
    if found.pair is None:
        seen = "is given, but the serving has no pair of prefill and decode"
        yield wrong(path, seen, "write pd_group, or remove it")
    elif found.engine is InferenceEngine.SGLANG:
        seen = f"is '{stated}', but the engines are SGLang, and the router then sends them no "
        yield wrong(f"{path}.type", f"{seen}bootstrap_room", "remove kv_connector")
    elif needed in WITH_PARAMETERS and stated not in WITH_PARAMETERS:
        seen = f"is '{stated}', but the engines transfer with {needed}, and the router then sends "
        remedy = f"write '{needed}', or remove kv_connector"
        yield wrong(f"{path}.type", f"{seen}them no kv_transfer_params", remedy)


def _refuse_roles(server: ModelServerSpec, known: list[str]) -> Iterator[Finding]:
    """Check that the roles of a ModelServer exist, and that a pair is two different roles."""
    if server.role is not None and server.pd_group is not None:
        seen = "is given together with pd_group, which names two roles"
        yield wrong(f"{_SERVER}.role", seen, "remove one of them")
    pair = server.pd_group
    stated = {"pd_group.prefill": pair.prefill, "pd_group.decode": pair.decode} if pair else {}
    for field, role in ({"role": server.role} | stated).items():
        if role is not None and role not in known:
            seen = f"is '{role}', but the roles are {', '.join(known)}"
            yield wrong(f"{_SERVER}.{field}", seen, suggest(role, known))
    if pair is not None and pair.prefill == pair.decode:
        seen = f"is '{pair.decode}', like prefill, but a pair has two roles"
        yield wrong(f"{_SERVER}.pd_group.decode", seen, "write another role")


def _refuse_route(
    plan: ServingPlan, options: KthenaOptions, route: ModelRouteSpec
) -> Iterator[Finding]:
    """Check a ModelRoute: the model's name, the rate limit, and each rule."""
    if not (route.model_name or route.lora_adapters or served(plan).model):
        seen = (
            "is missing, and its default is the name under which the engines serve their model, if "
        )
        remedy = "write the name of the model in requests: with --served-model-name, that name"
        yield wrong(f"{_ROUTE}.model_name", f"{seen}they have one in common", remedy)
    limit = route.rate_limit
    if limit is not None and not (limit.input_tokens_per_unit or limit.output_tokens_per_unit):
        seen = "limits neither input nor output tokens"
        yield wrong(f"{_ROUTE}.rate_limit", seen, "write a number of tokens, or remove it")
    for index, rule in enumerate(route.rules):
        yield from _refuse_rule(options, rule, f"{_ROUTE}.rules[{index}]")


def _refuse_rule(options: KthenaOptions, rule: RuleSpec, at: str) -> Iterator[Finding]:
    """Check a rule of a route: its targets, their weights, and one way to match each string."""
    for index, target in enumerate(rule.target_models):
        if target.model_server_name is None and options.model_server is None:
            path = f"{at}.target_models[{index}].model_server_name"
            seen = "is missing, and the serving has no ModelServer"
            yield wrong(path, seen, "write it, or add model_server: {}")
    if not any(target.weight for target in rule.target_models):
        seen = "has no target with a weight above 0"
        yield wrong(f"{at}.target_models", seen, "give one a weight from 1 to 100")
    match = rule.model_match
    if match is None:
        return
    stated: dict[str, StringMatchSpec] = {f"headers.{k}": m for k, m in match.headers.items()}
    stated |= {"uri": match.uri} if match.uri is not None else {}
    for path, text in stated.items():
        ways = [word for word in ("exact", "prefix", "regex") if getattr(text, word) is not None]
        if len(ways) != 1:
            seen = f"has {' and '.join(ways) or 'none of exact, prefix and regex'}"
            yield wrong(f"{at}.model_match.{path}", seen, "write exactly one of them")
