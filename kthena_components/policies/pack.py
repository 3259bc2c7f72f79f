"""The policies, which pass Pulumi's resources to the rules of the package.

Pulumi decodes every resource again for each policy, so there are only two policies of each kind. A
policy has one level: the first policy reports mandatory findings, and the second one the others,
from a cached result. Nothing here raises, because an exception would end the whole operation,
whatever the level.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from threading import local
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
    proxy,
)

from kthena_components.checker.check_cluster_objects import (
    Bodies,
    check_objects_together,
    memory_unchecked_in,
)
from kthena_components.checker.cluster_rules import owner_of
from kthena_components.checker.enforcement import ENFORCED, LED_BY, TOGETHER
from kthena_components.checker.levels import (
    LIMITS,
    SETTINGS,
    SettingError,
    Settings,
    parse_settings,
)
from kthena_components.checker.manifest import is_compared
from kthena_components.checker.secrecy import check_sealed
from kthena_components.core.findings import Finding, Level, fault, today
from kthena_components.core.objects.object import pulumi_identity
from kthena_components.policies.resource_checks import (
    KUBERNETES,
    advice_of_component,
    check_once,
    check_placement,
    is_checked,
    kept_of,
    sent,
    unchecked_memory_of,
)
from kthena_components.policies.secret_marks_and_stack_gpu import (
    NO_MARKS,
    gpus_of_stack,
    has_marks,
    keep_gpu,
    keep_marks,
    read_props,
)

UNKNOWNS = re.compile("|".join(v for k, v in vars(proxy).items() if k.startswith("UNKNOWN_")))

REFUSED = frozenset({Level.MANDATORY})
"""Levels that the mandatory policies report. The advisory policies report the others."""
ADVISED = frozenset(Level) - REFUSED
CONFIG = "policy-config"
"""The name in brackets after an error in a policy's config, in place of a rule."""

Body = dict[str, Any]
keep_marks()  # here, so that it also works in another pack that imports POLICIES
keep_gpu()
_last = local()
_reported: set[tuple[str, str]] = set()
_alone: list[Settings] = []
"""The settings by which single resources were checked last. Empty: none was."""


def validate_resource(
    policy: str, levels: frozenset[Level], args: ResourceValidationArgs, report: ReportViolation
) -> None:
    """Report the findings of some levels in one resource."""
    settings = _settings(policy, args.urn, args.get_config(), report)
    _alone[:] = [settings]
    if policy in LED_BY and is_checked(args.resource_type) and not has_marks(args.props):
        _tell_once(policy, NO_MARKS, report)
    check = partial(check_once, args, settings)
    for finding in settings.levels.apply(_safely(check)):
        if finding.level not in levels:
            continue
        advice = advice_of_component(args.urn, args.props, finding)
        if advice is not None:
            report(_text(advice), None)


def _settings(
    policy: str, subject: str, config: Mapping[str, Any], report: ReportViolation
) -> Settings:
    """Read a policy's config. An advisory policy uses the config of its mandatory counterpart.

    Otherwise both policies, or none, could report a finding. An error in the config is reported
    once, and the rules then keep their own levels.
    """
    problem = ""
    try:
        settings = parse_settings(config, together=policy in TOGETHER)
    except SettingError as error:
        settings, problem = Settings(), str(error)
    leader, (asked, led) = LED_BY.get(policy), getattr(_last, "led", ("", settings))
    _last.led = ("", settings) if leader else (f"{policy} {subject}", settings)
    if leader and asked == f"{leader} {subject}":
        if config and led != settings and not problem:
            problem = f"the config of {leader} applies to both policies"
        settings = led
    if problem:
        _tell_once(policy, f"the config of {policy} is not used: {problem}", report)
    return settings if settings.gpus else replace(settings, gpus=gpus_of_stack())


def _tell_once(policy: str, problem: str, report: ReportViolation) -> None:
    if (policy, problem) not in _reported:
        _reported.add((policy, problem))
        report(f"{problem}. [{CONFIG}]", None)


def _text(finding: Finding) -> str:
    """Write a finding. Replace the SDK's random strings for unknown values by `<output>`."""
    return UNKNOWNS.sub("<output>", str(finding))


