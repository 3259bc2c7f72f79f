"""Checks an object by the releases of its operator that other files install.

One checkout may be for several clusters. So what only the installed release refuses is advice, and
what not all of several installed releases refuse is not checked. The rules are not known for a
release older than those whose CRDs are: then only the rules about engines apply.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from kthena_components.checker.crd_schema import SCHEMA_RULE, SCHEMA_RULES, WEIGHT, own_crds
from kthena_components.core.facts.context import Context, Pin
from kthena_components.core.findings import Finding, Level, rule_name
from kthena_components.core.objects.object import GroupKind
from kthena_components.core.schema.versions import TITLES, VERSIONS, is_older
from kthena_components.core.values.display import listing
from kthena_components.core.values.read import group_kind
from kthena_components.systems import INDEX, find_kind

_SCHEMAS = (SCHEMA_RULE, *SCHEMA_RULES.values())
_MOST = 4
"""Maximum number of installed releases that are compared: each is another check of the object."""
_C_co = TypeVar("_C_co", bound="_Checked", covariant=True)


class _Checked(Protocol):
    """What a check of an object gives."""

    @property
    def findings(self) -> list[Finding]: ...


class _Check(Protocol[_C_co]):
    """Checks an object in a context."""

    def __call__(self, body: Mapping[str, Any], *, context: Context) -> _C_co: ...


def by_installed(check: _Check[_C_co], context: Context, body: Mapping[str, Any]) -> _C_co:
    """Check an object, by the installed releases of its system if there are any.

    Args:
        check: Checks an object in a context.
    """
    of = group_kind(body)
    checked, pins = check(body, context=context), installed(of, context)
    if not pins:
        return checked
    newest = checked.findings
    each = [_by(pin, check, context, body, newest) for pin in pins[:_MOST]]
    findings = each[0] if len(each) == 1 else _agreed(each, _differ(INDEX[of], pins))
    return replace(checked, findings=findings)  # type: ignore[type-var]


def together_by_installed(
    compare: Callable[[Mapping[str, str]], list[Finding]],
    versions: Mapping[str, str],
    pins: Mapping[str, Sequence[Pin]],
) -> list[Finding]:
    """Compare all objects of a cluster, by the installed releases of each system.

    Args:
        compare: Compares them for the releases of some systems; the newest of the others.
        versions: The releases that the user states.
        pins: The installed ones, by system.
    """
    found = compare(versions)
    for system, listed in pins.items():
        own = list({pin.release: pin for pin in reversed(listed)}.values())[::-1][:_MOST]
        if system in versions or any(is_older(system, pin.release) for pin in own):
            continue
        by_release = [compare({**versions, system: pin.release}) for pin in own]
        each = [_weighed(system, *both, found) for both in zip(own, by_release, strict=True)]
        found = each[0] if len(each) == 1 else _agreed(each, _differ(system, own))
    return found


def installed(of: GroupKind, context: Context) -> Sequence[Pin]:
    """Return the installed releases of a kind's system, unless the user or a CRD states one."""
    system = INDEX.get(of, "")
    pins = context.pins.get(system, ()) if system not in context.versions else ()
    if not pins or find_kind(of) is None or own_crds(of, context):
        return ()
    return list({pin.release: pin for pin in reversed(pins)}.values())[::-1]


def _by(
    pin: Pin, check: _Check[_C_co], context: Context, body: Mapping[str, Any], newest: list[Finding]
) -> list[Finding]:
    """Return the findings for one release."""
    of = group_kind(body)
    system, kind = INDEX[of], find_kind(of)
    first, title = VERSIONS[system][0], TITLES[system]
    if kind is not None and is_older(system, pin.release):
        own = {*_SCHEMAS, *map(rule_name, kind.rules)}
        why = f"{pin.file} installs {title} {pin.release}, and only rules from {first} are known"
        return [_open(each, why) if each.rule in own else each for each in newest]
    versions = {**context.versions, system: pin.release}
    found = check(body, context=replace(context, versions=versions)).findings
    return _weighed(system, pin, found, newest)


def _weighed(system: str, pin: Pin, found: list[Finding], newest: list[Finding]) -> list[Finding]:
    """Turn into advice what only an installed release refuses."""
    title, last = TITLES[system], VERSIONS[system][-1]
    both = {(each.rule, each.path) for each in newest if each.level is Level.MANDATORY}
    only = f"{pin.file} installs {title} {pin.release}, and {title} {last} accepts it"
    return [
        replace(each, seen=f"{each.seen}; {only}", level=Level.ADVISORY)
        if each.level is Level.MANDATORY and (each.rule, each.path) not in both
        else each
        for each in found
    ]


def _differ(system: str, pins: Sequence[Pin]) -> str:
    differ = listing(f"{pin.release} ({pin.file})" for pin in pins)
    return f"the files install {TITLES[system]} {differ}, which differ in this"


def _agreed(each: list[list[Finding]], why: str) -> list[Finding]:
    """Keep what all releases report, and turn the rest into what is not checked."""
    by_place = [{(one.rule, one.path): one for one in found} for found in each]
    made: list[Finding] = []
    for key in dict.fromkeys(key for found in by_place for key in found):
        least, *_, most = sorted((found.get(key) for found in by_place), key=_weight)
        if least is not None and (_weight(least) or not _weight(most)):
            made.append(least)
        elif most is not None:
            made.append(_open(most, why))
    return made


def _weight(finding: Finding | None) -> int:
    return 0 if finding is None else WEIGHT.get(finding.level, 0)


def _open(finding: Finding, why: str) -> Finding:
    """Say that a release decides, unless it is not checked already."""
    if not _weight(finding):
        return finding
    return replace(finding, seen=f"{finding.seen}; {why}", remedy="", level=Level.UNKNOWN)
