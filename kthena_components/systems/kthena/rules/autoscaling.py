"""Checks AutoscalingPolicies and AutoscalingPolicyBindings.

Each function of POLICY_RULES is one rule.
Source: volcano-sh/kthena v1.0.0 pkg/autoscaler/webhook/autoscalingpolicy_validator.go; for bindings
v0.4.0 pkg/model-booster-controller/webhook/autoscaling_binding_validator.go.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import (
    Finding,
    advise,
    count_of,
    not_checked,
    part_of_rule,
    refuse,
    suggest,
    suggest_name,
)
from kthena_components.core.objects.object import MODEL_SERVING
from kthena_components.core.remedies import at_most, write
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import parse_quantity, read_duration
from kthena_components.core.values.read import (
    count,
    first_unknown,
    is_map,
    mapping,
    pairs,
    require_known,
    sequence,
    text,
    unknown_in,
    unknown_inside,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import known
from kthena_components.systems.kthena.view import BINDING, ONE, ROLES, SEVERAL, Policy, Scaled
from kthena_components.systems.system import Rule

# Checks the metrics of an AutoscalingPolicy, and the ratio of the roles that it scales.
#
# Source: volcano-sh/kthena v1.0.0 pkg/autoscaler/webhook/autoscalingpolicy_validator.go.


Fields = Mapping[str, Any]
_ADDRESS = regex(r"[A-Za-z][A-Za-z0-9+.-]*:|/")
"""The start of what Go's url.ParseRequestURI accepts: the CRD's format is uri."""


def kthena_autoscaling_metrics(view: Policy) -> Iterator[Finding]:
    """Each metric of an AutoscalingPolicy has its own name, a value above 0, and one source.

    The metrics of the policy apply to whole ModelServings, and to each role that has none. A role
    whose minReplicas equals maxReplicas needs none. A source is a pod or Prometheus. Its key is the
    name of a metric.

    Pass: metric waiting with targetValue 5, and metricSources.waiting.pod.
    Fail: targetValue 0; two metrics named waiting; no metric; metricSources.waitin for waiting.
    Level: mandatory; advisory for a whole ModelServing whose metric has no source, or the reverse.
    Source: volcano-sh/kthena v1.0.0 pkg/autoscaler/webhook/autoscalingpolicy_validator.go
    validateMetrics, validateDisaggregatedTarget; the CEL rules of
    pkg/apis/workload/v1alpha1/autoscalingpolicy_types.go.
    """
    stated = view.spec.get("metrics")
    require_known("spec.metrics", stated, unknown_inside(stated))
    yield from _check_metrics(stated, "spec.metrics", view.metric_name)
    for unit in view.units:
        yield from _sources(unit)
    if {ONE, SEVERAL}.intersection(view.targets) and view.has_targets and not sequence(stated):
        seen = "is missing, and a policy for whole ModelServings needs at least one"
        yield refuse("spec.metrics", seen, "write a metric with its targetValue")
    common = _names(stated, view.metric_name)
    for unit in view.units:
        if f"spec.{ROLES}." in unit.path:
            yield from _of_role(unit, common)
        elif common:
            yield from _unread(unit, common)


def _names(stated: object, key: str) -> list[object]:
    return [mapping(metric).get(key) for metric in sequence(stated)]


def _check_metrics(stated: object, path: str, key: str) -> Iterator[Finding]:
    """Check metrics with names: values above 0, and no name twice."""
    first: dict[str, int] = {}
    for index, metric in enumerate(map(mapping, sequence(stated))):
        name, value, at = metric.get(key), metric.get("targetValue"), f"{path}[{index}]"
        if gap := first_unknown(name, value):
            yield not_checked(at, gap)
        number = parse_quantity(value)
        if number is not None and number <= 0:
            seen = f"is {display(value)}, but must be more than 0"
            yield refuse(f"{at}.targetValue", seen, "write a positive number")
        if isinstance(name, str) and not unknown_in(name):
            other = first.setdefault(name, index)
            if other != index:
                seen = f"is {display(name)}, already the name of {path}[{other}]"
                yield refuse(f"{at}.{key}", seen, "remove one of them")


def _sources(unit: Scaled) -> Iterator[Finding]:
    """Check that a metric source is a pod or Prometheus, and Prometheus's address."""
    at = unit.path if f"spec.{ROLES}." in unit.path else f"{unit.path}.target"
    for name, source in pairs(unit.sources):
        path = f"{at}.metricSources.{name}"
        if not is_map(source):
            continue
        stated = [key for key in ("pod", "prometheus") if source.get(key) is not None]
        if gap := unknown_inside(source):
            yield not_checked(path, gap)
        elif len(stated) != 1:
            seen = f"has {' and '.join(stated) or 'neither pod nor prometheus'}"
            yield refuse(path, f"{seen}, but must have one of the two", "write one")
        address = mapping(source.get("prometheus")).get("serverURL")
        if isinstance(address, str) and not unknown_in(address) and not _ADDRESS.match(address):
            seen = f"is {display(address)}, which is not an address"
            remedy = "write, for example, http://prometheus.monitoring:9090"
            yield refuse(f"{path}.prometheus.serverURL", seen, remedy)


