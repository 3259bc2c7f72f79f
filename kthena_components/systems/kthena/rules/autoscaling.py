"""Checks AutoscalingPolicies and AutoscalingPolicyBindings.

Each function of POLICY_RULES is one rule.
Source: volcano-sh/kthena v1.0.0 pkg/autoscaler/webhook/autoscalingpolicy_validator.go; for bindings
v0.4.0 pkg/model-booster-controller/webhook/autoscaling_binding_validator.go.
"""

from collections.abc import Iterator

from kthena_components.core.findings import Finding, advise, part_of_rule, refuse
from kthena_components.core.objects.object import MODEL_SERVING
from kthena_components.core.remedies import at_most, write
from kthena_components.core.values.display import display
from kthena_components.core.values.quantity import read_duration
from kthena_components.core.values.read import (
    count,
    mapping,
    pairs,
    require_known,
    text,
    unknown_in,
)
from kthena_components.core.values.unknown import known
from kthena_components.systems.kthena.rules.autoscaling_metrics import (
    kthena_autoscaling_metrics,
    kthena_autoscaling_ratio,
)
from kthena_components.systems.kthena.view_autoscaling import BINDING, ROLES, Policy, Scaled
from kthena_components.systems.system import Rule

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
            seen = f"has {number} roles, but a policy scales 1 or 2"
            yield refuse(f"spec.{ROLES}.roles", seen, "write a policy for each pair")
    told = set[str]()
    for unit in view.units:
        if unit.ref_path not in told:
            yield from _ref(unit)
        told.add(unit.ref_path)
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
    require_known(path, stated)
    if isinstance(stated, str):
        seconds = read_duration(stated)
        if seconds is None:
            seen = f"is {display(stated)}, which is no duration"
            yield refuse(path, seen, "write for example 15s or 1m30s")
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
