"""The policies: one dispatcher in front of all rules, since each policy costs a deserialisation.

Rules live in kthena_components.core.checks; here is only how Pulumi hands resources over. Nothing
here raises: what cannot be read cannot be judged.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

from kthena_components.backends.readers import judge_manifest
from kthena_components.backends.workloads import read_group
from kthena_components.core.checks import run_checks
from kthena_components.core.findings import Finding, Level
from kthena_components.core.report import read_shape

KUBERNETES = "kubernetes:"
SERVING = "kthena:index:ModelServing"


def plain(value: Any) -> Any:
    """Take the policy SDK's proxies off a value, leaving the texts that stand for unknowns."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in _target(value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in _target(value)]
    return value


def _target(value: Any) -> Any:
    """Reach behind a proxy, which raises as soon as an unknown value is touched."""
    return value if isinstance(value, dict | list) else value["__target"]


def judge_resource(resource_type: str, props: Any) -> list[Finding]:
    """Judge one resource by every rule that applies to its kind."""
    if resource_type.startswith(KUBERNETES):
        body = plain(props)
        return judge_manifest({**_identity(resource_type), **body})
    if resource_type == SERVING:
        return run_checks(read_shape(plain(props)))
    return []


def _identity(resource_type: str) -> dict[str, str]:
    """Read apiVersion and kind from a type token: `kubernetes:apps/v1:StatefulSet`."""
    _, version, kind = (resource_type.split(":") + ["", ""])[:3]
    return {"apiVersion": version.removeprefix("core/"), "kind": kind}


def _report(findings: Sequence[Finding], report: ReportViolation, levels: set[Level]) -> None:
    for finding in findings:
        if finding.level in levels:
            report(str(finding), None)


def validate_mandatory(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report what must not be applied."""
    _report(judge_resource(args.resource_type, args.props), report, {Level.MANDATORY})


def validate_advisory(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report what is worth a look, and what could not be judged."""
    levels = {Level.ADVISORY, Level.UNKNOWN}
    _report(judge_resource(args.resource_type, args.props), report, levels)


def validate_groups(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report on engines whose entry and workers are objects of their own."""
    bodies = list(_bodies(args))
    for facts in read_group(bodies):
        for finding in run_checks(facts):
            if finding.level is Level.MANDATORY:
                report(str(finding.under(f"group of '{facts.name}'")), None)


def _bodies(args: StackValidationArgs) -> Iterator[dict[str, Any]]:
    for resource in args.resources:
        token = str(resource.resource_type)
        if token.startswith(KUBERNETES) and token.endswith((":StatefulSet", ":PodGroup")):
            yield {**_identity(token), **plain(resource.props)}


POLICIES: list[Policy] = [
    ResourceValidationPolicy(
        name="serving-rules",
        description="Ranks equal GPUs, names fit, and what the API server would refuse is refused here.",
        validate=validate_mandatory,
        enforcement_level=EnforcementLevel.MANDATORY,
    ),
    ResourceValidationPolicy(
        name="serving-advice",
        description="What is worth a look, and what could not be judged and why.",
        validate=validate_advisory,
        enforcement_level=EnforcementLevel.ADVISORY,
    ),
    StackValidationPolicy(
        name="serving-groups",
        description="Entry and workers of one engine, which are objects of their own, fit together.",
        validate=validate_groups,
        enforcement_level=EnforcementLevel.MANDATORY,
    ),
]
