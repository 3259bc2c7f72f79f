"""Finds the smallest object on which the two sides still differ."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from conformance.validation.random_damage import holder_of, places

Body = dict[str, Any]
_TRIES = 600
"""Maximum number of tries. The object is then small enough to read."""
_LONG = 8


def shrink(body: Body, differs: Callable[[Body], bool]) -> Body:
    """Remove parts one by one while the two sides still differ."""
    tries, found = 0, True
    while found and tries < _TRIES:
        found = False
        for smaller in _smaller(body):
            tries += 1
            if differs(smaller):
                body, found = smaller, True
                break
            if tries >= _TRIES:
                break
    return body


def _smaller(body: Body) -> Iterator[Body]:
    """Yield smaller copies: without a branch first, then with half of a long string."""
    listed = [place for place in places(body) if place not in {("kind",), ("apiVersion",)}]
    for place in sorted(listed, key=len):
        copied = copy.deepcopy(body)
        del holder_of(copied, place)[place[-1]]
        yield copied
    for place in listed:
        value = holder_of(body, place)[place[-1]]
        if isinstance(value, str) and len(value) > _LONG:
            for half in (value[: len(value) // 2], value[:-1]):
                copied = copy.deepcopy(body)
                holder_of(copied, place)[place[-1]] = half
                yield copied
