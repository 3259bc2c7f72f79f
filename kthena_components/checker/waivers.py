"""Waivers: findings that are suppressed until a day, with a reason.

A waiver is an annotation of the object that a finding is about, or an entry of `waivers` in a
component's input:

    waive.kthena-components/shm-present: "2026-12-31 the new runtime gives 8 GiB"

Whether it has expired depends on the day, which the caller passes.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

from kthena_components.core.findings import RULE_FAULT, Finding, Level, Waiver, join_path, nearest
from kthena_components.core.remedies import remove, rename
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown, is_unresolved

PREFIX = "waive.kthena-components/"
"""Prefix of an annotation's key. The rule follows; both together fit Kubernetes' limit."""
FIELD = "waivers"
"""Field of a component's input."""
RULE = "waiver"
_FORM = "write the last day as YYYY-MM-DD, and after it the reason"
_DAY = regex(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_WAIVABLE = frozenset({Level.MANDATORY, Level.ADVISORY})
_SHOWN, _LONGEST = 40, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A waiver as written."""

    rule: str
    path: str
    text: object


def annotated(body: Mapping[str, Any], path: str = "") -> tuple[Stated, ...]:
    """Read the waivers among the annotations of an object."""
    annotations = mapping(mapping(body.get("metadata")).get("annotations"))
    return tuple(
        Stated(
            rule=key.removeprefix(PREFIX),
            path=join_path(path, f"metadata.annotations.{key}"),
            text=text,
        )
        for key, text in annotations.items()
        if _is_waiver(key)
    )


def _is_waiver(key: object) -> bool:
    return isinstance(key, str) and key.startswith(PREFIX)


def listed(waivers: object) -> tuple[Stated, ...]:
    """Read the waivers in a component's input, by rule."""
    return tuple(
        Stated(rule=rule, path=f"{FIELD}.{rule}", text=text)
        for rule, text in mapping(waivers).items()
    )


def annotations(stated: Iterable[Stated]) -> dict[str, str]:
    """Write waivers as annotations."""
    return {f"{PREFIX}{entry.rule}": str(entry.text) for entry in stated}


def waive(
    findings: Iterable[Finding],
    stated: Sequence[Stated],
    today: date,
    *,
    elsewhere: Collection[str] = (),
) -> list[Finding]:
    """Suppress findings that a waiver names, and report invalid waivers.

    An invalid waiver changes nothing: its finding keeps its level. Unknown findings stay unknown.

    Args:
        findings: Findings of the object.
        stated: Its waivers.
        today: The day on which they are checked.
        elsewhere: Rules that also check the object elsewhere, so it is unknown here whether they
            report something.
    """
    findings = list(findings)
    found = {finding.rule for finding in findings} | set(elsewhere)
    waivers: dict[str, Waiver] = {}
    told: list[Finding] = []
    for entry in stated:
        read = read_waiver(entry, today)
        if isinstance(read, Finding):
            told.append(read)
        elif (
            entry.rule in found or RULE_FAULT in found
        ):  # the findings of a failed rule are unknown
            waivers[entry.rule] = read
        else:
            told.append(unused(entry))
    return [*(_waived(finding, waivers) for finding in findings), *told]


def _waived(finding: Finding, waivers: Mapping[str, Waiver]) -> Finding:
    waiver = waivers.get(finding.rule)
    if waiver is None or finding.level not in _WAIVABLE:
        return finding
    return replace(finding, level=Level.WAIVED, waiver=waiver)


def read_waiver(entry: Stated, today: date) -> Waiver | Finding:
    """Read one waiver, or report what is wrong with it."""
    return next(waiver(entry, today), None) or _read(entry)


def waiver(entry: Stated, today: date) -> Iterator[Finding]:
    """A waiver names a rule, the last day on which it applies, and a reason.

    It is an annotation of the object that the finding is about, or an entry of `waivers` in a
    component's input. A waived finding is suppressed until that day: it is reported as waived, with
    the day and the reason, and stops nothing. An invalid waiver has no effect, an unused one is
    advisory, and this rule cannot be waived. Days are in UTC.

    Pass: waive.kthena-components/shm-present: "2026-12-31 the new runtime gives 8 GiB".
    Fail: no day, no reason, a day in the past, or a rule that does not exist.
    Source: Kubernetes documentation, Annotations: a prefix, and a name of at most 63 characters.
    """
    if any(
        isinstance(value, Unknown) or is_unresolved(value) for value in (entry.rule, entry.text)
    ):
        yield _not_known(entry)
    elif problem := _no_rule(entry.rule) or _no_waiver(entry, today):
        yield _refused(entry, *problem)


def unused(entry: Stated) -> Finding:
    """Report that a waiver has no effect."""
    return Finding(
        path=entry.path,
        seen=f"has nothing to waive: '{entry.rule}' reports nothing here",
        remedy=remove(),
        rule=RULE,
        level=Level.ADVISORY,
    )


def unwaivable(entry: Stated) -> Finding:
    """Report that a finding of this rule prevents the plan of a component."""
    because = f"cannot waive '{entry.rule}': its finding prevents the plan of the component"
    return _refused(entry, because, "fix the finding, and remove the waiver")


def _refused(entry: Stated, seen: str, remedy: str) -> Finding:
    return Finding(path=entry.path, seen=seen, remedy=remedy, rule=RULE)


def _not_known(entry: Stated) -> Finding:
    seen = "was not checked, because only the deployment knows its text, and has no effect yet"
    return Finding(path=entry.path, seen=seen, rule=RULE, level=Level.UNKNOWN)


def _no_rule(rule: str) -> tuple[str, str] | None:
    # The catalogue also documents this module's rule, so it is imported on demand.
    from kthena_components.checker.catalogue import rule_names  # noqa: PLC0415

    if rule == RULE:
        return "cannot be waived, because it is about waivers", remove()
    known = rule_names()
    if rule in known:
        return None
    close = nearest(rule[:_SHOWN], known)
    listing = "choose one that 'kthena-components check --rules' lists"
    remedy = rename(f"{PREFIX}{close}", f"write '{close}'") if close else listing
    return f"there is no rule '{rule[:_SHOWN]}'", remedy


def _no_waiver(entry: Stated, today: date) -> tuple[str, str] | None:
    """Report what is wrong with the text of a waiver, and what to write instead."""
    day, reason = _parts(entry)
    until = _day(day)
    if not isinstance(entry.text, str | date | None):
        return "is no text", _FORM
    if not day:
        return "gives neither a day nor a reason", _FORM
    if until is None:
        return f"begins with '{day[:_SHOWN]}', which is not a day", _FORM
    if not reason:
        return f"gives no reason after {until}", "write after it why the finding is accepted"
    if until < today:
        remedy = f"fix what '{entry.rule}' reports, or write a later day"
        return f"ended on {until}, and today is {today}", remedy
    return None


def _read(entry: Stated) -> Waiver:
    """Read a valid waiver."""
    day, reason = _parts(entry)
    return Waiver(until=date.fromisoformat(day), reason=reason)


def _parts(entry: Stated) -> tuple[str, str]:
    """Return the day and the reason; YAML reads a day alone as a date."""
    text = entry.text
    words = str(text).split() if isinstance(text, str | date) else []
    return (words[0] if words else ""), " ".join(words[1:])[:_LONGEST].strip(" .")


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None
