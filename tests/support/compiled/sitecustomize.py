"""Keeps compiled modules of the package by their source, for processes with this on PYTHONPATH.

A review runs the package from a new folder each time, and tests copy it to others. Python keeps
compiled modules by folder, so each of these processes would compile hundreds of modules anew.
"""

import _imp
import marshal
import os
import sys
import time
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import Any

_PACKAGE = f"{os.sep}kthena_components{os.sep}"
_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib loads slowly
_CHECKOUT = _HERE.removesuffix(os.sep.join(("", "tests", "support", "compiled")))  # noqa: PTH118
_KEPT = os.path.join(_HERE, "__pycache__")  # noqa: PTH118
"""`make clean` removes it, and git ignores it."""
_SECONDS = 2
"""After which no change of a source can fall into the second of its last one."""
_ERRORS = (OSError, EOFError, ValueError, TypeError)
_compile: Any = SourceFileLoader.source_to_code
_write: Any = SourceFileLoader._cache_bytecode  # type: ignore[attr-defined]


def _is_copy(path: str) -> bool:
    """Tell whether a module is one of a copy of the package."""
    return _PACKAGE in path and not path.startswith(f"{_CHECKOUT}{_PACKAGE}")


def _source_to_code(loader: object, data: bytes, path: str, *, _optimize: int = -1) -> CodeType:
    """Compile a module, unless one with the same source was compiled."""
    if not _is_copy(path):
        made: CodeType = _compile(loader, data, path, _optimize=_optimize)
        return made
    of = f"{_imp.source_hash(0, data).hex()}-{len(data)}.{sys.implementation.cache_tag}"
    file = f"{_KEPT}{os.sep}{of}{sys.flags.optimize}"
    with suppress(*_ERRORS), open(file, "rb") as kept:  # noqa: PTH123
        made = marshal.loads(kept.read())  # noqa: S302 - written below
        _imp._fix_co_filename(made, path)  # type: ignore[attr-defined]
        return made
    made = _compile(loader, data, path, _optimize=_optimize)
    with suppress(OSError):
        os.makedirs(_KEPT, exist_ok=True)  # noqa: PTH103
        with open(begun := f"{file}.{os.getpid()}", "wb") as kept:  # noqa: PTH123
            kept.write(marshal.dumps(made))
        os.replace(begun, file)  # noqa: PTH105 - all of it at once: others read it
    return made


def _cache_bytecode(loader: object, source: str, compiled: str, data: bytes) -> None:
    """Write a compiled module beside its source, unless it is kept here or may go stale unseen.

    Python knows a source by its size and the second of its last change. A program that a test
    writes, runs and writes again within a second would run as it was first.
    """
    if not _is_copy(source) and time.time() - os.stat(source).st_mtime > _SECONDS:  # noqa: PTH116
        _write(loader, source, compiled, data)


SourceFileLoader.source_to_code = _source_to_code  # type: ignore[assignment,method-assign]
SourceFileLoader._cache_bytecode = _cache_bytecode  # type: ignore[attr-defined]