@part_of_rule
def _of_role(unit: Scaled, common: list[object]) -> Iterator[Finding]:
    """Check the metrics of one scaled role, and where each is read."""
    stated = unit.fields.get("metrics")
    bounds = [count(unit.fields.get(key), 0) for key in ("minReplicas", "maxReplicas")]
    own = _names(stated, "name")
    require_known(f"{unit.path}.metrics", stated, *bounds, *common, *own, unknown_inside(stated))
    yield from _check_metrics(stated, f"{unit.path}.metrics", "name")
    if bounds[0] == bounds[1] and bounds[1] != 0:
        return
    names = [name for name in own or common if isinstance(name, str)]
    if not (own or common):
        seen = "is missing, and neither the role nor the policy has a metric"
        yield refuse(f"{unit.path}.metrics", seen, "write a metric of the role")
    require_known(f"{unit.path}.metricSources", unit.fields.get("metricSources"))
    if not unit.sources:
        if names:
            seen = f"is missing, so nothing reads {', '.join(map(display, names))}"
            remedy = "write where each metric of the role is read"
            yield refuse(f"{unit.path}.metricSources", seen, remedy)
    else:
        for key in unit.sources:
            if key not in names:
                path = f"{unit.path}.metricSources.{key}"
                remedy = suggest_name(str(key), names, unit.sources)
                yield refuse(path, "is not a metric of the role", remedy)


def _unread(unit: Scaled, common: list[object]) -> Iterator[Finding]:
    """Report metrics of a whole ModelServing that are not read: the controller skips them."""
    target = mapping(unit.fields.get("target"))
    if "metricEndpoint" in target or first_unknown(target.get("metricSources"), *common):
        return
    path, known = f"{unit.path}.target.metricSources", {str(name) for name in common}
    for name in sorted(known - set(map(str, unit.sources))):
        seen = f"has no {display(name)}, so that metric is never read"
        yield advise(path, seen, "write a pod or prometheus for it")
    for key in unit.sources:
        if key not in known:
            remedy = suggest_name(str(key), known, unit.sources)
            yield advise(f"{path}.{key}", "is not a metric", remedy)


