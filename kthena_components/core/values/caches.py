"""Memory for pure functions: of short texts, and of the last object."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")
_TEXTS, _LONGEST = 4096, 256


def cached_by_text(function: Callable[[str], T]) -> Callable[[str], T]:
    """Let a pure function remember what it gave for the last texts: they come up again and again.

    Long ones are not kept. They hardly ever repeat, and whoever writes them could fill the memory.
    """
    known = lru_cache(maxsize=_TEXTS)(function)

    @wraps(function)
    def quick(text: str) -> T:
        return known(text) if len(text) <= _LONGEST else function(text)

    return quick


def cached_last(function: Callable[[S], T]) -> Callable[[S], T]:
    """Let a pure function remember what it gave for the last object, which several callers read.

    It is the same object, and not an equal one, so objects need no hash.
    """

    @lru_cache(maxsize=1)
    def known(same: _Same[S]) -> T:
        return function(same.value)

    @wraps(function)
    def quick(value: S) -> T:
        return known(_Same(value))

    return quick


class _Same(Generic[S]):
    """An object by its identity."""

    __slots__ = ("value",)

    def __init__(self, value: S) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value