def _safely(check: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Run a check. An exception in it becomes a finding that something was not checked."""
    try:
        return list(check())
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not end an operation
        return [fault("checking", error)]


def validate_groups(
    policy: str, levels: frozenset[Level], args: StackValidationArgs, report: ReportViolation
) -> None:
    """Report findings over several objects: engines of several objects, gangs, references."""
    settings = _settings(policy, "", args.get_config(), report)
    for owner, finding in _safely_in_stack(args, settings):
        for weighed in settings.levels.apply([finding]):
            if weighed.level in levels:
                report(_text(weighed), owner or None)


def _safely_in_stack(args: StackValidationArgs, by: Settings) -> list[tuple[str, Finding]]:
    """Check a stack, or return the cached findings of the other policy.

    Each finding comes with the URN of its object, and its path is relative to the object.
    """
    limits = by.gpu_budget, by.gpu_types, by.versions, by.gpus, by.inventory
    asked = (sent(args.resources), today(), limits, [*_alone])
    if getattr(_last, "stack", None) != asked:
        clusters = _clusters(args)
        _last.in_stack = [
            (owner, replace(finding, path=finding.path.removeprefix(owner).removeprefix(".")))
            for bodies in clusters
            for finding in _safely(partial(_check_cluster, bodies, by))
            for owner in [owner_of(finding, bodies)]
        ]
        if by.inventory:
            check = partial(_check_placement, clusters, by.inventory)
            _last.in_stack += [("", finding) for finding in _safely(check)]
        for alone in _alone:
            check = partial(_check_memory, clusters, alone)
            _last.in_stack += [("", finding) for finding in _safely(check)]
        _last.stack = asked
    found: list[tuple[str, Finding]] = _last.in_stack
    return found


def _check_cluster(bodies: Bodies, by: Settings) -> list[Finding]:
    """Check all objects of a stack together by the pack's settings; secrets stay hidden."""
    check = partial(
        check_objects_together,
        today=today(),
        budget=by.gpu_budget,
        gpu_types=by.gpu_types,
        versions=by.versions,
        gpus=by.gpus,
        checked=kept_of(bodies, by),
    )
    return check_sealed(check, bodies)


def _check_placement(clusters: list[dict[str, Body]], path: str) -> list[Finding]:
    def check(bodies: Bodies) -> list[Finding]:
        split = [{urn: bodies[urn] for urn in cluster} for cluster in clusters]
        return list(check_placement(split, path, today()))

    return check_sealed(check, {urn: body for each in clusters for urn, body in each.items()})


def _check_memory(clusters: list[dict[str, Body]], alone: Settings) -> list[Finding]:
    def check(bodies: Bodies) -> list[Finding]:
        known = unchecked_memory_of(bodies, alone)
        return alone.levels.apply(memory_unchecked_in(bodies.values(), alone.gpus, known))

    return check_sealed(check, {urn: body for each in clusters for urn, body in each.items()})


def _clusters(args: StackValidationArgs) -> list[dict[str, Body]]:
    """Return, for each provider, the ConfigMaps and the objects to compare, by URN."""
    clusters: dict[str, dict[str, Body]] = {}
    for resource in args.resources:
        identity = pulumi_identity(resource.resource_type)
        kubernetes = resource.resource_type.startswith(f"{KUBERNETES}:")
        if kubernetes and (is_compared(identity) or identity["kind"] == "ConfigMap"):
            cluster = resource.provider.urn if resource.provider else ""
            body = {**read_props(resource.props), **identity}
            clusters.setdefault(cluster, {})[resource.urn] = body
    return list(clusters.values())


def _resource_policy(name: str, description: str, levels: frozenset[Level]) -> Policy:
    level = EnforcementLevel(ENFORCED[name])
    validate = partial(validate_resource, name, levels)
    schema = PolicyConfigSchema(properties=dict(SETTINGS))
    return ResourceValidationPolicy(name, description, validate, level, schema)


def _stack_policy(name: str, description: str, levels: frozenset[Level]) -> Policy:
    level = EnforcementLevel(ENFORCED[name])
    validate = partial(validate_groups, name, levels)
    schema = PolicyConfigSchema(properties={**SETTINGS, **LIMITS})
    return StackValidationPolicy(name, description, validate, level, schema)


POLICIES: list[Policy] = [
    _resource_policy(
        "serving-rules",
        "Engines have as many ranks as GPUs, and the cluster accepts the object.",
        REFUSED,
    ),
    _resource_policy("serving-advice", "Advice:", ADVISED),
    _stack_policy("serving-groups", "The objects of one engine fit together.", REFUSED),
    _stack_policy("serving-groups-advice", "Advice:", ADVISED),
]
