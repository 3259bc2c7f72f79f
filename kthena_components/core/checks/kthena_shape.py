"""A small language for the shape of Kthena's objects, and the walk that judges a value by it.

A shape says which fields there are, of which kind, and since which version. The shape itself is
in kthena_schema.py. Nothing that a manifest can contain makes the walk raise, and it never
descends further than the shape does.

Source: what the API server does with a CRD's schema, k8s.io/apiextensions-apiserver
pkg/apiserver/schema (pruning, defaulting, listtype) and pkg/apiserver/validation. A null is an
absent field, a field without a shape is dropped, and JSON's 8.0 is a whole number.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kthena_components.core.findings import Finding, Level, join_path, suggest
from kthena_components.core.known import MaybeInt, Unknown, is_late
from kthena_components.core.naming import DNS_LABEL
from kthena_components.core.quantity import QUANTITY

KTHENA_VERSIONS = ("0.1", "0.2", "0.3", "0.4", "1.0")
"""Kthena's releases, oldest first."""
SCHEMA, VERSION = "kthena-schema", "kthena-version"
SURGE = "maxSurge"
"""A rule of its own speaks of it, wherever it stands."""
LATE = Unknown("the value is known only after the deployment")
_SHOWN, _QUANTITY = 40, 64
_EXACT = 2**53
"""Up to here the API server takes a float for a whole number."""
_KEY_DEFAULTS = {"protocol": "TCP", "name": ""}


@dataclass(frozen=True, slots=True)
class Free:
    """Anything at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text, perhaps one of a few, perhaps no longer than so many characters."""

    one_of: tuple[str, ...] = ()
    longest: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A whole number of so many bits."""

    bits: int = 32
    least: int | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """A whole number or a text. Which texts are percentages, a rule says."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity of a resource: a whole number or a text, never a fraction."""


@dataclass(frozen=True, slots=True)
class Table:
    """A map from any key to values of one shape."""

    of: "Schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list. Where it has keys, no two of its members share them."""

    of: "Schema"
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """A map with known fields. A partial one may have others, which are not judged."""

    fields: "Mapping[str, Schema | Since]"
    required: tuple[str, ...] = ()
    partial: bool = False


Schema = Free | Text | Whole | Budget | Amount | Table | Items | Fields


class Since:
    """A field that changed: its shape since each version; None where there is no such field."""

    def __init__(self, *forms: tuple[str, Schema | None]) -> None:
        """Keep the shapes, oldest first."""
        self.forms = forms

    def at(self, version: str) -> Schema | None:
        """Give the shape that a version reads."""
        return next((s for v, s in reversed(self.forms) if age(v) <= age(version)), None)


def age(version: str) -> int:
    """Order versions: an older one has a lower age."""
    return KTHENA_VERSIONS.index(version)


def judge_shape(value: object, schema: Schema, version: str, path: str = "") -> Iterator[Finding]:
    """Say where a value does not have a shape."""
    gap = gap_of(value)
    match schema:
        case Free() | Text(one_of=(), longest=None) if gap:
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
        case _:
            yield from _scalar(value, schema, path)


def _fields(
    value: Mapping[Any, Any], schema: Fields, version: str, path: str
) -> Iterator[Finding]:
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
        elif key != SURGE:
            yield _dropped(at, suggest(key_text(key), set(schema.fields) - {SURGE}))


def _dated(value: object, field: Since, version: str, path: str) -> Iterator[Finding]:
    """Judge by the version's own shape, and say so where another version would take the value."""
    found = list(_form(value, field.at(version), version, path))
    # An older Kthena is worth a hint only where the newer one loses the value without a word.
    lost = all(finding.level is Level.ADVISORY for finding in found)
    for since, form in field.forms if any(map(_weighs, found)) else ():
        fits = form is not None and not any(map(_weighs, _form(value, form, since, path)))
        if fits and (lost or age(since) > age(version)):
            yield from (_elsewhere(finding, version, since) for finding in found)
            return
    yield from found


def _form(value: object, form: Schema | None, version: str, path: str) -> Iterator[Finding]:
    if form is None:
        yield _dropped(path, "remove it")
    else:
        yield from judge_shape(value, form, version, path)


def _elsewhere(finding: Finding, version: str, other: str) -> Finding:
    seen = f"{finding.seen}; that is so in Kthena {version}, while {other} takes it"
    remedy = f"for Kthena {version}, {finding.remedy}"
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
            if len(value) <= _QUANTITY and not (value.isascii() and QUANTITY.fullmatch(value)):
                seen = f"is {show(value)}, which is not a quantity"
                yield _mistake(path, seen, "write for example 8, 500m or 1124Gi")
        case Budget() if isinstance(value, str):
            pass
        case Free():
            pass
        case _:
            yield _wrong_kind(value, schema, path)


