"""A small schema language for objects, and the walk that checks a value by it.

A shape states the fields, their types, and their limits: of CRDs (crds.py) and of pods (pod.py).
The walk never raises, whatever a manifest contains, and never descends below the shape.

Source: how the API server applies a CRD's schema, k8s.io/apiextensions-apiserver
pkg/apiserver/schema (pruning, defaulting, listtype) and pkg/apiserver/validation. A null is a
missing field, and JSON's 8.0 is a whole number.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from kthena_components.core.findings import (
    Finding,
    Level,
    count_of,
    join_path,
    not_checked,
    suggest,
    suggest_name,
)
from kthena_components.core.naming import dns_name
from kthena_components.core.remedies import Remedy, fixes_of, remove, write
from kthena_components.core.values.blanks import TO_REPLACE
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.display import display, key_text
from kthena_components.core.values.read import (
    first_unknown,
    is_map,
    unknown_in,
    whole,
    without_quotes,
)
from kthena_components.core.values.regex import FORMATS, regex
from kthena_components.core.values.unknown import Unknown

NAMES = frozenset({"metadata.name", "metadata.generateName"})
SCHEMA = "crd-schema"
_QUANTITY = regex(
    r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]++)?"
)
"""As in core/values/quantity.py, but linear in strings of any length."""
_KEY_DEFAULTS = {"protocol": "TCP", "name": ""}
"""Defaults of keys of lists."""
_LONGEST_MATCHED = 4096
"""Maximum length of a string that is matched with a pattern."""
_HIDDEN = {str: "a string", int: "a number", float: "a number"}
UNDECLARED = "is not a field of its schema"
"""The `seen` of a finding about a field that the schema does not have."""
MISSING = "is missing, and it has no default"
"""The `seen` of a finding about a field that an object does not have."""


def no_name(value: float, path: str, rule: str = "") -> Finding:
    """Report a name of an object that YAML reads as a number, or as true or false.

    The same characters in quotes, such as "Y" or "1.0", are a name of few kinds.
    """
    read = {True: ", as YAML reads Y, yes and on", False: ", as YAML reads N, no and off"}
    text = read[value] if isinstance(value, bool) else ""
    shown = display(value)
    seen = f"is {shown}{text}, but must be a string"
    return Finding(path=path, seen=seen, remedy=write(f"chat-{dns_name(shown)}"), rule=rule)


@dataclass(frozen=True, slots=True)
class Free:
    """Any value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string, optionally one of a few, with limits on its length, or with a pattern."""

    one_of: tuple[str, ...] = ()
    shortest: int = 0
    longest: int | None = None
    pattern: str = ""
    """A regular expression in Go's syntax."""
    format: str = ""
    """A name in FORMATS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """An integer of so many bits, optionally within limits."""

    bits: int = 32
    least: int | None = None
    most: int | None = None
    one_of: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Number:
    """Any number."""


@dataclass(frozen=True, slots=True)
class Switch:
    """True or false."""


@dataclass(frozen=True, slots=True)
class Budget:
    """An integer or a string. A rule checks which strings are percentages."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity of a resource: an integer or a string; a fraction, too, outside CRDs."""

    fractions: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A map from any key to values of one shape, with limits on its number of entries."""

    of: "Schema"
    fewest: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Items:
    """A list. Its keys must be unique among its members; a set has no duplicates.

    Where nulls count, a null member is an empty string or 0: so Kubernetes reads its own kinds. By
    a CRD's schema, the API server rejects it.
    """

    of: "Schema"
    keys: tuple[str, ...] = ()
    is_set: bool = False
    nulls: bool = False
    fewest: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fields:
    """A map with known fields. A partial one may have others, which are not checked."""

    fields: "Mapping[str, Schema]"
    required: tuple[str, ...] = ()
    partial: bool = False
    fewest: int = 0
    most: int | None = None


Schema = Free | Text | Switch | Whole | Number | Budget | Amount | Table | Items | Fields


def check_shape(value: object, schema: Schema, path: str = "") -> Iterator[Finding]:
    """Report where a value violates a shape."""
    gap = unknown_in(value)
    match schema:
        case Free() if gap:
            return
        case Text(one_of=(), longest=None, shortest=0, pattern="", format="") if gap:
            return
        case _ if gap:
            yield not_checked(path, gap, SCHEMA)
        case Fields() if isinstance(value, Mapping):
            yield from _fields(value, schema, path)
        case Table() if isinstance(value, Mapping):
            given = sum(item is not None for item in value.values())
            yield from _counted(given, schema, path, "key")
            for key, item in value.items():
                if item is not None:
                    yield from check_shape(item, schema.of, join_path(path, key_text(key)))
        case Items() if isinstance(value, list | tuple):
            yield from _items(value, schema, path)
        case _:
            yield from _scalar(value, schema, path)


def _items(value: list[Any] | tuple[Any, ...], schema: Items, path: str) -> Iterator[Finding]:
    yield from _counted(len(value), schema, path, "item")
    for index, item in enumerate(value):
        if item is not None or not schema.nulls:
            yield from check_shape(item, schema.of, f"{path}[{index}]")
    yield from _doubles(value, schema.keys, path)
    yield from _twice(value if schema.is_set else (), path)


def _fields(value: Mapping[Any, Any], schema: Fields, path: str) -> Iterator[Finding]:
    """Report fields that are missing or not declared, and check the values of the others."""
    for key in schema.required:
        if value.get(key) is None:
            yield _mistake(join_path(path, key), MISSING, f"add {key}")
    for key, item in value.items():
        known, at = schema.fields.get(key), join_path(path, key_text(key))
        if known is None and not schema.partial:
            # The API server rejects an unknown field even if it is null.
            yield _mistake(at, UNDECLARED, _meant(key_text(key), item, value, schema))
        elif known is not None and item is not None:
            yield from check_shape(item, known, at)
    if schema.fewest or schema.most is not None:
        given = sum(value.get(key) is not None for key in schema.fields)
        yield from _counted(given, schema, path, "field")


def _meant(key: str, item: object, value: Mapping[Any, Any], schema: Fields) -> str:
    """Return the remedy for an unknown field, and what its value must be if that is another."""
    remedy = suggest_name(key, schema.fields, value)
    name = next((change.name for fix in fixes_of(remedy) for change in fix), "")
    if not name:
        return remedy
    wrong = next((each for each in check_shape(item, schema.fields[name]) if not each.path), None)
    if wrong is None or wrong.level is not Level.MANDATORY:
        return remedy
    return f"{remedy}, which {wrong.seen.rpartition(', but ')[2]}"


def _counted(
    number: int, schema: Items | Table | Fields, path: str, word: str
) -> Iterator[Finding]:
    if number < schema.fewest:
        seen = f"has {count_of(number, word)}, but must have at least {schema.fewest}"
        yield _mistake(path, seen, f"add {schema.fewest - number}")
    elif schema.most is not None and number > schema.most:
        seen = f"has {count_of(number, word)}, but may have {schema.most}"
        yield _mistake(path, seen, f"remove {number - schema.most}")


def _scalar(value: object, schema: Schema, path: str) -> Iterator[Finding]:
    """Check a string or a number by its schema, and report a value of another kind."""
    number = whole(value)
    match schema:
        case Text() if isinstance(value, str):
            yield from _text(value, schema, path)
        case _ if isinstance(value, str) and TO_REPLACE.fullmatch(value):
            yield not_checked(path, Unknown(f"{display(value)} is a placeholder"), SCHEMA)
        case Whole() if isinstance(number, int):
            yield from _number(number, schema, path)
        case Budget() | Amount() if isinstance(number, int):
            bits = 32 if isinstance(schema, Budget) else 64
            yield from _number(number, Whole(bits=bits), path)
        case Amount() if isinstance(value, str):
            # Go's reader ignores blanks around it; the pattern of a CRD does not.
            if not _QUANTITY.fullmatch(value.strip() if schema.fractions else value):
                seen = f"is {display(value)}, which is not a quantity"
                yield _mistake(path, seen, "write, for example, 8, 500m or 1124Gi")
        case _:
            if not _is_plain(value, schema):
                yield _wrong_kind(value, schema, path)


def _is_plain(value: object, schema: Schema) -> bool:
    """Return whether a value has the type of a schema without limits."""
    match schema:
        case Free():
            return True
        case Amount(fractions=True):
            return isinstance(value, float)
        case Budget():
            return isinstance(value, str)
        case Number():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(schema, Switch) and isinstance(value, bool)


def _text(value: str, schema: Text, path: str) -> Iterator[Finding]:
    """Report a string with a wrong word, length or pattern; very long strings are not matched."""
    if schema.one_of and value not in schema.one_of:
        words = [word for word in schema.one_of if word]  # an empty one is no word to write
        listed = " or ".join(f"'{word}'" for word in words)
        yield _mistake(path, f"is {display(value)}, but must be {listed}", suggest(value, words))
    if schema.longest is not None and len(value) > schema.longest:
        seen = f"has {len(value)} characters, but may have {schema.longest}"
        yield _mistake(path, seen, f"shorten it by {len(value) - schema.longest}")
    elif len(value) < schema.shortest:
        seen = f"has {count_of(len(value), 'character')}, but must have at least {schema.shortest}"
        yield _mistake(path, seen, "write a longer string")
    elif len(value) > _LONGEST_MATCHED:
        return
    elif schema.pattern and not matcher(schema.pattern)(value):
        seen = f"is {display(value)}, which does not match {schema.pattern}"
        yield _mistake(path, seen, "write a string that matches")
    elif schema.format and not matcher(FORMATS[schema.format][0])(value):
        _, name, example = FORMATS[schema.format]
        yield _mistake(path, f"is {display(value)}, which is not {name}", f"write {example}")


@cache
def matcher(pattern: str) -> Callable[[str], object]:
    """Compile a pattern of Go, where `$` is the end of the text and digits are ASCII.

    There, a flag may also come after `^`.
    """
    anywhere = re.sub(r"^\^\(\?i\)", "(?i)^", pattern)
    return re.compile(re.sub(r"(?<!\\)\$(?![^\[]*\])", r"\\Z", anywhere), re.ASCII).search


def _number(value: int, schema: Whole, path: str) -> Iterator[Finding]:
    """Report a number outside of its bits or its range."""
    most = 2 ** (schema.bits - 1) - 1
    if not -most - 1 <= value <= most:
        seen = f"is {display(value)}, but must be from {-most - 1} to {most}"
        yield _mistake(path, seen, "write a number in that range")
    elif schema.one_of and value not in schema.one_of:
        words = " or ".join(map(str, schema.one_of))
        yield _mistake(path, f"is {value}, but must be {words}", f"write {schema.one_of[0]}")
    elif schema.least is not None and value < schema.least:
        seen = f"is {value}, but must be at least {schema.least}"
        yield _mistake(path, seen, f"write {schema.least} or more")
    elif schema.most is not None and value > schema.most:
        seen = f"is {value}, but may be at most {schema.most}"
        yield _mistake(path, seen, f"write {schema.most} or less")


def _wrong_kind(value: object, schema: Schema, path: str) -> Finding:
    """Report a value of another type than the schema's."""
    if path in NAMES and isinstance(value, int | float):
        return no_name(value, path, SCHEMA)
    quoted = "write it in quotes" if isinstance(value, int | float) else "write a string"
    match schema:
        case Text():
            wanted, remedy = "a string", quoted
        case Switch():
            wanted, remedy = "true or false", "write true or false"
        case Whole():
            wanted, remedy = "a whole number", "write, for example, 1, without quotes"
        case Number():
            wanted, remedy = "a number", "write, for example, 0.5, without quotes"
        case Budget():
            wanted, remedy = "a whole number or a percentage", "write, for example, 1 or 25%"
        case Amount():
            wanted, remedy = "a whole number or a string", quoted
        case Items():
            wanted, remedy = "a list", "write a list"
        case _:
            wanted, remedy = "a map", "write a map"
    remedy = _shaped(value, schema) or remedy
    of = schema.of if isinstance(schema, Table) else schema
    secret = isinstance(of, Text) and of.format == "password"
    shown = (_HIDDEN.get(type(value)) if secret else None) or display(value)
    return _mistake(path, f"is {shown}, but must be {wanted}", remedy)


