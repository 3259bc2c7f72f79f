"""A stub for msgspec's structures. SGLang (0.5.20 and later) derives its options from their fields.

An ordinary stub has no fields. This one supports only declarations and `msgspec.structs.fields`:
see https://jcristharif.com/msgspec/api.html#structs.
"""

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from toolchain.engine_flags.stubs import make_stub


class NODEFAULT:
    """The mark of a field that has no default."""


class Field:
    """One field of a structure: the result of `msgspec.field`, and an item of `fields`."""

    def __init__(
        self, *, default: Any = NODEFAULT, default_factory: Any = NODEFAULT, name: str | None = None
    ) -> None:
        self.default = default
        self.default_factory: Callable[[], Any] | type[NODEFAULT] = default_factory
        self.name = self.encode_name = name or ""
        self.type: Any = None

    def bound(self, name: str, annotation: Any) -> "Field":
        """Return the field with its name in the class."""
        field = Field(default=self.default, default_factory=self.default_factory, name=name)
        field.type = annotation
        return field

    def value(self) -> Any:
        """Return the default."""
        factory = self.default_factory
        return factory() if factory is not NODEFAULT else self.default


class _StructType(type):
    """Collects the annotated names of a class, like msgspec's own metaclass."""

    # Here, not in Struct: every annotated name of a structure becomes a field.
    struct_fields: dict[str, Field]

    def __new__(
        cls, name: str, bases: tuple[type, ...], space: dict[str, Any], **_: Any
    ) -> "_StructType":
        fields: dict[str, Field] = {}
        for base in reversed(bases):
            fields |= getattr(base, "struct_fields", {})
        for field, annotation in space.get("__annotations__", {}).items():
            if not str(annotation).startswith(("ClassVar", "typing.ClassVar")):
                fields[field] = _field(space.get(field, NODEFAULT)).bound(field, annotation)
        return super().__new__(cls, name, bases, {**space, "struct_fields": fields})

    def __init__(cls, name: str, bases: tuple[type, ...], space: dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, space)


def _field(default: Any) -> Field:
    if isinstance(default, Field):
        return default
    empty = isinstance(default, (list, dict, set)) and not default
    return Field(default_factory=type(default)) if empty else Field(default=default)


class Struct(metaclass=_StructType):
    """The base class of all structures."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        fields = type(self).struct_fields
        given = dict(zip(fields, args, strict=False)) | kwargs
        for name, field in fields.items():
            object.__setattr__(self, name, given[name] if name in given else field.value())


def defstruct(
    name: str,
    fields: Iterable[tuple[Any, ...]],
    *,
    bases: tuple[type, ...] | None = None,
    namespace: Mapping[str, Any] | None = None,
    **_: Any,
) -> type:
    """Create a structure from (name, type) and (name, type, default)."""
    space = dict(namespace or {})
    stated = list(fields)
    space |= {field[0]: field[2] for field in stated if len(field) > 2}  # noqa: PLR2004 - as above
    space["__annotations__"] = {field[0]: field[1] for field in stated}
    return _StructType(name, bases or (Struct,), space)


class _Module(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return make_stub(name)


def _modules() -> dict[str, types.ModuleType]:
    msgspec, structs = _Module("msgspec"), _Module("msgspec.structs")
    vars(msgspec).update(
        {"NODEFAULT": NODEFAULT, "Struct": Struct, "defstruct": defstruct, "field": Field}
    )
    vars(msgspec).update({"__path__": [], "structs": structs})
    vars(structs)["fields"] = lambda struct: tuple(struct.struct_fields.values())
    return {"msgspec": msgspec, "msgspec.structs": structs}


MODULES = _modules()
"""The stubs for `sys.modules`."""
