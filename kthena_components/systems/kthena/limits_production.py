"""Reports options of autoscaling and of Kthena's router that do not fit the serving.

Source: Kthena v1.0.0 pkg/apis/workload/v1alpha1, pkg/autoscaler and pkg/kthena-router.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kthena_components.core.findings import (
    Finding,
    Level,
    checked_by,
    count_of,
    join_path,
    suggest,
    suggest_name,
)
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.checks import listening_entry
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import at_most, either, remove
from kthena_components.core.spec.enums import KthenaVersion
from kthena_components.core.values.regex import regex
from kthena_components.systems.kthena.emit_production import (
    WITH_PARAMETERS,
    Served,
    endpoint,
    engine_port,
    policy_body,
    served,
)
from kthena_components.systems.kthena.limits import since
from kthena_components.systems.kthena.options import (
    AutoscalingSpec,
    KthenaOptions,
    MetricSourceSpec,
    MetricSpec,
    RoleScalingSpec,
    metrics_of,
    options_of,
    sources_of,
    units,
    wrong,
)
from kthena_components.systems.kthena.options_router import (
    InferenceEngine,
    ModelRouteSpec,
    ModelServerSpec,
    RuleSpec,
    StringMatchSpec,
)
from kthena_components.systems.kthena.rules.autoscaling import kthena_autoscaling_ratio
from kthena_components.systems.kthena.rules.entry_names_version_image_template import RULES
from kthena_components.systems.kthena.view import read_policy, read_serving

# Reports `autoscaling` options that Kthena rejects, and those with which nothing is scaled.
#
# Source: Kthena v1.0.0 pkg/autoscaler; pkg/model-serving-controller/webhook/validator.go, which
# rejects the autoscaler's changes, too.


Write = Callable[[ServingPlan], Mapping[str, Any]]
_AT, _MOST_ROLES = "backend_options.autoscaling", 2
_CAMEL = regex("(?<=[a-z])[A-Z]")
"""A capital in a name of the CRD."""


def refuse_autoscaling(plan: ServingPlan, write: Write) -> Iterator[Finding]:
    """Report options that do not fit. `write` gives the ModelServing of a plan."""
    options = options_of(plan)
    scaling = options.autoscaling
    if scaling is None:
        return
    if plan.autoscaled and not scaling.roles:
        yield wrong(
            "autoscaled",
            "is true, but backend_options.autoscaling scales the ServingGroups, too, and each "
            "would undo what the other does",
            "remove one of them",
        )
    found = [*_refuse_shape(plan, scaling), *_refuse_roles(plan, scaling)]
    yield from found
    if found:
        return
    for path, name, role in units(scaling):
        at = f"backend_options.{path}"
        yield from _refuse_metrics(plan, scaling, at, name, role)
    found = list(_refuse_replicas(plan, scaling))
    yield from found or _refuse_bounds(plan, scaling, write)
    if scaling.ratio_constraint is not None and since(plan, KthenaVersion.V1_0):
        policy = read_policy(read_object(policy_body(plan, scaling)))
        for finding in checked_by([kthena_autoscaling_ratio], policy):
            field = finding.path.rpartition("ratioConstraint")[2]
            texts = (f"ratio_constraint{field}", finding.seen, finding.remedy)
            at, seen, remedy = (_CAMEL.sub(_snake, text) for text in texts)
            yield wrong(f"{_AT}.{at}", seen, remedy)


def _snake(capital: re.Match[str]) -> str:
    return f"_{capital[0].lower()}"


def _refuse_shape(plan: ServingPlan, scaling: AutoscalingSpec) -> Iterator[Finding]:
    """Require the bounds of the ServingGroups, or roles."""
    bounds = {"min_replicas": scaling.min_replicas, "max_replicas": scaling.max_replicas}
    stated = [name for name, value in bounds.items() if value is not None]
    if scaling.roles and stated:
        seen = "is given, but `roles` scales the roles of each group, and a policy scales only one"
        yield wrong(f"{_AT}.{stated[0]}", seen, either(remove(), "`roles`"))
    elif not scaling.roles and len(stated) < len(bounds):
        missing = " and ".join(name for name in bounds if name not in stated)
        yield wrong(_AT, f"has no {missing}, and no roles", f"write {missing}, or roles")
    if scaling.ratio_constraint is None:
        return
    if not since(plan, KthenaVersion.V1_0):
        yield _needs(plan, f"{_AT}.ratio_constraint", "a ratio")
    elif len(scaling.roles) != _MOST_ROLES:
        seen = f"relates two roles, but `roles` has {len(scaling.roles)}"
        yield wrong(f"{_AT}.ratio_constraint", seen, "write two roles, or remove it")


def _refuse_roles(plan: ServingPlan, scaling: AutoscalingSpec) -> Iterator[Finding]:
    known = [role.name for role in plan.roles]
    for name in scaling.roles:
        if name not in known:
            seen = f"is not a role; the roles are {', '.join(known)}"
            yield wrong(f"{_AT}.roles.{name}", seen, suggest_name(name, known, scaling.roles))
    if len(scaling.roles) > _MOST_ROLES and since(plan, KthenaVersion.V1_0):
        seen = f"has {count_of(len(scaling.roles), 'role')}, but an AutoscalingPolicy scales 1 or 2"
        yield wrong(f"{_AT}.roles", seen, "remove the others")


def _refuse_metrics(
    plan: ServingPlan,
    scaling: AutoscalingSpec,
    at: str,
    name: str | None,
    role: RoleScalingSpec | None,
) -> Iterator[Finding]:
    bounds = role or scaling
    metrics, sources = metrics_of(scaling, role), sources_of(scaling, role)
    if not metrics and not (_is_fixed(role) and since(plan, KthenaVersion.V1_0)):
        fixed = ", and only Kthena 1.0 keeps a role at a number" if _is_fixed(role) else ""
        yield wrong(f"{at}.metrics", f"is empty{fixed}", "write a metric with its target_value")
    yield from _twice(metrics, f"{at}.metrics")
    known = {metric.name for metric in metrics}
    stated = bounds.metric_sources
    for key in stated if known else ():
        if key not in known:
            seen = f"is no metric; the metrics are {', '.join(sorted(known))}"
            yield wrong(f"{at}.metric_sources.{key}", seen, suggest_name(key, known, stated))
    for key in sorted(known - sources.keys()):
        seen = f"has no '{key}', so that metric would never be read"
        yield wrong(f"{at}.metric_sources", seen, "write a pod or prometheus for it")
    for key, source in sources.items():
        yield from _refuse_source(plan, f"{at}.metric_sources.{key}", name, source)
    read = [source for source in sources.values() if source.prometheus is None]
    if bounds.min_replicas == 0 and sources and len(read) == len(sources):
        seen = "is 0, but without a pod no metric of pods is read, so nothing would start again"
        yield wrong(f"{at}.min_replicas", seen, "write 1, or a metric of Prometheus")
    if not since(plan, KthenaVersion.V1_0) and known <= sources.keys():
        yield from _refuse_endpoints(plan, at, name, sources)


def _is_fixed(role: RoleScalingSpec | None) -> bool:
    return role is not None and role.min_replicas == role.max_replicas


def _twice(metrics: list[MetricSpec], at: str) -> Iterator[Finding]:
    first: dict[str, int] = {}
    for index, metric in enumerate(metrics):
        other = first.setdefault(metric.name, index)
        if other != index:
            seen = f"is '{metric.name}', already the name of metrics[{other}]"
            yield wrong(f"{at}[{index}].name", seen, "remove one of them")


def _refuse_source(
    plan: ServingPlan, at: str, role: str | None, source: MetricSourceSpec
) -> Iterator[Finding]:
    if (source.pod is None) == (source.prometheus is None):
        has = "neither pod nor" if source.pod is None else "both pod and"
        yield wrong(at, f"has {has} prometheus", "write one of the two")
    elif source.prometheus is not None and not since(plan, KthenaVersion.V1_0):
        yield _needs(plan, f"{at}.prometheus", "a metric of Prometheus")
    elif source.pod is not None and source.pod.port is None and engine_port(plan, role) is None:
        seen = "is not given, and the command lines of the engines do not show one port for all"
        yield wrong(f"{at}.pod.port", seen, "write the port on which the pods show the metric")


def _refuse_endpoints(
    plan: ServingPlan, at: str, role: str | None, sources: Mapping[str, MetricSourceSpec]
) -> Iterator[Finding]:
    """Reject metrics at several places: a binding has one place for all of them."""
    places = {key: endpoint(plan, role, source) for key, source in sources.items()}
    first = next(iter(places), None)
    for key, place in places.items():
        if first is not None and place != places[first]:
            seen = f"is read at another place than '{first}', and Kthena {plan.kthena_version} "
            seen += "reads all metrics at one"
            yield wrong(f"{at}.metric_sources.{key}", seen, f"write the same place as '{first}'")


def _needs(plan: ServingPlan, path: str, what: str) -> Finding:
    return wrong(
        path,
        f"{what} needs Kthena 1.0, and kthena_version is {plan.kthena_version}",
        either(remove(), "write kthena_version: '1.0'"),
    )


def _refuse_replicas(plan: ServingPlan, scaling: AutoscalingSpec) -> Iterator[Finding]:
    """Reject bounds that are the wrong way round, and replicas outside of them."""
    roles = {role.name: role for role in plan.roles}
    for path, name, role in units(scaling):
        bounds = role or scaling
        low, high = bounds.min_replicas or 0, bounds.max_replicas or 0
        at = f"backend_options.{path}"
        replicas = plan.groups if name is None else roles[name].replicas
        where = "replicas" if name is None else join_path(roles[name].path, "replicas")
        if low > high:
            seen = f"is {low}, more than max_replicas, {high}"
            yield wrong(f"{at}.min_replicas", seen, at_most(high))
        elif not low <= replicas <= high:
            nearest = low if replicas < low else high
            seen = f"is {replicas}, but {at} scales from {low} to {high}"
            yield wrong(where, seen, f"write {nearest}, or other bounds")


def _refuse_bounds(plan: ServingPlan, scaling: AutoscalingSpec, write: Write) -> Iterator[Finding]:
    """Reject bounds that the autoscaler cannot reach: the webhook checks its changes, too."""
    usual = {(finding.rule, finding.path) for finding in _checked(write(plan), plan)}
    for path, name, role in units(scaling):
        bounds = role or scaling
        for side, number in (
            ("min_replicas", bounds.min_replicas),
            ("max_replicas", bounds.max_replicas),
        ):
            scaled = _scaled(plan, name, number or 0)
            for finding in _checked(write(scaled), plan):
                if (finding.rule, finding.path) not in usual:
                    seen = f"is {number}, which Kthena rejects: {finding.path} {finding.seen}"
                    remedy = "write another number, or change that"
                    yield wrong(f"backend_options.{path}.{side}", seen, remedy)


def _scaled(plan: ServingPlan, role: str | None, number: int) -> ServingPlan:
    """Return the plan as it is when the autoscaler has changed a number."""
    if role is None:
        return replace(plan, groups=number)

    def changed(one: RolePlan) -> RolePlan:
        return replace(one, replicas=number) if one.name == role else one

    return replace(plan, roles=tuple(map(changed, plan.roles)))


def _checked(body: Mapping[str, Any], plan: ServingPlan) -> list[Finding]:
    """Return what the webhook has against a ModelServing."""
    found = read_object(body)
    context = replace(found.context, versions={"kthena": str(plan.kthena_version)})
    view = read_serving(replace(found, context=context))
    return [f for f in checked_by(RULES, view) if f.level is Level.MANDATORY]


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
    known = [role.name for role in plan.roles]
    unknown = list(_refuse_routed_roles(server, known))
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


def _refuse_routed_roles(server: ModelServerSpec, known: list[str]) -> Iterator[Finding]:
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
