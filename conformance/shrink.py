"""The smallest object on which both sides still differ."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from conformance.damage import holder_of, places

Body = dict[str, Any]
_TRIES = 600
"""No object takes longer than that; then it is small enough to be read."""
_LONG = 8


def shrink(body: Body, differs: Callable[[Body], bool]) -> Body:
    """Take things away, one at a time, for as long as both sides still differ."""
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
    """Yield copies with less in them: whole branches first, then half of a long text."""
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
