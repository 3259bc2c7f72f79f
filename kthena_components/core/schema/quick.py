"""Compiles a shape to one quick test: whether a value definitely has it.

Most values are valid. The test is several times faster than the walk that reports mistakes
(kthena_shape.py), which only runs if the test fails.
"""

import re
from collections.abc import Callable, Mapping

from kthena_components.core.schema.language import (
    Amount,
    Budget,
    Fields,
    Items,
    Schema,
    Since,
    Switch,
    Table,
    Text,
    Whole,
)
from kthena_components.core.values.unknown import is_unresolved

Test = Callable[[object], bool]
_LEAST, _MOST = -(2**31), 2**31 - 1
_PLAIN_AMOUNT = re.compile(r"[0-9]{1,18}(?:[KMGTPE]i|[numkMGTPE])?")
"""Matches most amounts: the walk checks the others."""


def quick_test(schema: Schema | Since) -> Test:
    """Compile the test of a shape. Parts without a quick test are left to the walk."""
    match schema:
        case Table(of=inner):
            test = _table_test(quick_test(inner))
        case Items(of=inner, keys=()):
            test = _items_test(quick_test(inner))
        case Fields(partial=True):
            test = _fields_test(schema)
        case Text(one_of=(), longest=None) | Whole(least=None) | Amount() | Budget() | Switch():
            test = _OF_SCALARS[type(schema)]
        case _:
            test = _unsure
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


def _unsure(_value: object) -> bool:
    return False


_OF_SCALARS: Mapping[type, Test] = {
    Text: _is_text,
    Whole: _is_small,
    Amount: _is_amount,
    Budget: _is_budget,
    Switch: _is_switch,
}


def _table_test(test: Test) -> Test:
    def every(value: object) -> bool:
        if type(value) is not dict:
            return False
        return all(item is None or test(item) for item in value.values())

    return every


def _items_test(test: Test) -> Test:
    def every(value: object) -> bool:
        return type(value) is list and all(map(test, value))

    return every


def _fields_test(schema: Fields) -> Test:
    tests = {name: quick_test(field) for name, field in schema.fields.items()}
    required = schema.required

    def every(value: object) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            if item is not None and (test := tests.get(key)) is not None and not test(item):
                return False
        return all(value.get(key) is not None for key in required)

    return every
