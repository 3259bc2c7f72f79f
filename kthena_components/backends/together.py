"""What no object shows by itself: engines of several objects, gangs, references. Pure."""

from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import Any

from kthena_components.backends.readers import has_rules, judge_manifest, judged_elsewhere
from kthena_components.backends.workloads import read_group
from kthena_components.core.checks import run_checks
from kthena_components.core.checks.waivers import Stated, annotated, read_waiver, unused, waive
from kthena_components.core.checks.whole_stack import judge_stack
from kthena_components.core.findings import Finding

Bodies = Mapping[str, Mapping[str, Any]]
"""Objects of one cluster by the name that the caller gives them, which begins every path."""


def judge_together(bodies: Bodies, today: date | None = None) -> list[Finding]:
    """Judge objects of one cluster by what they show only together.

    What an object shows by itself is not said again. Each finding stands below the name of the
    object to change, and is waived there.

    Args:
        bodies: The objects. Pods of a gang may be missing, such as those of another stack.
        today: The day by which waivers are judged; none is heeded if left out.
    """
    groups = read_group(bodies.values(), list(bodies))
    findings = [finding for facts in groups for finding in run_checks(facts)]
    findings += judge_stack(list(bodies.values()), list(bodies), complete=False)
    if findings:
        alone = (finding for body in bodies.values() for finding in judge_manifest(body))
        said = {(finding.rule, finding.seen) for finding in alone}
        findings = [f for f in findings if (f.rule, f.seen) not in said]
    stated = {name: found for name, body in bodies.items() if (found := annotated(body, name))}
    return findings if today is None or not stated else _waived(findings, bodies, stated, today)


def owner_of(finding: Finding, names: Iterable[str]) -> str:
    """Find the name that a path begins with; none when it is about no object."""
    path = finding.path
    owners = (name for name in names if path == name or path.startswith(f"{name}."))
    return max(owners, key=len, default="")


def _waived(
    findings: list[Finding],
    bodies: Bodies,
    stated: Mapping[str, tuple[Stated, ...]],
    today: date,
) -> list[Finding]:
    """Waive each finding by the object that it is about, and tell what waives nothing."""
    waived: list[Finding] = []
    used: set[tuple[str, str]] = set()
    owners = [owner_of(finding, stated) for finding in findings]
    for finding, owner in zip(findings, owners, strict=True):
        heeded = [entry for entry in stated.get(owner, ()) if entry.rule == finding.rule]
        used.update(map(_key, heeded))
        # Judging a waiver is the part of the policy that sees the object alone.
        waived += [f for f in waive([finding], heeded, today) if f.rule == finding.rule]
    for name, entries in stated.items():
        waived += _wrong(bodies[name], entries, used, today)
    return waived


def _wrong(
    body: Mapping[str, Any],
    entries: tuple[Stated, ...],
    used: Collection[tuple[str, str]],
    today: date,
) -> Iterable[Finding]:
    """Tell what is wrong with waivers, as far as nobody does who sees their object alone.

    The objects of one component carry the same waivers, so one that is used in one of them is
    not spoken of in the others.
    """
    shared = judged_elsewhere(body)
    alone: frozenset[str] | None = None
    for entry in entries:
        read = read_waiver(entry, today)
        if isinstance(read, Finding):
            if not has_rules(body):
                yield read
        elif entry.rule in shared or not has_rules(body):
            if alone is None:
                alone = frozenset(finding.rule for finding in judge_manifest(body))
            if entry.rule not in alone and _key(entry) not in used:
                yield unused(entry)


def _key(entry: Stated) -> tuple[str, str]:
    return entry.rule, entry.text if isinstance(entry.text, str) else ""
