"""A small schema language for Kthena's objects, and the walk that checks a value by it.

A shape states the fields, their types, and the version that introduced them. The shapes are in
systems/*/schema.py and pod.py. The walk never raises, whatever a manifest contains, and never
descends below the shape.

Source: how the API server applies a CRD's schema, k8s.io/apiextensions-apiserver
pkg/apiserver/schema (pruning, defaulting, listtype) and pkg/apiserver/validation. A null is a
missing field, a field without a shape is dropped, and JSON's 8.0 is a whole number.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kthena_components.core.findings import Finding, Level, join_path, not_checked, suggest
from kthena_components.core.schema.versions import age
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import first_unknown, is_map, unknown_in, whole

SCHEMA, VERSION = "kthena-schema", "kthena-version"
_QUANTITY = re.compile(
    r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]++)?"
)
"""As in core/values/quantity.py, but linear in texts of any length."""
_KEY_DEFAULTS = {"protocol": "TCP", "name": ""}


@dataclass(frozen=True, slots=True)
class Free:
    """Any value."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """A field that is never suggested and not checked here: a rule covers it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text, optionally one of a few, or with a maximum length."""

    one_of: tuple[str, ...] = ()
    longest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """An integer of so many bits."""

    bits: int = 32
    least: int | None = None


@dataclass(frozen=True, slots=True)
class Switch:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Budget:
    """An integer or a text. A rule checks which texts are percentages."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity of a resource: an integer or a text; a fraction, too, outside CRDs."""

    fractions: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A map from any key to values of one shape."""

    of: "Schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list. Its keys must be unique among its members; a set has no duplicates."""

    of: "Schema"
    keys: tuple[str, ...] = ()
    is_set: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fields:
    """A map with known fields. A partial one may have others, which are not checked."""

    fields: "Mapping[str, Schema | Since]"
    required: tuple[str, ...] = ()
    partial: bool = False


Schema = Free | Ruled | Text | Switch | Whole | Budget | Amount | Table | Items | Fields


class Since:
    """A field that changed: its shape since each version; None if it does not exist there."""

    def __init__(self, *forms: tuple[str, Schema | None]) -> None:
        """Keep the shapes, oldest first."""
        self.forms = forms

    def at(self, version: str) -> Schema | None:
        """Return the shape in a version."""
        return next((s for v, s in reversed(self.forms) if age(v) <= age(version)), None)


def judge_shape(value: object, schema: Schema, version: str, path: str = "") -> Iterator[Finding]:
    """Report where a value violates a shape."""
    gap = unknown_in(value)
    match schema:
        case Free() | Ruled() | Text(one_of=(), longest=None) if gap:
            return
        case _ if gap:
            yield not_checked(path, gap, SCHEMA)
        case Fields() if isinstance(value, Mapping):
            yield from _fields(value, schema, version, path)
        case Table() if isinstance(value, Mapping):
            for key, item in value.items():
                if item is not None:
                    yield from judge_shape(item, schema.of, version, join_path(path, key_text(key)))
        case Items() if isinstance(value, list | tuple):
            for index, item in enumerate(value):
                yield from judge_shape(item, schema.of, version, f"{path}[{index}]")
            yield from _doubles(value, schema.keys, path)
            yield from _twice(value if schema.is_set else (), path)
        case _:
            yield from _scalar(value, schema, path)


def _fields(value: Mapping[Any, Any], schema: Fields, version: str, path: str) -> Iterator[Finding]:
    for key in schema.required:
        if value.get(key) is None:
            yield _mistake(join_path(path, key), "is missing, and it has no default", f"add {key}")
    for key, item in value.items():
        known, at = schema.fields.get(key), join_path(path, key_text(key))
        if item is None or (known is None and schema.partial):
            continue
        if isinstance(known, Since):
            yield from _dated(item, known, version, at)
        elif known is not None:
            yield from judge_shape(item, known, version, at)
        else:
            yield _dropped(at, suggest(key_text(key), _words(schema, version)))


def _words(schema: Fields, version: str) -> Iterator[str]:
    for name, field in schema.fields.items():
        form = field.at(version) if isinstance(field, Since) else field
        if form is not None and not isinstance(form, Ruled):
            yield name


def _dated(value: object, field: Since, version: str, path: str) -> Iterator[Finding]:
    """Check by the version's own shape, and report if another version would accept the value."""
    found = list(_form(value, field.at(version), version, path))
    # An older Kthena is only mentioned if the newer one drops the value silently.
    lost = not any(finding.level is Level.MANDATORY for finding in found)
    for since, form in field.forms if any(map(_weighs, found)) else ():
        fits = form is not None and not any(map(_weighs, _form(value, form, since, path)))
        if fits and (lost or age(since) > age(version)):
            yield from (_elsewhere(f, version, since) if _weighs(f) else f for f in found)
            return
    yield from found


def _form(value: object, form: Schema | None, version: str, path: str) -> Iterator[Finding]:
    if form is None:
        yield _dropped(path, "remove it")
    else:
        yield from judge_shape(value, form, version, path)