def kthena_autoscaling_ratio(view: Policy) -> Iterator[Finding]:
    """A ratio of an AutoscalingPolicy is between two of its roles, and within their bounds.

    minRatio is at least 0 and at most maxRatio, which is more than 0. Both roles can be scaled to
    zero, or neither.

    Pass: prefill 1 to 8, decode 1 to 16, minRatio 250m, maxRatio 1.
    Fail: numeratorRole decode twice; minRatio 2, maxRatio 1; prefill at least 4 of at most 2 decode
    with maxRatio 1.
    Level: mandatory.
    Source: volcano-sh/kthena v1.0.0 pkg/autoscaler/webhook/autoscalingpolicy_validator.go
    validateDisaggregatedTarget.
    """
    target, path = mapping(view.spec.get(ROLES)), f"spec.{ROLES}.ratioConstraint"
    ratio = target.get("ratioConstraint")
    if not view.has_targets or ratio is None:
        return
    roles = target.get("roles")
    require_known(path, ratio, unknown_inside(ratio), roles)
    fields = mapping(ratio)
    names = [text(fields.get(f"{side}Role"), "") for side in ("numerator", "denominator")]
    if not is_map(ratio) or None in names:
        return
    if names[0] == names[1]:
        seen = f"is {display(names[1])} like numeratorRole, but a ratio needs two roles"
        yield refuse(f"{path}.denominatorRole", seen, "write another role")
    found = [mapping(mapping(roles).get(str(name))) for name in names]
    for side, name in zip(("numerator", "denominator"), names, strict=True):
        if name not in mapping(roles):
            seen = f"is {display(name)}, which is not a role of the policy"
            remedy = suggest(str(name), map(str, mapping(roles)))
            yield refuse(f"{path}.{side}Role", seen, remedy)
    yield from _within(path, fields, found if all(n in mapping(roles) for n in names) else [])


def _within(path: str, fields: Fields, roles: list[Fields]) -> Iterator[Finding]:
    """Check the bounds of a ratio, and whether the replicas of the roles can keep it."""
    least, most = (parse_quantity(fields.get(key)) for key in ("minRatio", "maxRatio"))
    if least is None or most is None:
        return
    if least > most:
        seen = (
            f"is {display(fields['minRatio'])}, more than maxRatio, {display(fields['maxRatio'])}"
        )
        yield refuse(f"{path}.minRatio", seen, "write at most maxRatio")
    keys = ("minReplicas", "maxReplicas")
    counts = [known(count(role.get(key), 0), path) for role in roles for key in keys]
    bounds = [bound for bound in counts if bound is not None]
    if least < 0 or most <= 0:
        if roles:
            seen = "has a negative minRatio, or a maxRatio that is not more than 0"
            yield refuse(path, seen, "write positive numbers")
    elif bounds and len(bounds) == len(counts):
        low, high, below, above = bounds
        if (low == 0) != (below == 0):
            seen = f"relates roles of which one has minReplicas 0 and the other {low or below}"
            yield refuse(path, seen, "let both be scaled to zero, or neither")
        if (above > 0 and low > most * above) or (below > 0 and high < least * below):
            seen = (
                f"cannot be kept by {low} to {count_of(high, 'replica')} of one role and "
                f"{below} to {above} of "
                "the other"
            )
            yield refuse(path, seen, "write wider bounds, or another ratio")


_MOST_ROLES, _LONGEST = 2, 1800
"""Maximum roles of a policy, and seconds of a period."""


def kthena_autoscaling_target(view: Policy) -> Iterator[Finding]:
    """An AutoscalingPolicy has exactly one target, a ModelServing that it names.

    It scales one ModelServing, several, or one or two roles of one. minReplicas of a role is at
    most maxReplicas. Before 1.0, an AutoscalingPolicyBinding names the target.

    Pass: homogeneousTarget with targetRef.name llama, minReplicas 1, maxReplicas 4.
    Fail: no target; two; targetRef.kind Deployment; a role with minReplicas 4 and maxReplicas 2.
    Level: mandatory; advisory for minReplicas of a whole ModelServing, which no one checks.
    Source: volcano-sh/kthena v1.0.0 pkg/autoscaler/webhook/autoscalingpolicy_validator.go
    validateTarget, validateDisaggregatedTarget.
    """
    if not view.has_targets:
        return
    require_known("spec", view.object.body.get("spec"), view.spec.get(""))
    if len(view.targets) != 1:
        binding = view.object.group_kind == BINDING
        known = "homogeneousTarget or heterogeneousTarget"
        known = known if binding else f"homogeneousTarget, heterogeneousTarget or {ROLES}"
        has = f"has {' and '.join(view.targets)}" if view.targets else "has no target"
        yield refuse("spec", f"{has}, but must have exactly one", f"write {known}")
    roles = mapping(view.spec.get(ROLES)).get("roles")
    if ROLES in view.targets and roles is not None and not unknown_in(roles):
        number = len(mapping(roles))
        if not 1 <= number <= _MOST_ROLES:
            seen = f"has {count_of(number, 'role')}, but a policy scales 1 or 2"
            remedy = "write a policy for each pair" if number else "add a role"
            yield refuse(f"spec.{ROLES}.roles", seen, remedy)
    reported = set[str]()
    for unit in view.units:
        if unit.ref_path not in reported:
            yield from _ref(unit)
        reported.add(unit.ref_path)
        if unit.role == "" and f"spec.{ROLES}." in unit.path:
            yield refuse(unit.path, "has no name", "write the name of a role")
        yield from _bounds(unit)


