"""Waivers: findings that are suppressed until a day, with a reason.

A waiver is an annotation of the object that a finding is about, or an entry of `waivers` in a
component's input:

    waive.kthena-components/shm-present: "2026-12-31 the new runtime gives 8 GiB"

Whether it has expired depends on the day, which the caller passes.

A waiver in the config of a stack is for one object: its kind, namespace and name. So it counts as
new if only another object had it before, even one of the same name in another namespace.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Any, NamedTuple

from kthena_components.core.findings import RULE_FAULT, Finding, Level, Waiver, join_path, nearest
from kthena_components.core.remedies import remove, rename
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import DEFAULT_NAMESPACE, mapping
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
class WaiverEntry:
    """A waiver as written."""

    rule: str
    path: str
    text: object


def annotated(body: Mapping[str, Any], path: str = "") -> tuple[WaiverEntry, ...]:
    """Read the waivers among the annotations of an object."""
    annotations = mapping(mapping(body.get("metadata")).get("annotations"))
    return tuple(
        WaiverEntry(
            rule=key.removeprefix(PREFIX),
            path=join_path(path, f"metadata.annotations.{key}"),
            text=text,
        )
        for key, text in annotations.items()
        if _is_waiver(key)
    )


def _is_waiver(key: object) -> bool:
    return isinstance(key, str) and key.startswith(PREFIX)


def listed(waivers: object) -> tuple[WaiverEntry, ...]:
    """Read the waivers in a component's input, by rule."""
    return tuple(
        WaiverEntry(rule=rule, path=f"{FIELD}.{rule}", text=text)
        for rule, text in mapping(waivers).items()
    )


def annotations(stated: Iterable[WaiverEntry]) -> dict[str, str]:
    """Write waivers as annotations."""
    return {f"{PREFIX}{entry.rule}": str(entry.text) for entry in stated}


def waive(
    findings: Iterable[Finding],
    stated: Sequence[WaiverEntry],
    today: date,
    *,
    elsewhere: Collection[str] = (),
) -> list[Finding]:
    """Suppress findings that a waiver names, and report invalid waivers.

    An invalid waiver changes nothing: its finding keeps its level. Unknown findings stay unknown.

    Args:
        findings: Findings of the object.
        today: The day on which they are checked.
        elsewhere: Rules that also check the object elsewhere, so it is unknown here whether they
            report something.
    """
    findings = list(findings)
    found = {finding.rule for finding in findings} | set(elsewhere)
    waivers: dict[str, Waiver] = {}
    refused: list[Finding] = []
    for entry in stated:
        read = read_waiver(entry, today)
        if isinstance(read, Finding):
            refused.append(read)
        elif (
            entry.rule in found or RULE_FAULT in found
        ):  # the findings of a failed rule are unknown
            waivers[entry.rule] = read
        else:
            refused.append(unused(entry))
    return [*(_waived(finding, waivers) for finding in findings), *refused]


def _waived(finding: Finding, waivers: Mapping[str, Waiver]) -> Finding:
    waiver = waivers.get(finding.rule)
    if waiver is None or finding.level not in _WAIVABLE:
        return finding
    return replace(finding, level=Level.WAIVED, waiver=waiver)


def read_waiver(entry: WaiverEntry, today: date) -> Waiver | Finding:
    """Read one waiver, or report what is wrong with it."""
    return next(waiver(entry, today), None) or _read(entry)


def waiver(entry: WaiverEntry, today: date) -> Iterator[Finding]:
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


def unused(entry: WaiverEntry) -> Finding:
    """Report that a waiver has no effect."""
    return Finding(
        path=entry.path,
        seen=f"has nothing to waive: '{entry.rule}' reports nothing here",
        remedy=remove(),
        rule=RULE,
        level=Level.ADVISORY,
    )


def unwaivable(entry: WaiverEntry) -> Finding:
    """Report that a finding of this rule prevents the plan of a component."""
    because = f"cannot waive '{entry.rule}': its finding prevents the plan of the component"
    return _refused(entry, because, "fix the finding, and remove the waiver")


def _refused(entry: WaiverEntry, seen: str, remedy: str) -> Finding:
    return Finding(path=entry.path, seen=seen, remedy=remedy, rule=RULE)


def _not_known(entry: WaiverEntry) -> Finding:
    seen = "was not checked, because only the deployment knows its text, and has no effect yet"
    return Finding(path=entry.path, seen=seen, rule=RULE, level=Level.UNKNOWN)


def _no_rule(rule: str) -> tuple[str, str] | None:
    """Say why a rule cannot be waived, and what to write; None if it can."""
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


def _no_waiver(entry: WaiverEntry, today: date) -> tuple[str, str] | None:
    """Report what is wrong with the text of a waiver, and what to write instead."""
    day, reason = _parts(entry)
    until = _day(day)
    if not isinstance(entry.text, str | date | None):
        return "is not a string", _FORM
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


def _read(entry: WaiverEntry) -> Waiver:
    """Read a valid waiver."""
    day, reason = _parts(entry)
    return Waiver(until=date.fromisoformat(day), reason=reason)


def _parts(entry: WaiverEntry) -> tuple[str, str]:
    """Return the day and the reason; YAML reads a day alone as a date."""
    text = entry.text
    words = str(text).split() if isinstance(text, str | date) else []
    return (words[0] if words else ""), " ".join(words[1:])[:_LONGEST].strip(" .")


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


