"""Runs the parser of one unpacked SGLang release, and prints its options as JSON.

`sglang.read` starts this in a separate process, because it runs the release's code: only the
parser, with stubs for all packages that SGLang imports.
"""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import json
import logging
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolchain.engine_flags.msgspec_stub import MODULES
from toolchain.engine_flags.stubs import install, is_stubbed, make_stub

_STRICT = (
    "sglang.srt.arg_groups",
    "sglang.srt.function_call",
    "sglang.srt.parser",
    "sglang.srt.reasoning_parser",
    "sglang.srt.server_args",
    "sglang.srt.utils",
)
"""Modules with options and choices. If one of them fails, nothing is printed."""


class _Replaced(types.ModuleType):
    """A module of SGLang failed."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return make_stub(name)


class _Loader(importlib.machinery.SourceFileLoader):
    """Replaces a module by a stub if it needs more from a missing package than a stub provides."""

    def exec_module(self, module: types.ModuleType) -> None:
        try:
            super().exec_module(module)
        except Exception:
            # Mostly kernels and model classes: `getattr(torch, device)`, a pydantic schema.
            if module.__name__.startswith(_STRICT):
                raise
            replaced = _Replaced(module.__name__)
            for name in ("__file__", "__package__", "__path__", "__spec__"):
                if hasattr(module, name):
                    setattr(replaced, name, getattr(module, name))
            sys.modules[module.__name__] = replaced


class _NotLoaded(importlib.abc.Loader):
    """Replaces a compiled module of SGLang by a stub, so that its code does not run."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Replaced(spec.name)

    def exec_module(self, module: types.ModuleType) -> None: ...


class _Finder(importlib.abc.MetaPathFinder):
    """Finds SGLang's own modules before Python does."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module of SGLang by its source."""
        if name.partition(".")[0] != "sglang":
            return None
        where = [str(self.root)] if path is None else path
        spec = importlib.machinery.PathFinder.find_spec(name, where, target)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            spec.loader = _Loader(name, spec.loader.path)
        elif spec is not None and spec.has_location:
            return importlib.machinery.ModuleSpec(name, _NotLoaded())
        return spec


def _orjson() -> types.ModuleType:
    """Return a stub of orjson that reads JSON: converters of options use it."""
    module = _Replaced("orjson")
    vars(module)["loads"] = json.loads
    return module


def build_parser(root: Path) -> argparse.ArgumentParser:
    """Return the parser of `sglang.launch_server`, with the options of the release."""
    install("sglang")
    sys.meta_path.insert(0, _Finder(root))
    sys.modules.update(MODULES, orjson=_orjson())
    logging.disable()
    parser = argparse.ArgumentParser(add_help=False)
    importlib.import_module("sglang.srt.server_args").ServerArgs.add_cli_args(parser)
    return parser


def describe(action: argparse.Action) -> dict[str, Any]:
    """Return an option as plain data, with argparse's names."""
    paired = isinstance(action, argparse.BooleanOptionalAction)
    off = [name for name in action.option_strings if paired and name.startswith("--no-")]
    return {
        "names": [name for name in action.option_strings if name not in off],
        "off": off,
        "arity": "no" if paired else action.nargs,
        "converter": _converter(action),
        "choices": _choices(action),
        "default": action.default if type(action.default) in {str, int, float, bool} else None,
    }


def _choices(action: argparse.Action) -> list[str] | None:
    """Return the accepted words, unless the list depends on a missing package."""
    choices = list(action.choices or ())
    if not choices or any(is_stubbed(choice) for choice in choices):
        return None
    words = [str(choice) for choice in choices]
    # The order of a set is not stable.
    return sorted(words) if isinstance(action.choices, set) else words


def _converter(action: argparse.Action) -> str | None:
    """Return the name of the converter, or `refused` or `deprecated` for a removed option."""
    if type(action).__name__ == "DeprecatedAction":
        return _fate(action)
    converter = action.type
    return None if converter is None else str(getattr(converter, "__name__", repr(converter)))


def _fate(action: argparse.Action) -> str:
    """Try a removed option: `refused` if it stops the start, else `deprecated`.

    The class raised up to 0.5.4, only warned from 0.5.8 on, and does either since 0.5.18.
    """
    try:
        action(argparse.ArgumentParser(), argparse.Namespace(), [], action.option_strings[0])
    except (ValueError, SystemExit):
        return "refused"
    return "deprecated"


def main(root: str) -> None:
    """Print the options of the unpacked release."""
    out, sys.stdout = sys.stdout, sys.stderr  # what the release prints is not ours
    actions = build_parser(Path(root))._actions  # noqa: SLF001 - argparse lists options nowhere else
    json.dump([describe(action) for action in actions], out)
