"""A shape as one quick test: whether a value surely has it.

Most of what is judged is right. The test is several times as quick as the walk that says what is
wrong (language.py), and where it does not say yes, that walk decides.
"""

import re
from collections.abc import Callable, Mapping

from kthena_components.core.schema.language import (
    KEY_DEFAULTS,
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
    matcher,
)
from kthena_components.core.values.unknown import is_unresolved

Test = Callable[[object], bool]
_LEAST, _MOST = -(2**31), 2**31 - 1
_LONGEST = 4096
_PLAIN_AMOUNT = re.compile(r"[0-9]{1,18}(?:[KMGTPE]i|[numkMGTPE])?")
"""Most amounts: the rest is left to the walk."""


def quick_test(schema: Schema, made: dict[int, Test] | None = None) -> Test:
    """Make the test of a shape. What it has no quick test for is left to the walk.

    Args:
        schema: The shape.
        made: The tests of shapes that are parts of it, by their identity.
    """
    made = {} if made is None else made
    if id(schema) not in made:
        made[id(schema)] = _made(schema, made)
    return made[id(schema)]


def _made(schema: Schema, made: dict[int, Test]) -> Test:
    test = _OF_SCALARS.get(type(schema), _unsure)
    match schema:
        case Table(of=inner):
            test = _table_test(quick_test(inner, made))
        case Items(of=inner, is_set=False):
            test = _items_test(schema, quick_test(inner, made))
        case Fields():
            test = _fields_test(schema, made)
        case Text():
            test = _text_test(schema)
        case Whole():
            low, high = (_LEAST if schema.least is None else schema.least), schema.most
            test = _number_test(max(low, _LEAST), _MOST if high is None else min(high, _MOST))
        case _:
            pass
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


def _is_anything(_value: object) -> bool:
    return True


_OF_SCALARS: Mapping[type, Test] = {
    Free: _is_anything,
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


def _text_test(schema: Text) -> Test:
    if schema == Text():
        return _is_text
    words, least = frozenset(schema.one_of), schema.shortest
    most = _LONGEST if schema.longest is None else schema.longest
    form = matcher(schema.pattern)

    def fits(value: object) -> bool:
        if type(value) is not str or is_unresolved(value) or not least <= len(value) <= most:
            return False
        return (not words or value in words) and form(value) is not None

    return fits


def _number_test(low: int, high: int) -> Test:
    return lambda value: type(value) is int and low <= value <= high


def _items_test(schema: Items, test: Test) -> Test:
    keys, fewest, most = schema.keys, schema.fewest, schema.most

    def every(value: object) -> bool:
        if type(value) is not list or not all(map(test, value)):
            return False
        if len(value) < fewest or (most is not None and len(value) > most):
            return False
        return not keys or _differ(value, keys)

    return every


def _differ(items: list[object], keys: tuple[str, ...]) -> bool:
    """Tell whether no two members surely share their keys."""
    seen = set()
    for item in items:
        if type(item) is not dict:
            return False
        named = tuple(KEY_DEFAULTS.get(key) if (v := item.get(key)) is None else v for key in keys)
        if any(type(v) not in {str, int} or is_unresolved(v) for v in named) or named in seen:
            return False
        seen.add(named)
    return True


def _fields_test(schema: Fields, made: dict[int, Test]) -> Test:
    tests = {name: quick_test(field, made) for name, field in schema.fields.items()}
    required, other = schema.required, schema.partial

    def every(value: object) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            if item is None:
                continue
            test = tests.get(key)
            if not (other if test is None else test(item)):
                return False
        return all(value.get(key) is not None for key in required)

    return every