def _shaped(value: object, schema: Schema) -> Remedy | None:
    """Return what to write instead of a value of a wrong kind that shows what is meant."""
    if isinstance(value, str) and (bare := without_quotes(value)) is not None:
        fits = next(check_shape(bare, schema), None) is None
        return write(bare, f"write {value}, without quotes") if fits else None
    item = schema.of if isinstance(schema, Items) else schema
    if not isinstance(item, Fields):
        return None
    if isinstance(value, str) and "name" in item.fields and {*item.required} <= {"name"}:
        named, shown = {"name": value}, f"{{name: {display(value)}}}"
        in_list = write([named], f"write a list: [{shown}]")
        return write(named, f"write a map: {shown}") if item is schema else in_list
    known = is_map(value) and value and {*value} <= item.fields.keys()
    return write([value], "write a list with it: [ … ]") if known and item is not schema else None


def _doubles(
    items: list[Any] | tuple[Any, ...], keys: tuple[str, ...], path: str
) -> Iterator[Finding]:
    """Report list items with equal keys, which the API server refuses."""
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
    """Give what a member of a list is told apart by; None for one that is not a map."""
    if not is_map(item):
        return None
    named = [(key, item.get(key)) for key in keys]
    return tuple([_KEY_DEFAULTS.get(key) if value is None else value for key, value in named])


def _twice(items: list[Any] | tuple[Any, ...], path: str) -> Iterator[Finding]:
    seen = "is already in the list, and the API server rejects duplicates here"
    plain = [item if isinstance(item, str | int | float) else None for item in items]
    for index, item in enumerate(plain):
        if item is not None and not unknown_in(item) and item in plain[:index]:
            yield _mistake(f"{path}[{index}]", f"{display(item)} {seen}", remove())


def _mistake(path: str, seen: str, remedy: str) -> Finding:
    return Finding(path=path, seen=seen, remedy=remedy, rule=SCHEMA)
