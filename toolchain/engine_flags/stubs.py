"""Stubs for the modules that an engine's parser imports and that are not installed.

An engine builds its parser from its configuration classes, which import PyTorch and two dozen other
packages. None of these packages defines an option. Each missing module is replaced by a stub in
which every name is a class that can be called, subclassed and used in expressions, so that the
engine's own code can finish.
"""

import abc
import importlib.abc
import importlib.machinery
import importlib.metadata
import re
import sys
import types
from collections.abc import Iterator, MutableSequence, Sequence
from typing import Any

VERSION = "99.0.0"
"""The version of all missing packages."""
_ABSENT = frozenset(
    {"amdsmi", "habana_frameworks", "intel_extension_for_pytorch", "libtpu", "optimum"}
    | {"torch_neuronx", "torch_xla", "tpu_commons", "tpu_inference", "transformers_neuronx"}
)
"""Packages of other platforms than CUDA. An engine checks whether they are installed."""
_STUBBED = frozenset({"pandas"})
"""Packages that get stubs even if they are installed: they fail with stubs of what they import."""
_VALUES: dict[str, Any] = {
    "custom_op": lambda *_, **__: lambda _: Stub(),
    "get_device_capability": lambda *_: (9, 0),
    "infer_schema": lambda *_, **__: "() -> ()",
}
"""Values that an engine parses or inspects: an H100's version, an operator and its schema."""
_SELF = ("__add__", "__sub__", "__mul__", "__truediv__", "__or__", "__and__", "__invert__")
_OTHER = ("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__ror__", "__rand__")


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


class _Computed:
    """Behavior of both a stub and its class."""

    def __getattr__(self, name: str) -> Any:
        if _is_special(name):
            raise AttributeError(name)
        return _VALUES.get(name) or make_stub(name)

    def __getitem__(self, key: object) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __contains__(self, item: object) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __lt__(self, other: object) -> bool:
        return False

    def __ge__(self, other: object) -> bool:
        return True

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __int__(self) -> int:
        return 0

    __index__ = __int__
    __gt__, __le__ = __lt__, __ge__

    def __float__(self) -> float:
        return 0.0

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(self, Stub) and isinstance(other, Stub))

    def __hash__(self) -> int:
        return hash(type(self).__name__)


for _name in _SELF:
    setattr(_Computed, _name, lambda self, *_: self)
for _name in _OTHER:
    setattr(_Computed, _name, lambda _, other: other)


class _StubType(_Computed, abc.ABCMeta):
    """The metaclass of stubs: an ABCMeta, so that a class can inherit from a stub and an ABC."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__dict__.get("_is_stub") and len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]  # a decorator
        return abc.ABCMeta.__call__(cls, *args, **kwargs)

    def __bool__(cls) -> bool:
        return not cls.__dict__.get("_is_stub")

    def register(cls, *args: Any, **_: Any) -> Any:
        """Accept a registration. ABCMeta has a method of the same name."""
        return args[0] if args else None

    def __eq__(cls, other: object) -> bool:
        return cls is other

    def __hash__(cls) -> int:
        return id(cls)


class Stub(_Computed, metaclass=_StubType):
    """Anything that an engine imports from a missing module."""

    _is_stub = True

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def __init_subclass__(cls, **kwargs: Any) -> None: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the decorated object, or a new stub."""
        decorates = len(args) == 1 and not kwargs and callable(args[0])
        return args[0] if decorates else Stub()

    @classmethod
    def __get_pydantic_core_schema__(cls, *args: Any) -> Any:
        from pydantic_core import core_schema  # noqa: PLC0415 - SGLang has no pydantic to read

        return core_schema.any_schema()


def make_stub(name: str) -> Any:
    """Create a stub class with a name."""
    return _StubType(name, (Stub,), {"_is_stub": True, "__module__": __name__})


def is_stubbed(value: object) -> bool:
    """Return whether a value comes from a missing module."""
    return isinstance(value, Stub) or (isinstance(value, type) and "_is_stub" in vars(value))


class _Module(types.ModuleType):
    __path__: MutableSequence[str] = []  # noqa: RUF012 - never changed
    __file__ = ""
    __version__ = VERSION

    def __getattr__(self, name: str) -> Any:
        if _is_special(name):
            raise AttributeError(name)
        value = _VALUES.get(name) or make_stub(name)
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules that no other finder has found."""

    def __init__(self, engine: str) -> None:
        self.engine = engine

    def find_spec(
        self, name: str, *_: Sequence[str] | types.ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find any module."""
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top in _ABSENT:
            return None
        if top != self.engine and importlib.machinery.PathFinder.find_spec(top) is not None:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


class _Instead(_Finder):
    """Finds the modules that get stubs even if they are installed."""

    def find_spec(
        self, name: str, *_: Sequence[str] | types.ModuleType | None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module of these packages."""
        is_ours = name.partition(".")[0] in _STUBBED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_ours else None


def install(engine: str) -> None:
    """Install stubs for all missing modules.

    Args:
        engine: The package whose parser runs. Its missing and compiled modules get stubs, too.
    """
    sys.meta_path.insert(0, _Instead(engine))
    sys.meta_path.append(_Finder(engine))
    sys.modules["regex"] = re
    real = importlib.metadata.version

    def version(distribution_name: str) -> str:
        try:
            return real(distribution_name)
        except importlib.metadata.PackageNotFoundError:
            return VERSION

    importlib.metadata.version = version
