"""Reports options of Kthena's router that do not fit the serving.

Source: Kthena v1.0.0 pkg/kthena-router.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, suggest
from kthena_components.core.plan.facts import listening_entry
from kthena_components.core.plan.serving_plan import ServingPlan
from kthena_components.systems.kthena.emit_router import WITH_PARAMETERS, Served, served
from kthena_components.systems.kthena.options import KthenaOptions, options_of, wrong
from kthena_components.systems.kthena.options_router import (
    InferenceEngine,
    ModelRouteSpec,
    ModelServerSpec,
    RuleSpec,
    StringMatchSpec,
)

_SERVER, _ROUTE = "backend_options.model_server", "backend_options.model_route"


def refuse_router(plan: ServingPlan) -> Iterator[Finding]:
    """Report options that do not fit."""
    options = options_of(plan)
    if options.model_server is not None:
        yield from _refuse_server(plan, options.model_server, served(plan))
    if options.model_route is not None:
        yield from _refuse_route(plan, options, options.model_route)


def _refuse_server(plan: ServingPlan, server: ModelServerSpec, found: Served) -> Iterator[Finding]:
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