@part_of_rule
def _ref(unit: Scaled) -> Iterator[Finding]:
    kind, name, path = unit.ref.get("kind"), text(unit.ref.get("name"), ""), unit.ref_path
    require_known(path, kind, name)
    if isinstance(kind, str) and kind not in ("", MODEL_SERVING[1]):
        seen = f"is {display(kind)}, but Kthena only scales ModelServings"
        yield refuse(f"{path}.kind", seen, write("ModelServing", "write ModelServing"))
    if name == "":
        yield refuse(f"{path}.name", "is missing", "write the name of a ModelServing")


@part_of_rule
def _bounds(unit: Scaled) -> Iterator[Finding]:
    path, stated = f"{unit.path}.minReplicas", ("minReplicas", "maxReplicas")
    least, most = (known(count(unit.fields.get(key)), path) for key in stated)
    if least is not None and most is not None and least > most:
        seen = f"is {least}, more than maxReplicas, {most}"
        give = refuse if f"spec.{ROLES}." in path else advise
        yield give(path, seen, at_most(most))


def kthena_autoscaling_behavior(view: Policy) -> Iterator[Finding]:
    """The periods and windows of an AutoscalingPolicy are durations of 0 to 30 minutes.

    Pass: period 15s; stabilizationWindow 5m; 1m30s.
    Fail: period 31m; -1s; 15, without a unit.
    Level: mandatory.
    Source: volcano-sh/kthena v1.0.0 pkg/autoscaler/webhook/autoscalingpolicy_validator.go
    validateScaleDownBehavior, validateStablePolicy, validatePanicPolicy.
    """
    behavior = mapping(view.spec.get("behavior"))
    up = mapping(behavior.get("scaleUp"))
    stable = ("period", "stabilizationWindow")
    for path, fields, keys in (
        ("scaleDown", behavior.get("scaleDown"), stable),
        ("scaleUp.stablePolicy", up.get("stablePolicy"), stable),
        ("scaleUp.panicPolicy", up.get("panicPolicy"), ("period", "panicModeHold")),
    ):
        for key, stated in pairs(fields):
            if key in keys:
                yield from _duration(f"spec.behavior.{path}.{key}", stated)


@part_of_rule
def _duration(path: str, stated: object) -> Iterator[Finding]:
    """Check a duration of Go's form, from 0 to 30 minutes."""
    require_known(path, stated)
    if isinstance(stated, str):
        seconds = read_duration(stated)
        if seconds is None:
            seen = f"is {display(stated)}, which is not a duration"
            yield refuse(path, seen, "write, for example, 15s or 1m30s")
        elif not 0 <= seconds <= _LONGEST:
            seen = f"is {display(stated)}, but must be from 0 to 30 minutes"
            yield refuse(path, seen, write("30m", "write at most 30m"))


POLICY_RULES: tuple[Rule[Policy], ...] = (
    kthena_autoscaling_target,
    kthena_autoscaling_metrics,
    kthena_autoscaling_ratio,
    kthena_autoscaling_behavior,
)
BINDING_RULES: tuple[Rule[Policy], ...] = (kthena_autoscaling_target,)
