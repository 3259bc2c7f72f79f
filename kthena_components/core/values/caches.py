"""Memory for pure functions: of short strings, and of the last objects."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
_TEXTS, _LONGEST = 4096, 256


def cached_by_text(function: Callable[[str], T]) -> Callable[[str], T]:
    """Let a pure function remember what it gave for the last strings: they come up again and again.

    Long ones are not kept. They hardly ever repeat, and whoever writes them could fill the memory.
    """
    known = lru_cache(maxsize=_TEXTS)(function)

    @wraps(function)
    def quick(text: str) -> T:
        return known(text) if len(text) <= _LONGEST else function(text)

    return quick


def cached_last(function: Callable[[S], T]) -> Callable[[S], T]:
    """Let a pure function remember what it gave for the last object, which several callers read."""
    known: tuple[Any, Any] = (object(), None)
    """The object and its result, which are replaced together: other threads may read them."""

    @wraps(function)
    def quick(value: S) -> T:
        nonlocal known
        last, made = known
        if last is not value:
            made = function(value)
            known = value, made
        result: T = made
        return result

    return quick


def cached_by_object(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a pure function remember what it gave for the last objects, which several callers read.

    They are the same objects, and not equal ones, so they need no hash.

    Args:
        most: Maximum number of results. The function's first argument is the object.
    """

    def remembering(function: Callable[P, T]) -> Callable[P, T]:
        """Remember the results of the last `most` objects, which are compared by identity."""
        plain: Callable[..., T] = function
        known: dict[object, tuple[Any, T]] = {}
        """Results by the identity of an object and the options. Each is kept with its object, so no
        other object has the same identity meanwhile."""

        @wraps(function)
        def quick(value: Any, **options: Any) -> T:
            key = (id(value), *options.items()) if options else id(value)
            found = known.get(key)
            if found is not None:
                return found[1]
            made = plain(value, **options)
            if len(known) >= most:
                known.clear()
            known[key] = (value, made)
            return made

        return quick  # type: ignore[return-value]  # the same arguments, which no type can say

    return remembering