_SUBJECT = ("kind", "namespace", "name")


class Subject(NamedTuple):
    """The object that a waiver is for."""

    kind: str
    """Empty for the input of a component."""
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigWaiver:
    """A waiver in a config."""

    entry: WaiverEntry
    place: tuple[str, ...]
    """Its keys, and the kind, namespace and name of each map around it."""
    subject: Subject | None
    """The outermost map with a name. None if there is none."""


@dataclass(frozen=True, slots=True)
class _Part:
    path: str
    place: tuple[str, ...]
    subject: Subject | None
    value: Any


def placed_waivers(root: Mapping[str, Any]) -> Iterator[ConfigWaiver]:
    """Find waivers at any depth: below `waivers`, and as annotations of an object or template."""
    parts = [_Part("", (), None, root)]
    while parts:
        part = parts.pop()
        value = _structure(part.value)
        if isinstance(value, list):
            parts += [
                _Part(
                    f"{part.path}[{_shown(item, i)}]",
                    (*part.place, _item(item, i)),
                    part.subject,
                    item,
                )
                for i, item in enumerate(value)
            ]
        if not isinstance(value, Mapping):
            continue
        place, subject = (*part.place, _label(value)), part.subject or _subject(value)
        for key, inner in value.items():
            path = f"{part.path}.{key}".removeprefix(".")
            at = _Part(path, (*place, str(key)), subject, inner)
            if isinstance(key, str) and key.startswith(PREFIX):
                yield _waiver_in_config(at, key.removeprefix(PREFIX), path, inner)
            elif key == FIELD and isinstance(stated := _structure(inner), Mapping):
                if set(stated) == {"secure"}:
                    yield _waiver_in_config(at, "", path, stated)
                    continue
                for rule, text in stated.items():
                    yield _waiver_in_config(at, str(rule), f"{path}.{rule}", text)
            else:
                parts.append(at)


def _waiver_in_config(part: _Part, rule: str, path: str, text: object) -> ConfigWaiver:
    return ConfigWaiver(
        entry=WaiverEntry(rule=rule, path=path, text=text), place=part.place, subject=part.subject
    )


def new_waivers(
    before: Mapping[str, Any], after: Mapping[str, Any], today: date
) -> Iterator[tuple[WaiverEntry, Waiver | None]]:
    """Yield the waivers of a branch that its base does not have, or not for as long.

    The waiver is None if its text cannot be read, because it is encrypted or no string.
    """
    had: dict[tuple[tuple[str, ...], str], list[object]] = {}
    for item in placed_waivers(before):
        had.setdefault((item.place, item.entry.rule), []).append(_parsed(item.entry, today))
    for item in placed_waivers(after):
        waiver, known = _parsed(item.entry, today), had.get((item.place, item.entry.rule), [])
        if isinstance(waiver, Waiver):
            if not any(isinstance(one, Waiver) and one.until >= waiver.until for one in known):
                yield item.entry, waiver
        elif waiver is not None and waiver not in known:
            yield item.entry, None


def waived_subjects(values: Mapping[str, Any], today: date) -> Mapping[tuple[Subject, str], date]:
    """Return the last day of each waiver in a config, by object and rule."""
    found: dict[tuple[Subject, str], date] = {}
    for item in placed_waivers(values):
        waiver = _parsed(item.entry, today)
        if item.subject is not None and isinstance(waiver, Waiver):
            key = item.subject, item.entry.rule
            found[key] = max(found.get(key, waiver.until), waiver.until)
    return found


def _parsed(entry: WaiverEntry, today: date) -> object:
    """Return a waiver, None if it has no effect, or what is written if that cannot be read."""
    if isinstance(entry.text, str | date | None):
        read = read_waiver(entry, today)
        return read if isinstance(read, Waiver) else None
    return repr(entry.text)


def _structure(value: Any) -> Any:
    """Parse a structured value that is written as JSON text, as `pulumi config set` does."""
    if not (isinstance(value, str) and value.lstrip().startswith(("[", "{"))):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _subject(value: Mapping[Any, Any]) -> Subject | None:
    kind, namespace, name = _identity(value)
    if not isinstance(name, str):
        return None
    return Subject(
        str(kind or ""), DEFAULT_NAMESPACE if namespace is None else str(namespace), name
    )


def _identity(value: Mapping[Any, Any]) -> tuple[object, ...]:
    """Return kind, namespace and name: of a manifest, or of a component's input."""
    metadata = value.get("metadata")
    if isinstance(metadata, Mapping):
        return value.get("kind"), metadata.get("namespace"), metadata.get("name")
    return tuple(value.get(key) for key in _SUBJECT)


def _label(value: Mapping[Any, Any]) -> str:
    """Name a map by its object, so that a waiver does not follow to another one."""
    kind, namespace, name = _identity(value)
    if kind is namespace is name is None:
        return ""
    return json.dumps([kind, namespace or DEFAULT_NAMESPACE, name], default=repr)


def _item(value: Any, index: int) -> str:
    """Name an item of a list so that its place does not depend on the order."""
    is_named = isinstance(value, Mapping) and _subject(value) is not None
    return "item" if is_named else str(index)


def _shown(value: Any, index: int) -> str:
    subject = _subject(value) if isinstance(value, Mapping) else None
    return str(index) if subject is None else subject.name