def _elsewhere(finding: Finding, version: str, other: str) -> Finding:
    seen = f"{finding.seen} in Kthena {version}; {other} accepts it"
    newer = f", or use Kthena {other}" if age(other) > age(version) else ""
    remedy = f"{finding.remedy}{newer}"
    return replace(finding, seen=seen, remedy=remedy, rule=VERSION)


def _scalar(value: object, schema: Schema, path: str) -> Iterator[Finding]:
    number = whole(value)
    match schema:
        case Text() if isinstance(value, str):
            yield from _text(value, schema, path)
        case Whole() if isinstance(number, int):
            yield from _number(number, schema, path)
        case Budget() | Amount() if isinstance(number, int):
            bits = 32 if isinstance(schema, Budget) else 64
            yield from _number(number, Whole(bits=bits), path)
        case Amount() if isinstance(value, str):
            if not _QUANTITY.fullmatch(value):
                seen = f"is {display(value)}, which is not a quantity"
                yield _mistake(path, seen, "write for example 8, 500m or 1124Gi")
        case Amount(fractions=True) if isinstance(value, float):
            pass
        case Budget() if isinstance(value, str):
            pass
        case Free() | Ruled():
            pass
        case Switch() if isinstance(value, bool):
            pass
        case _:
            yield _wrong_kind(value, schema, path)


def _text(value: str, schema: Text, path: str) -> Iterator[Finding]:
    if schema.one_of and value not in schema.one_of:
        words = " or ".join(f"'{word}'" for word in schema.one_of)
        seen = f"is {display(value)}, but must be {words}"
        yield _mistake(path, seen, suggest(value, schema.one_of))
    if schema.longest is not None and len(value) > schema.longest:
        seen = f"has {len(value)} characters, but may have {schema.longest}"
        yield _mistake(path, seen, f"shorten it by {len(value) - schema.longest}")


def _number(value: int, schema: Whole, path: str) -> Iterator[Finding]:
    most = 2 ** (schema.bits - 1) - 1
    if not -most - 1 <= value <= most:
        seen = f"is {display(value)}, but must be from {-most - 1} to {most}"
        yield _mistake(path, seen, "write a number in that range")
    elif schema.least is not None and value < schema.least:
        seen = f"is {value}, but must be at least {schema.least}"
        yield _mistake(path, seen, f"write {schema.least} or more")


def _wrong_kind(value: object, schema: Schema, path: str) -> Finding:
    quoted = "write it in quotes" if isinstance(value, int | float) else "write a text"
    match schema:
        case Text():
            wanted, remedy = "a text", quoted
        case Switch():
            wanted, remedy = "true or false", "write true or false, without quotes"
        case Whole():
            wanted, remedy = "a whole number", "write for example 1, without quotes"
        case Budget():
            wanted, remedy = "a whole number or a percentage", "write for example 1 or 25%"
        case Amount():
            wanted, remedy = "a whole number or a text", quoted
        case Items():
            wanted, remedy = "a list", "write a list"
        case _:
            wanted, remedy = "a map", "write a map"
    return _mistake(path, f"is {display(value)}, but must be {wanted}", remedy)


def _doubles(
    items: list[Any] | tuple[Any, ...], keys: tuple[str, ...], path: str
) -> Iterator[Finding]:
    first: dict[tuple[object, ...], int] = {}
    for index, item in enumerate(items if keys else ()):
        values = key_values(item, keys)
        if values is None:
            continue
        if gap := first_unknown(*values):
            yield not_checked(f"{path}[{index}]", gap, SCHEMA)
        elif all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in values):
            before = first.setdefault(values, index)
            if before != index:
                what = " and ".join(f"{k} {display(v)}" for k, v in zip(keys, values, strict=True))
                where = f"{path.rpartition('.')[2]}[{before}]"
                seen = f"has {what}, like {where}, and the API server rejects duplicates here"
                yield _mistake(f"{path}[{index}]", seen, "rename it or remove it")


def key_values(item: object, keys: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Give what a member of a list is told apart by; None for one that is no map."""
    if not is_map(item):
        return None
    named = [(key, item.get(key)) for key in keys]
    return tuple([_KEY_DEFAULTS.get(key) if value is None else value for key, value in named])


def _twice(items: list[Any] | tuple[Any, ...], path: str) -> Iterator[Finding]:
    seen = "is already in the list, and the API server rejects duplicates here"
    plain = [item if isinstance(item, str | int | float) else None for item in items]
    for index, item in enumerate(plain):
        if item is not None and not unknown_in(item) and item in plain[:index]:
            yield _mistake(f"{path}[{index}]", f"{display(item)} {seen}", "remove it")


def _weighs(finding: Finding) -> bool:
    return finding.level is not Level.UNKNOWN


def _mistake(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=SCHEMA)


def _dropped(path: str, remedy: str) -> Finding:
    seen = "is dropped silently by the API server, which knows no such field here"
    return Finding(path=path, seen=seen, remedy=remedy, rule=SCHEMA, level=Level.ADVISORY)
