"""The policies: how Pulumi hands resources over. The rules are in the package.

Each policy makes Pulumi decode every resource once more, so all rules stand behind one dispatcher.
Two policies of each kind call it, because a policy has one level: one refuses, one advises, and
what was judged for the first is kept for the second. Nothing here raises: an exception would end
the whole operation, whatever the level.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache, partial
from threading import local
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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

from kthena_components.core.findings import Finding, Level, fault
from kthena_components.core.plan.report import read_shape
from kthena_components.core.rules.serving import run_checks
from kthena_components.judge.levels import (
    LIMITS,
    SETTINGS,
    SettingError,
    Settings,
    parse_settings,
)
from kthena_components.judge.manifest import has_rules, is_compared, judge_manifest
from kthena_components.judge.secrecy import judge_sealed
from kthena_components.judge.stack import Bodies, judge_stack, owner_of
from kthena_components.judge.waivers import FIELD, listed, waive

if TYPE_CHECKING or __package__:
    from policies.marks import NO_MARKS, has_marks, keep_marks, plain, read_props
else:  # started by Pulumi, from a folder of any name
    from marks import NO_MARKS, has_marks, keep_marks, plain, read_props

KUBERNETES = "kubernetes"
COMPONENTS = frozenset(f"kthena:index:{name}" for name in ("ModelServing", "ServingGroup", "Role"))
"""Components that register what they deploy as rows (core/plan/report.py)."""
UNKNOWNS = re.compile("|".join(v for k, v in vars(proxy).items() if k.startswith("UNKNOWN_")))

REFUSED = frozenset({Level.MANDATORY})
"""Levels that the policies that refuse report; those that advise report the others."""
ADVISED = frozenset(Level) - REFUSED
CONFIG = "policy-config"
"""Ends what is said of a config that cannot be used, in place of a rule."""

TOGETHER = frozenset({"serving-groups", "serving-groups-advice"})
"""Policies that see all objects of a stack."""
LED_BY = {"serving-advice": "serving-rules", "serving-groups-advice": "serving-groups"}
"""Policies that tell what another one does not, and that one."""

Body = dict[str, Any]
keep_marks()  # whoever takes POLICIES into a pack of their own needs them as well
_last = local()
_told: set[tuple[str, str]] = set()


def judge_resource(
    resource_type: str,
    props: Any,
    versions: Mapping[str, str] = MappingProxyType({}),
    today: date | None = None,
) -> list[Finding]:
    """Judge one resource by every rule that applies to its type, and waive what it waives.

    What is sealed in the properties is judged, and never shown.
    """
    if not is_judged(resource_type):
        return []
    if resource_type in COMPONENTS:
        return judge_sealed(partial(_judge_component, today=today), plain(props))
    judge = partial(judge_manifest, today=today, versions=versions)
    return judge_sealed(judge, {**plain(props), **_identity(resource_type)})


def _judge_component(fields: Body, today: date | None) -> list[Finding]:
    found = run_checks(read_shape(fields))
    if today is None:
        return found
    # What is wrong with the waivers, the component itself said.
    return waive(found, listed(fields.get(FIELD)), today)[: len(found)]


@cache
def is_judged(resource_type: str) -> bool:
    """Tell whether there are rules for a type.

    None are for a patch: its type is `DeploymentPatch`, and it shows a part of an object only.
    """
    if not resource_type.startswith(f"{KUBERNETES}:"):
        return resource_type in COMPONENTS
    return has_rules(_identity(resource_type))


def _identity(resource_type: str) -> Body:
    """Read apiVersion and kind from a type such as `kubernetes:apps/v1:StatefulSet`."""
    _, version, kind = (*resource_type.split(":"), "", "")[:3]
    return {"apiVersion": version.removeprefix("core/"), "kind": kind}


def validate_resource(
    policy: str, levels: frozenset[Level], args: ResourceValidationArgs, report: ReportViolation
) -> None:
    """Report what was found in one resource and weighs so much."""
    settings = _settings(policy, args.urn, args.get_config(), report)
    if policy in LED_BY and is_judged(args.resource_type) and not has_marks(args.props):
        _tell_once(policy, NO_MARKS, report)
    judge = partial(_judge_once, args, settings.versions)
    for finding in settings.levels.apply(_safely(judge)):
        if finding.level in levels:
            report(_text(finding), None)


def _settings(
    policy: str, subject: str, config: Mapping[str, Any], report: ReportViolation
) -> Settings:
    """Read a policy's config. That of a policy that refuses holds for the one that advises too.

    Else a finding could be told by both, or by none. What is wrong with a config is told once, and
    then rules weigh what they say themselves.
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
            problem = f"that of {leader} holds for both policies"
        settings = led
    if problem:
        _tell_once(policy, f"the config of {policy} is not used: {problem}", report)
    return settings


