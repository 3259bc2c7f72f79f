"""Compiles a shape to one quick test: whether a value definitely has it.

Most of what is judged is right. The test is several times as quick as the walk that says what is
wrong (language.py), and where it does not say yes, that walk decides.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache

from kthena_components.core.findings import Finding
from kthena_components.core.schema.language import (
    Amount,
    Budget,
    Fields,
    Free,
    Items,
    Ruled,
    Schema,
    Since,
    Switch,
    Table,
    Text,
    Whole,
    judge_shape,
    key_values,
)
from kthena_components.core.values.read import first_unknown
from kthena_components.core.values.unknown import is_unresolved

Test = Callable[[object], bool]
_LEAST, _MOST = -(2**31), 2**31 - 1
_PLAIN_AMOUNT = re.compile(r"[0-9]{1,18}(?:[KMGTPE]i|[numkMGTPE])?")
"""Matches most amounts: the walk checks the others."""


def judge_quickly(value: object, schema: Schema, version: str, path: str = "") -> Iterator[Finding]:
    """Say where a value does not have a shape, and walk through it only if there may be a place."""
    if not quick_test(schema, version)(value):
        yield from judge_shape(value, schema, version, path)


@cache
def quick_test(schema: Schema | Since | None, version: str) -> Test:
    """Compile the test of a shape. Parts without a quick test are left to the walk."""
    match schema:
        case Since():
            test = quick_test(schema.at(version), version)
        case Table():
            test = _table_test(quick_test(schema.of, version))
        case Items(is_set=False):
            test = _items_test(quick_test(schema.of, version), schema.keys)
        case Fields():
            test = _fields_test(schema, version)
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
    Ruled: _is_anything,
    Switch: _is_switch,
}


def _text_test(schema: Text) -> Test:
    words, longest = schema.one_of, schema.longest
    if not words and longest is None:
        return _is_text

    def fits(value: object) -> bool:
        if type(value) is not str or (words and value not in words) or is_unresolved(value):
            return False
        return longest is None or len(value) <= longest

    return fits


def _whole_test(schema: Whole) -> Test:
    least = _LEAST if schema.least is None else schema.least

    def fits(value: object) -> bool:
        return type(value) is int and least <= value <= _MOST

    return fits


def _table_test(test: Test) -> Test:
    def every(value: object) -> bool:
        return type(value) is dict and all(map(test, value.values()))

    return every


def _items_test(test: Test, keys: tuple[str, ...]) -> Test:
    def every(value: object) -> bool:
        if type(value) is not list or not all(map(test, value)):
            return False
        return not keys or _all_differ(value, keys)

    return every


def _all_differ(items: list[object], keys: tuple[str, ...]) -> bool:
    """Tell whether surely no two members share their keys, which are scalars by their own tests."""
    found = {key_values(item, keys) for item in items}
    return len(found) == len(items) and not any(first_unknown(*(of or ())) for of in found)


def _fields_test(schema: Fields, version: str) -> Test:
    tests = {name: quick_test(field, version) for name, field in schema.fields.items()}
    required, unknown = schema.required, _is_anything if schema.partial else _unsure

    def every(value: object) -> bool:
        if type(value) is not dict:
            return False
        for key in required:
            if value.get(key) is None:
                return False
        for key, item in value.items():
            test = tests.get(key, unknown)
            if item is not None and not test(item):
                return False
        return True

    return every