def _text(value: str, schema: Text, path: str) -> Iterator[Finding]:
    if schema.one_of and value not in schema.one_of:
        words = " or ".join(f"'{word}'" for word in schema.one_of)
        yield _mistake(path, f"is {show(value)}, but must be {words}", suggest(value, schema.one_of))
    if schema.longest is not None and len(value) > schema.longest:
        seen = f"has {len(value)} characters, but may have {schema.longest}"
        yield _mistake(path, seen, f"shorten it by {len(value) - schema.longest}")


def _number(value: int, schema: Whole, path: str) -> Iterator[Finding]:
    most = 2 ** (schema.bits - 1) - 1
    if not -most - 1 <= value <= most:
        seen = f"is {show(value)}, but must be from {-most - 1} to {most}"
        yield _mistake(path, seen, "write a number in that range")
    elif schema.least is not None and value < schema.least:
        seen = f"is {value}, but must be at least {schema.least}"
        yield _mistake(path, seen, f"write {schema.least} or more")


def _wrong_kind(value: object, schema: Schema, path: str) -> Finding:
    quoted = "write it in quotes" if isinstance(value, int | float) else "write a text"
    match schema:
        case Text():
            wanted, remedy = "a text", quoted
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
    return _mistake(path, f"is {show(value)}, but must be {wanted}", remedy)


def _doubles(
    items: list[Any] | tuple[Any, ...], keys: tuple[str, ...], path: str
) -> Iterator[Finding]:
    first: dict[tuple[object, ...], int] = {}
    for index, item in enumerate(items if keys else ()):
        if not isinstance(item, Mapping):
            continue
        named = {key: item.get(key) for key in keys}
        values = tuple(_KEY_DEFAULTS.get(k) if v is None else v for k, v in named.items())
        if gap := first_gap(*values):
            yield not_checked(f"{path}[{index}]", gap, SCHEMA)
        elif all(isinstance(v, str | int | float) and not isinstance(v, bool) for v in values):
            before = first.setdefault(values, index)
            if before != index:
                what = " and ".join(f"{k} {show(v)}" for k, v in zip(keys, values, strict=True))
                seen = f"has {what} as [{before}] has, and the API server refuses doubles here"
                yield _mistake(f"{path}[{index}]", seen, "rename it or remove it")


def gap_of(value: object) -> Unknown | None:
    """Say why a value cannot be judged, if it cannot."""
    if isinstance(value, Unknown):
        return value
    return LATE if is_late(value) else None


def first_gap(*values: object) -> Unknown | None:
    """Say why values cannot be judged together, if they cannot."""
    return next((gap for gap in map(gap_of, values) if gap), None)


def whole(value: object) -> MaybeInt | None:
    """Read a whole number, 8.0 as well: JSON does not tell them apart. None for anything else."""
    if gap := gap_of(value):
        return gap
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not (value.is_integer() and abs(value) < _EXACT):
        return None
    return int(value)


def show(value: object) -> str:
    """Write a value for a message, in one line and never long."""
    match value:
        case str():
            text = repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
        case None:
            text = "null"
        case bool():
            text = str(value).lower()
        case int() if value.bit_length() > _QUANTITY:
            text = f"a number of {value.bit_length()} bits"
        case int() | float():
            text = str(value)
        case Mapping() | list() | tuple():
            text = "a map" if isinstance(value, Mapping) else "a list"
        case _:
            text = f"a value of type {type(value).__name__}"
    return text


def key_text(key: object) -> str:
    """Write a map's key for a path."""
    return key if isinstance(key, str) and len(key) <= DNS_LABEL else show(key).strip("'")


def not_checked(path: str, gap: Unknown, rule: str) -> Finding:
    """Say that a rule could not judge a place, and why."""
    seen = f"not checked, because {gap.because}"
    return Finding(path=path, seen=seen, rule=rule, level=Level.UNKNOWN)


def _weighs(finding: Finding) -> bool:
    return finding.level is not Level.UNKNOWN


def _mistake(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=SCHEMA)


def _dropped(path: str, remedy: str) -> Finding:
    seen = "is no field here, and the API server drops it silently"
    return Finding(path=path, seen=seen, remedy=remedy, rule=SCHEMA, level=Level.ADVISORY)
