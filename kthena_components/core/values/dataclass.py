"""Dataclasses that are cheap to define: `check` defines more than 200 before it reads a file.

The standard library compiles up to six methods of each class, which takes a third of the start of
`check`. Here, three of them are not compiled, since only the names of the fields differ.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

Class = TypeVar("Class", bound=type)


@dataclass_transform(field_specifiers=(dataclasses.field,))
def dataclass(
    *,
    frozen: bool = False,
    slots: bool = False,
    kw_only: bool = False,
    eq: bool = True,
    order: bool = False,
) -> Callable[[Class], Class]:
    """Define a class like `dataclasses.dataclass`."""

    def define(cls: Class) -> Class:
        own = set(vars(cls))
        made: Any = dataclasses.dataclass(
            frozen=frozen, slots=slots, kw_only=kw_only, eq=order, order=order, repr=False
        )(cls)
        fields = dataclasses.fields(made)
        if "__repr__" not in own:
            made.__repr__ = _repr(tuple(field.name for field in fields if field.repr))
        if eq and not order and "__eq__" not in own:
            made.__eq__ = _equal(tuple(field.name for field in fields if field.compare))
        if eq and not order and "__hash__" not in own:
            hashed = (field for field in fields if field.compare and field.hash is not False)
            made.__hash__ = _hash(tuple(field.name for field in hashed)) if frozen else None
        return cast("Class", made)

    return define


def _repr(names: tuple[str, ...]) -> Callable[[Any], str]:
    def shown(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return shown


def _equal(names: tuple[str, ...]) -> Callable[[Any, object], Any]:
    values = attrgetter("__class__", *names)

    def equal(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return equal


def _hash(names: tuple[str, ...]) -> Callable[[Any], int]:
    values = attrgetter("__class__", *names)
    return lambda self: hash(values(self))
