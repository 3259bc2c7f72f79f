"""Keeps what was computed of a cluster, so that its changed copies reuse it. Pure."""

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class Computed:
    """What was computed of objects, by their identities. A change makes a new object."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._found: dict[Hashable, tuple[object, Any]] = {}

    def of(self, name: Hashable, kept: tuple[object, ...], compute: Callable[[], T]) -> T:
        """Return what a function computes of some objects, and call it only once.

        Args:
            name: What is computed, with all that decides about it besides the objects.
            kept: The objects. They are kept, so that no others get their identities.
            compute: Computes it.
        """
        key = (name, *map(id, kept))
        if (known := self._found.get(key)) is None:
            known = self._found[key] = kept, compute()
        found: T = known[1]
        return found
