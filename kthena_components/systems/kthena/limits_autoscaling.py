"""Reports `autoscaling` options that Kthena rejects, and those with which nothing is scaled.

Source: Kthena v1.0.0 pkg/autoscaler; pkg/model-serving-controller/webhook/validator.go, which
rejects the autoscaler's changes, too.
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
    suggest_name,
)
from kthena_components.core.objects.object import read_object
from kthena_components.core.plan.serving_plan import RolePlan, ServingPlan
from kthena_components.core.remedies import at_most, either, remove
from kthena_components.core.spec.enums import KthenaVersion
from kthena_components.core.values.regex import regex
from kthena_components.systems.kthena.emit_autoscaling import endpoint, engine_port, policy_body
from kthena_components.systems.kthena.limits import since
from kthena_components.systems.kthena.options import (
    AutoscalingSpec,
    MetricSourceSpec,
    MetricSpec,
    RoleScalingSpec,
    metrics_of,
    options_of,
    sources_of,
    units,
    wrong,
)
from kthena_components.systems.kthena.rules.autoscaling import kthena_autoscaling_ratio
from kthena_components.systems.kthena.rules.entry_names_version_image_template import RULES
from kthena_components.systems.kthena.view import read_policy, read_serving

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
    """Check that autoscaling names roles of the serving; Kthena 1.0 scales at most two."""
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
    """Refuse metrics without a source, sources without a metric, and names given twice."""
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
            seen = f"is not a metric; the metrics are {', '.join(sorted(known))}"
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
    """Check that a metric source is a pod or Prometheus, and that the pod's port is known."""
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
            seen = f"is read from a different place than '{first}', and Kthena "
            seen += f"{plan.kthena_version} reads all metrics from one"
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
