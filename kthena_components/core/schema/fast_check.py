"""A quick test of whether a value surely has a shape.

Most objects are valid. The test is several times faster than the walk that reports what is wrong
(language.py); where it does not say yes, that walk decides.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from kthena_components.core.findings import Finding
from kthena_components.core.schema.language import (
    Amount,
    Budget,
    Fields,
    Free,
    Items,
    Schema,
    Switch,
    Table,
    Text,
    Whole,
    check_shape,
    key_values,
    matcher,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

Test = Callable[[object], bool]
_LEAST, _MOST = -(2**31), 2**31 - 1
_LONGEST = 4096
_PLAIN_AMOUNT = regex(r"[0-9]{1,18}(?:[KMGTPE]i|[numkMGTPE])?")
"""Matches most amounts: the walk checks the others."""
_SCALARS = {str, int, type(None)}


def check_quickly(value: object, schema: Schema, path: str = "") -> Iterator[Finding]:
    """Say where a value does not have a shape, and walk through it only if there may be a place."""
    if not quick_test(schema)(value):
        yield from check_shape(value, schema, path)


@cache
def quick_test(schema: Schema) -> Test:
    """Compile the test of a shape. Parts without a quick test are left to the walk."""
    match schema:
        case Table():
            test = _table_test(schema)
        case Items(is_set=False):
            test = _items_test(schema)
        case Fields():
            test = _fields_test(schema)
        case Text():
            test = _text_test(schema)
        case Whole():
            test = _whole_test(schema)
        case _:
            test = _OF_SCALARS.get(type(schema), _unsure)
    return test


def _is_text(value: object) -> bool:
    return type(value) is str


def _is_small(value: object) -> bool:
    return type(value) is int and _LEAST <= value <= _MOST


def _is_amount(value: object) -> bool:
    return _is_small(value) if type(value) is not str else bool(_PLAIN_AMOUNT.fullmatch(value))


def _is_budget(value: object) -> bool:
    return (type(value) is str and not is_unresolved(value)) or _is_small(value)


def _is_switch(value: object) -> bool:
    return value is True or value is False


def _is_anything(_value: object) -> bool:
    return True


def _unsure(_value: object) -> bool:
    return False


_OF_SCALARS: Mapping[type, Test] = {
    Amount: _is_amount,
    Budget: _is_budget,
    Free: _is_anything,
    Switch: _is_switch,
}


def _text_test(schema: Text) -> Test:
    """Compile a test of a string: its length, words and pattern; False may still be right."""
    if schema == Text():
        return _is_text
    if schema.format:
        return _unsure
    words, least = frozenset(schema.one_of), schema.shortest
    most = _LONGEST if schema.longest is None else schema.longest
    form = matcher(schema.pattern)

    def fits(value: object) -> bool:
        if type(value) is not str or is_unresolved(value) or not least <= len(value) <= most:
            return False
        return (not words or value in words) and form(value) is not None

    return fits


def _whole_test(schema: Whole) -> Test:
    if schema.one_of:
        return _unsure
    least = _LEAST if schema.least is None else max(schema.least, _LEAST)
    most = _MOST if schema.most is None else min(schema.most, _MOST)

    def fits(value: object) -> bool:
        return type(value) is int and least <= value <= most

    return fits


def _table_test(schema: Table) -> Test:
    if schema.fewest or schema.most is not None:
        return _unsure
    test = quick_test(schema.of)

    def every(value: object) -> bool:
        return type(value) is dict and all(map(test, value.values()))

    return every


def _items_test(schema: Items) -> Test:
    """Compile a test of a list: each item, their number, and keys that differ."""
    test, keys, fewest, most = quick_test(schema.of), schema.keys, schema.fewest, schema.most

    def every(value: object) -> bool:
        if type(value) is not list or not all(map(test, value)):
            return False
        if len(value) < fewest or (most is not None and len(value) > most):
            return False
        return not keys or _all_differ(value, keys)

    return every


def _all_differ(items: list[object], keys: tuple[str, ...]) -> bool:
    """Tell whether surely no two members share their keys."""
    found = set()
    for item in items:
        values = key_values(item, keys)
        if values is None or any(type(v) not in _SCALARS or is_unresolved(v) for v in values):
            return False
        found.add(values)
    return len(found) == len(items)


def _fields_test(schema: Fields) -> Test:
    """Compile a test of a map: required fields are given, and no undeclared one is."""
    tests = {name: quick_test(field) for name, field in schema.fields.items()}
    required, partial = schema.required, schema.partial
    if schema.fewest or schema.most is not None:
        return _unsure

    def every(value: object) -> bool:
        """Return whether a value surely has the fields; a null counts as not given."""
        if type(value) is not dict:
            return False
        for key in required:
            if value.get(key) is None:
                return False
        for key, item in value.items():
            test = tests.get(key)
            if test is None:
                if not partial:
                    return False
            elif item is not None and not test(item):
                return False
        return True

    return every
