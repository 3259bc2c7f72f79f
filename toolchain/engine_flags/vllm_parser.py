"""Runs the parser of one unpacked vLLM release, and prints its options as JSON.

`vllm.read` starts this in a separate process, because it runs the release's code: the code that
builds the parser of `vllm serve`, with stubs for all packages that vLLM imports.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from toolchain.engine_flags.msgspec_stub import MODULES
from toolchain.engine_flags.stubs import install, is_stubbed

_CUDA = "vllm.platforms.cuda.NonNvmlCudaPlatform"
_PROBES = (
    ("json", '{"a": 1}'),
    ("json", "{}"),
    ("size", "8k"),
    ("float", "7.5"),
    ("int", "7"),
    ("bool", "true"),
)
"""A word for each type, the wider types first: a converter that accepts 7.5 also accepts 7."""
_CHECKED_LATER = {
    "kv_cache_dtype": ("CacheConfig", "cache_dtype"),
    "data_parallel_backend": ("ParallelConfig", "data_parallel_backend"),
}
"""Options without choices in some parsers, and the field of vllm.config that rejects words."""
_OBJECTS_LATER = frozenset({"hf_overrides"})
"""Options that the parser also takes as text, and ModelConfig as an object only."""
_NO_OBJECTS = ("3", "true", "[]")
"""JSON that a converter refuses if it takes objects only, for one of vLLM's configurations."""


class _BuiltError(Exception):
    """Raised instead of parsing, when the parser is complete."""


def build_parser(root: Path) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Return vLLM's whole parser and its subparser for `vllm serve`."""
    sys.path.append(str(root))
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    install("vllm")
    sys.modules.update(MODULES)
    platforms: Any = importlib.import_module("vllm.platforms")
    platforms.resolve_current_platform_cls_qualname = lambda: _CUDA
    platforms._current_platform = None  # noqa: SLF001 - importing has resolved it already
    parser = _whole_parser(root)
    commands = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    return parser, commands.choices["serve"]


def _whole_parser(root: Path) -> argparse.ArgumentParser:
    own = "vllm.utils.argparse_utils"
    has_own = (root / f"{own.replace('.', '/')}.py").exists()
    flexible = importlib.import_module(own if has_own else "vllm.utils").FlexibleArgumentParser

    def stop(self: argparse.ArgumentParser, *_: Any, **__: Any) -> None:
        raise _BuiltError(self)

    with_commands = (root / "vllm/entrypoints/cli/main.py").exists()
    main = importlib.import_module("vllm.entrypoints.cli.main" if with_commands else "vllm.scripts")
    parses, sys.argv, flexible.parse_args = flexible.parse_args, ["vllm", "serve"], stop
    try:
        main.main()
    except _BuiltError as built:
        parser: argparse.ArgumentParser = built.args[0]
        return parser
    finally:
        flexible.parse_args = parses
    raise RuntimeError("vLLM ended before it parsed its command line")


def describe(action: argparse.Action, spellings: Sequence[str]) -> dict[str, Any]:
    """Return an option as plain data, with argparse's names."""
    choices = list(action.choices or choices_later(action.dest))
    known = bool(choices) and not any(map(is_stubbed, choices))
    off = [name for name in spellings if _stored(action, name) is False]
    switch = action.nargs == 0
    kind = "text" if switch else _type(action)
    kind = "object" if kind == "text" and action.dest in _OBJECTS_LATER else kind
    # argparse compares converted words: of None and its text, one is out of reach.
    unreachable = "None" if kind.endswith("?") else None
    choices = [choice for choice in choices if choice != unreachable]
    return {
        "names": [name for name in spellings if not (switch and name in off)],
        "arity": action.nargs,
        "type": kind,
        "choices": sorted(map(str, choices)) if known else None,
        "default": action.default if type(action.default) in {str, int, float, bool} else None,
        "off": off if switch else [],
    }


def choices_later(option: str) -> list[str]:
    """Return the words that the release's configuration accepts for an option, tried one by one.

    Empty if it accepts any word, or cannot be built here.
    """
    name, field = _CHECKED_LATER.get(option, ("", ""))
    module: Any = importlib.import_module("vllm.config") if name else None
    config: Any = getattr(module, name, None)
    stated = getattr(config, "__dataclass_fields__", {}).get(field)

    def takes(word: str) -> bool | None:
        try:
            config(**{field: word})
        except ValueError:
            return False
        except Exception:  # noqa: BLE001 - some releases ask for a GPU
            return None
        return True

    if stated is None or takes("no such word") is not False:
        return []
    return [word for word in _words(stated.type) if takes(word)]


def _words(annotation: object) -> list[str]:
    """Return the strings of a Literal, also inside a union."""
    inner = get_args(annotation)
    if get_origin(annotation) is Literal:
        return [word for word in inner if isinstance(word, str)]
    return [word for one in inner for word in _words(one)]


def _stored(action: argparse.Action, name: str) -> object:
    """Return the value that a spelling of a switch stores."""
    if action.nargs != 0 or isinstance(action, argparse._HelpAction):  # noqa: SLF001
        return None
    space = argparse.Namespace()
    action(argparse.ArgumentParser(), space, [], name)
    return getattr(space, action.dest, None)


def _type(action: argparse.Action) -> str:
    """Find the type of an option by trying words: vLLM's converters are closures without names."""
    if type(action).__name__ == "StoreBoolean":
        return "bool"
    convert = action.type
    if convert is None or is_stubbed(convert) or not callable(convert):
        return "text"

    def takes(word: str) -> bool:
        try:
            convert(word)
        except Exception:  # noqa: BLE001 - converters raise all sorts
            return False
        return True

    if takes("x y"):
        return "text?" if takes("None") and convert("None") is None else "text"
    kind = next((kind for kind, probe in _PROBES if takes(probe)), "other")
    if kind == "json" and not any(map(takes, _NO_OBJECTS)):
        kind = "object"
    kind += "-auto" if kind == "size" and takes("auto") else ""
    return kind + ("?" if takes("None") else "")


def main(root: str) -> None:
    """Print the options of the unpacked release."""
    out, sys.stdout = sys.stdout, sys.stderr  # what the release prints is not ours
    _, serve = build_parser(Path(root))
    spellings: dict[int, list[str]] = {}
    # Only this has the hidden spellings.
    for name, action in serve._option_string_actions.items():  # noqa: SLF001
        spellings.setdefault(id(action), []).append(name)
    named = (action for action in serve._actions if action.option_strings)  # noqa: SLF001
    json.dump([describe(action, spellings[id(action)]) for action in named], out)
