"""The policies: how Pulumi hands resources over. The rules are in kthena_components.core.checks.

Each policy makes Pulumi decode every resource once more, so all rules stand behind one dispatcher.
Two policies call it, because a policy has one level. Nothing here raises: an exception would end
the whole operation, whatever the level.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from threading import local
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
    proxy,
)

from kthena_components.backends.readers import has_rules, is_compared, judge_manifest, read_held
from kthena_components.backends.serving_groups import read_group
from kthena_components.core.checks import run_checks
from kthena_components.core.checks.whole_stack import judge_stack
from kthena_components.core.findings import Finding, Level
from kthena_components.core.report import read_shape

KUBERNETES = "kubernetes"
COMPONENTS = frozenset(f"kthena:index:{name}" for name in ("ModelServing", "ServingGroup", "Role"))
"""Components that register what they deploy as rows (core/report.py)."""
UNKNOWNS = re.compile("|".join(v for k, v in vars(proxy).items() if k.startswith("UNKNOWN_")))

Body = dict[str, Any]
_last = local()


def plain(value: Any) -> Any:
    """Take the policy SDK's proxies off a value, leaving the texts that stand for unknowns.

    A proxy raises as soon as an unknown value is touched, so its content is taken whole.
    """
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in _content(value).items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in _content(value)]
    return value


def _content(value: Any) -> Any:
    return value if isinstance(value, dict | list | tuple) else value["__target"]


def judge_resource(resource_type: str, props: Any) -> list[Finding]:
    """Judge one resource by every rule that applies to its type."""
    if resource_type in COMPONENTS:
        return run_checks(read_shape(plain(props)))
    if is_judged(resource_type):
        return judge_manifest({**plain(props), **_identity(resource_type)})
    return []


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


def validate_mandatory(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report what must not be applied."""
    _report(args, report, Level.MANDATORY)


def validate_advisory(args: ResourceValidationArgs, report: ReportViolation) -> None:
    """Report what is worth a look, and what could not be judged."""
    _report(args, report, Level.ADVISORY, Level.UNKNOWN)


def _report(args: ResourceValidationArgs, report: ReportViolation, *levels: Level) -> None:
    for finding in _safely(partial(_judge_once, args)):
        if finding.level in levels:
            report(_text(finding), None)


def _text(finding: Finding) -> str:
    """Write a finding without the texts that stand for unknown values: nobody can read them."""
    return UNKNOWNS.sub("<output>", str(finding))


def _judge_once(args: ResourceValidationArgs) -> list[Finding]:
    """Judge a resource, or give what was found when the other policy asked for the same one."""
    if not is_judged(args.resource_type):
        return []
    asked = (args.resource_type, plain(args.props))
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
        seen = f"was not checked, because a rule failed with {type(error).__name__}: {error}"
        return [Finding(path="", seen=seen, rule="rule-fault", level=Level.UNKNOWN)]


def validate_groups(args: StackValidationArgs, report: ReportViolation) -> None:
    """Report on what no object shows by itself: engines of several objects, gangs, references."""
    for bodies in _clusters(args):
        for finding in _safely(partial(_judge_groups, bodies)):
            owner = _owner(finding, bodies)
            message = _text(finding).removeprefix(f"{owner}.")
            if finding.level is Level.MANDATORY:
                report(message, owner or None)
            elif finding.level is Level.UNKNOWN:
                # This policy's level would make it stop something; Pulumi shows stderr as it is.
                sys.stderr.write(f"{owner.rpartition('::')[2] or 'serving-groups'}: {message}\n")


def _owner(finding: Finding, urns: Iterable[str]) -> str:
    """Find the URN that a path begins with; none when it is about no resource."""
    owners = (urn for urn in urns if finding.path.startswith(f"{urn}."))
    return max(owners, key=len, default="")


def _judge_groups(
    bodies: Mapping[str, Body], budget: int | None = None, gpu_types: Sequence[str] = ()
) -> Iterator[Finding]:
    """Judge what no object shows by itself, each finding below the URN of the object to change."""
    groups = read_group(bodies.values(), list(bodies))
    findings = [finding for facts in groups for finding in run_checks(facts)]
    # Pods of a gang may belong to another stack, such as those of a Role that is used by itself.
    held = {i: held for i, body in enumerate(bodies.values()) if (held := read_held(body))}
    findings += judge_stack(
        list(bodies.values()),
        list(bodies),
        held=held,
        budget=budget,
        gpu_types=gpu_types,
        complete=False,
    )
    if not findings:
        return
    alone = (finding for body in bodies.values() for finding in judge_manifest(body))
    said = {(finding.rule, finding.seen) for finding in alone}
    yield from (finding for finding in findings if (finding.rule, finding.seen) not in said)


def _clusters(args: StackValidationArgs) -> Iterable[dict[str, Body]]:
    """Give the objects that may belong to a group by their URN, those of each provider together."""
    clusters: dict[str, dict[str, Body]] = {}
    for resource in args.resources:
        identity = _identity(resource.resource_type)
        if resource.resource_type.startswith(f"{KUBERNETES}:") and is_compared(identity):
            cluster = resource.provider.urn if resource.provider else ""
            body = {**plain(resource.props), **identity}
            clusters.setdefault(cluster, {})[resource.urn] = body
    return clusters.values()


POLICIES: list[Policy] = [
    ResourceValidationPolicy(
        name="serving-rules",
        description="An engine's ranks are its GPUs, and the cluster would let the object in.",
        validate=validate_mandatory,
        enforcement_level=EnforcementLevel.MANDATORY,
    ),
    ResourceValidationPolicy(
        name="serving-advice",
        description="Worth a look, or not checked and why.",
        validate=validate_advisory,
        enforcement_level=EnforcementLevel.ADVISORY,
    ),
    StackValidationPolicy(
        name="serving-groups",
        description="The objects of one engine fit together.",
        validate=validate_groups,
        enforcement_level=EnforcementLevel.MANDATORY,
    ),
]