def _tell_once(policy: str, problem: str, report: ReportViolation) -> None:
    if (policy, problem) not in _told:
        _told.add((policy, problem))
        report(f"{problem}. [{CONFIG}]", None)


def _text(finding: Finding) -> str:
    """Write a finding without the texts that stand for unknown values: nobody can read them."""
    return UNKNOWNS.sub("<output>", str(finding))


def today() -> date:
    """Give the day by which waivers are judged: that of UTC, so that it is everybody's."""
    return datetime.now(UTC).date()


def _judge_once(args: ResourceValidationArgs, versions: Mapping[str, str]) -> list[Finding]:
    """Judge a resource, or give what was found when the other policy asked for the same one."""
    if not is_judged(args.resource_type):
        return []
    asked = (args.resource_type, read_props(args.props), versions, today())
    if getattr(_last, "asked", None) != asked:
        _last.found = judge_resource(*asked)
        _last.asked = asked
    found: list[Finding] = _last.found
    return found


def _safely(judge: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """Judge, and turn a fault of the rules themselves into one more thing that was not checked."""
    try:
        return list(judge())
    except Exception as error:  # noqa: BLE001 - a mistake of ours must not end an operation
        return [fault("judging", error)]


def validate_groups(
    policy: str, levels: frozenset[Level], args: StackValidationArgs, report: ReportViolation
) -> None:
    """Report on what no object shows by itself: engines of several objects, gangs, references."""
    settings = _settings(policy, "", args.get_config(), report)
    for owner, finding in _safely_in_stack(args, settings):
        for weighed in settings.levels.apply([finding]):
            if weighed.level in levels:
                report(_text(weighed), owner or None)


def _safely_in_stack(args: StackValidationArgs, by: Settings) -> list[tuple[str, Finding]]:
    """Judge a stack, or give what was found when the other policy asked for the same one.

    Each finding is given with the URN of its object, in whose coordinates it then stands.
    """
    limits = by.gpu_budget, by.gpu_types, by.versions
    asked = (_clusters(args), today(), limits)
    if getattr(_last, "stack", None) != asked:
        _last.in_stack = [
            (owner, replace(finding, path=finding.path.removeprefix(owner).removeprefix(".")))
            for bodies in asked[0]
            for finding in _safely(partial(_judge_cluster, bodies, by))
            for owner in [owner_of(finding, bodies)]
        ]
        _last.stack = asked
    found: list[tuple[str, Finding]] = _last.in_stack
    return found


def _judge_cluster(bodies: Bodies, by: Settings) -> list[Finding]:
    judge = partial(
        judge_stack,
        today=today(),
        budget=by.gpu_budget,
        gpu_types=by.gpu_types,
        versions=by.versions,
    )
    return judge_sealed(judge, bodies)


def _clusters(args: StackValidationArgs) -> list[dict[str, Body]]:
    """Give the objects that are compared, and ConfigMaps, by URN; each provider's by themselves."""
    clusters: dict[str, dict[str, Body]] = {}
    for resource in args.resources:
        identity = _identity(resource.resource_type)
        kubernetes = resource.resource_type.startswith(f"{KUBERNETES}:")
        if kubernetes and (is_compared(identity) or identity["kind"] == "ConfigMap"):
            cluster = resource.provider.urn if resource.provider else ""
            body = {**read_props(resource.props), **identity}
            clusters.setdefault(cluster, {})[resource.urn] = body
    return list(clusters.values())


def _resource_policy(
    name: str, description: str, level: EnforcementLevel, levels: frozenset[Level]
) -> Policy:
    validate = partial(validate_resource, name, levels)
    schema = PolicyConfigSchema(properties=dict(SETTINGS))
    return ResourceValidationPolicy(name, description, validate, level, schema)


def _stack_policy(
    name: str, description: str, level: EnforcementLevel, levels: frozenset[Level]
) -> Policy:
    validate = partial(validate_groups, name, levels)
    schema = PolicyConfigSchema(properties={**SETTINGS, **LIMITS})
    return StackValidationPolicy(name, description, validate, level, schema)


POLICIES: list[Policy] = [
    _resource_policy(
        "serving-rules",
        "An engine's ranks are its GPUs, and the cluster would let the object in.",
        EnforcementLevel.MANDATORY,
        REFUSED,
    ),
    _resource_policy(
        "serving-advice",
        "Worth a look, or not checked and why.",
        EnforcementLevel.ADVISORY,
        ADVISED,
    ),
    _stack_policy(
        "serving-groups",
        "The objects of one engine fit together.",
        EnforcementLevel.MANDATORY,
        REFUSED,
    ),
    _stack_policy(
        "serving-groups-advice",
        "Worth a look where objects meet, or not checked and why.",
        EnforcementLevel.ADVISORY,
        ADVISED,
    ),
]
