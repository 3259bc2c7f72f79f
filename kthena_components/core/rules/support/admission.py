"""Shared checks of admission: counts, names, cycles, and the two states of an updated object.

A value that is not known yet gives exactly one finding that says so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from kthena_components.core import naming
from kthena_components.core.findings import Finding, not_checked, refuse, suggest
from kthena_components.core.naming import is_dns_name
from kthena_components.core.remedies import or_more
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display
from kthena_components.core.values.read import NOT_YET_KNOWN, unknown_in, whole
from kthena_components.core.values.unknown import Unknown, is_unresolved

_SUBDOMAIN = 253
_LISTED = 20
"""Maximum number of names in a message."""


def at_least(
    path: str, value: object, lowest: int, rule: str = "", why: str = ""
) -> Iterator[Finding]:
    """Check the minimum of a count that may be left out."""
    if value is None:
        return
    number = whole(value)
    if isinstance(number, Unknown):
        yield not_checked(path, number, rule)
    elif number is None:
        seen = f"is {display(value)}, but must be a whole number"
        yield refuse(path, seen, or_more(lowest), rule)
    elif number < lowest:
        seen = f"is {display(number)}, but must be at least {lowest}{why}"
        yield refuse(path, seen, or_more(lowest), rule)


def unique(
    named: Iterable[tuple[str, object]], rule: str = "", what: str = ""
) -> Iterator[Finding]:
    """Check that no two places have the same name."""
    first: dict[str, str] = {}
    for path, name in named:
        if gap := unknown_in(name):
            yield not_checked(path, gap, rule)
        elif isinstance(name, str):
            where = first.setdefault(name, path)
            if where != path:
                seen = f"is {display(name)}, as {where} is already"
                yield refuse(path, seen, f"rename one of the {what or 'two'}", rule)


def dns_label(path: str, name: object, rule: str = "") -> Iterator[Finding]:
    """Check a DNS-1123 label, such as a role's name."""
    wanted = f"a DNS-1123 label of at most {naming.DNS_LABEL} characters"
    yield from _check_name(path, name, rule, wanted, _is_label)


def subdomain(path: str, name: object, rule: str = "") -> Iterator[Finding]:
    """Check a DNS-1123 subdomain, such as the name of most objects."""
    wanted = f"a DNS-1123 subdomain of at most {_SUBDOMAIN} characters"
    yield from _check_name(path, name, rule, wanted, _is_subdomain)


def _check_name(
    path: str, name: object, rule: str, wanted: str, fits: Callable[[str], bool]
) -> Iterator[Finding]:
    """Check an object's name with `fits`; `wanted` says in words what the name must be."""
    if gap := unknown_in(name):
        yield not_checked(path, gap, rule)
    elif name is not None and not (isinstance(name, str) and fits(name)):
        seen = f"is {display(name)}, which is not {wanted}"
        remedy = "write lower-case letters, digits and dashes, a letter or digit first and last"
        yield refuse(path, seen, remedy, rule)


def _is_label(name: str) -> bool:
    return len(name) <= naming.DNS_LABEL and naming.DNS_1123_LABEL.fullmatch(name) is not None


def _is_subdomain(name: str) -> bool:
    return len(name) <= _SUBDOMAIN and is_dns_name(name)


def one_of(path: str, value: object, allowed: tuple[str, ...], rule: str = "") -> Iterator[Finding]:
    """Check that a word that may be left out is one of a few."""
    if value is None:
        return
    if gap := unknown_in(value):
        yield not_checked(path, gap, rule)
    elif value not in allowed:
        seen = f"is {display(value)}, but must be one of {', '.join(allowed)}"
        remedy = suggest(value[:100], allowed) if isinstance(value, str) else f"write {allowed[0]}"
        yield refuse(path, seen, remedy, rule)


def cycle_in(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """Find names that depend on each other in a cycle; empty if there is none."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        return [str(name) for name in error.args[1]][::-1]
    return []


def joined(names: Sequence[str]) -> str:
    """Join names for a message, limited in number and length."""
    shown = [display(name).strip("'") for name in names[:_LISTED]]
    more = [f"and {len(names) - _LISTED} more"] if len(names) > _LISTED else []
    return ", ".join([*shown, *more]) or "none"


_DEEP = Unknown("it is nested too deeply to be compared")


@dataclass(frozen=True, slots=True)
class Change:
    """One object before and after an update."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]


def differ(before: object, after: object) -> bool | Unknown:
    """Return whether two values differ, or why that is unknown."""
    if _has_unresolved(before) or _has_unresolved(after):
        return NOT_YET_KNOWN
    try:
        return before != after
    except RecursionError:
        return _DEEP


def _has_unresolved(value: object) -> bool:
    """Return whether a value contains an unknown value at any depth."""
    parts = [value]
    while parts:
        part = parts.pop()
        if isinstance(part, Unknown) or is_unresolved(part):
            return True
        if isinstance(part, Mapping):
            parts.extend(part.values())
        elif isinstance(part, list | tuple):
            parts.extend(part)
    return False


def exactly_one(first: str, second: str, *, neither: bool) -> tuple[str, str]:
    """Return what is wrong with two fields, and the remedy: exactly one of them must be given."""
    if neither:
        return f"has neither {first} nor {second}", f"write {first} or {second}"
    return f"has both {first} and {second}", "keep one of the two"
