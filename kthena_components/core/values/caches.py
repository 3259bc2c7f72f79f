"""Memory for pure functions: of short texts, and of the last objects."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
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
    """Let a pure function remember what it gave for the last object, which several callers read."""
    return cached_by_object(1)(function)


def cached_by_object(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a pure function remember what it gave for the last objects, which several callers read.

    They are the same objects, and not equal ones, so they need no hash.

    Args:
        most: Maximum number of results. The function's first argument is the object.
    """

    def remembering(function: Callable[P, T]) -> Callable[P, T]:
        """Remember the results of the last `most` objects, which are compared by identity."""
        plain: Callable[..., T] = function

        @lru_cache(maxsize=most)
        def known(same: _Same[Any], **options: Any) -> T:
            return plain(same.value, **options)

        @wraps(function)
        def quick(value: Any, **options: Any) -> T:
            return known(_Same(value), **options)

        return quick  # type: ignore[return-value]  # the same arguments, which no type can say

    return remembering


class _Same(Generic[S]):
    """An object by its identity."""

    __slots__ = ("value",)

    def __init__(self, value: S) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value
