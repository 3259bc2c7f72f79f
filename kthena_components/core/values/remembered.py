"""Memory for pure functions of short texts: the same come up in object after object."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

T = TypeVar("T")
_TEXTS, _LONGEST = 4096, 256


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """Let a pure function remember what it gave for the last texts.

    Long ones are not kept. They hardly ever repeat, and whoever writes them could fill the memory.
    """
    known = lru_cache(maxsize=_TEXTS)(function)

    @wraps(function)
    def quick(text: str) -> T:
        return known(text) if len(text) <= _LONGEST else function(text)

    return quick
