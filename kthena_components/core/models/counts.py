"""Reads counts in a config.json."""

from collections.abc import Iterable, Mapping
from typing import Any

_MOST = 2**31 - 1


def size_of(value: object) -> int | None:
    """Return a count above zero, else None. Policies see 8 as 8.0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 1 <= value <= _MOST and value == int(value) else None


def first_size(text: Mapping[str, Any], keys: Iterable[str]) -> int | None:
    """Return the first count among some keys; of ERNIE's list of counts, the first."""
    values = (text.get(key) for key in keys)
    firsts = (value[0] if isinstance(value, list | tuple) and value else value for value in values)
    return next((size for size in map(size_of, firsts) if size is not None), None)
