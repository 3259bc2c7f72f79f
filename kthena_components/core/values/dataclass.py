"""Dataclasses that are cheap to define: `check` defines more than 200 before it reads a file.

The standard library compiles up to six methods of each class, which takes a third of the start of
`check`. Here, only `__init__` is compiled, and only when the first object of a class is made: a run
makes objects of few of them. The other methods differ only in the names of the fields.
"""

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast, dataclass_transform

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
        """Turn a class into a dataclass whose methods are made when they are first needed."""
        own = set(vars(cls))
        made: Any = dataclasses.dataclass(
            init=False, slots=slots, kw_only=kw_only, eq=order, order=order, repr=False
        )(cls)
        fields = dataclasses.fields(made)
        if "__init__" not in own:
            made.__init__ = _late_init(made, frozen=frozen)
        if "__repr__" not in own:
            made.__repr__ = _repr(tuple(field.name for field in fields if field.repr))
        if eq and not order and "__eq__" not in own:
            made.__eq__ = _equal(tuple(field.name for field in fields if field.compare))
        if eq and "__hash__" not in own:
            hashed = (field for field in fields if field.compare and field.hash is not False)
            made.__hash__ = _hash(tuple(field.name for field in hashed)) if frozen else None
        if frozen:
            made.__setattr__, made.__delattr__ = _frozen("assign to"), _frozen("delete")
            made.__getstate__, made.__setstate__ = _state, _restore
        return cast("Class", made)

    return define


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: PLC0414 - exported
else:

    def replace(given: Any, /, **changes: Any) -> Any:
        """Do what `dataclasses.replace` does, in half of the time."""
        cls = given.__class__
        copied = _COPIED.get(cls)
        if copied is None:
            copied = _COPIED[cls] = _copying(cls)
        return copied(given, **changes)


_COPIED: dict[type, Callable[..., Any]] = {}


def _copying(cls: Any) -> Callable[..., Any]:
    """Compile a function that copies objects of a class, if its `__init__` does nothing more."""
    fields = dataclasses.fields(cls)
    if hasattr(cls, "__post_init__") or not all(field.init for field in fields):
        return dataclasses.replace
    known: dict[str, Any] = {"__new": object.__new__, "__cls": cls, "__same": object()}
    lines, in_dict = ["__made = __new(__cls)"], list[str]()
    for name in (field.name for field in fields):
        value = f"__given.{name} if {name} is __same else {name}"
        if isinstance(slot := getattr(cls, name, None), MemberDescriptorType):
            known[f"__put_{name}"] = slot.__set__
            lines.append(f"__put_{name}(__made, {value})")
        else:
            in_dict.append(f"{name}={value}")
    if in_dict:
        lines.append(f"__made.__dict__.update({', '.join(in_dict)})")
    names = ", ".join(f"{field.name}=__same" for field in fields)
    text = "\n    ".join([f"def copied(__given, /, *, {names}):", *lines, "return __made"])
    exec(text, known)  # noqa: S102 - it has nothing but the names of our own fields
    copied: Callable[..., Any] = known["copied"]
    return copied


def _late_init(made: Any, *, frozen: bool) -> Callable[..., None]:
    """Return an `__init__` that compiles the real one, which takes its place."""

    def first(self: Any, *values: Any, **named: Any) -> None:
        made.__init__ = _init(made, frozen=frozen)
        made.__init__(self, *values, **named)

    return first


def _init(made: Any, *, frozen: bool) -> Callable[..., None]:
    """Compile the `__init__` of a class."""
    known: dict[str, Any] = {"MISSING": dataclasses.MISSING}
    before, behind, lines = ["self"], ["*"], list[str]()
    in_dict: list[str] = []
    for field in dataclasses.fields(made):
        name, value, usual = field.name, field.name, ""
        if field.default is not dataclasses.MISSING:
            known[f"usual_{name}"], usual = field.default, f"=usual_{name}"
            value = name if field.init else f"usual_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"make_{name}"], usual = field.default_factory, "=MISSING"
            value = f"make_{name}()" + (f" if {name} is MISSING else {name}" if field.init else "")
        elif not field.init:
            continue
        if field.init:
            (behind if field.kw_only else before).append(f"{name}{usual}")
        if not frozen:
            lines.append(f"self.{name} = {value}")
        elif isinstance(slot := getattr(made, name, None), MemberDescriptorType):
            known[f"put_{name}"] = slot.__set__
            lines.append(f"put_{name}(self, {value})")
        else:
            in_dict.append(f"{name}={value}")
    if in_dict:  # a class without slots: all at once, because there may be more than 50
        lines.append(f"self.__dict__.update({', '.join(in_dict)})")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(before + (behind if len(behind) > 1 else []))
    text = "\n    ".join([f"def __init__({parameters}):", *lines, "pass"])
    exec(text, known)  # noqa: S102 - it has nothing but the names of our own fields
    compiled: Callable[..., None] = known["__init__"]
    compiled.__qualname__ = f"{made.__qualname__}.__init__"
    return compiled


def _frozen(what: str) -> Callable[..., NoReturn]:
    def refuse(_: Any, name: str, *__: Any) -> NoReturn:
        raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")

    return refuse


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _repr(names: tuple[str, ...]) -> Callable[[Any], str]:
    def shown(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({values})"

    return shown


def _equal(names: tuple[str, ...]) -> Callable[[Any, object], Any]:
    """Return an __eq__ that compares fields of the same class only."""
    values = attrgetter("__class__", *names)

    def equal(self: Any, other: object) -> Any:
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return equal


def _hash(names: tuple[str, ...]) -> Callable[[Any], int]:
    values = attrgetter("__class__", *names)
    return lambda self: hash(values(self))
