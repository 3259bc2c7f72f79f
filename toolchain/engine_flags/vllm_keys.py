"""Prints the keys inside the JSON options of one unpacked vLLM release, types and words, as JSON.

`vllm.read_keys` starts this in a separate process, because it runs the release's code: the classes
that the values of these options become.
"""

import dataclasses
import enum
import importlib
import json
import os
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from toolchain.engine_flags.vllm_parser import build_parser

CLASSES = {
    "--attention-config": "AttentionConfig",
    "--compilation-config": "CompilationConfig",
    "--ec-transfer-config": "ECTransferConfig",
    "--eplb-config": "EPLBConfig",
    "--kernel-config": "KernelConfig",
    "--kv-events-config": "KVEventsConfig",
    "--kv-transfer-config": "KVTransferConfig",
    "--pooler-config": "PoolerConfig",
    "--profiler-config": "ProfilerConfig",
    "--reasoning-config": "ReasoningConfig",
    "--speculative-config": "SpeculativeConfig",
    "--structured-outputs-config": "StructuredOutputsConfig",
}
"""The class in vllm.config of each option."""
INSIDE = {"--compilation-config.pass_config": ("CompilationConfig", "PassConfig")}
"""Maps inside an option, with the class that has their class up to 0.8, and that class."""
CHOSEN = (
    ("--compilation-config", "cudagraph_mode"),
    ("--kv-events-config", "publisher"),
    ("--speculative-config", "method"),
)
"""Keys of options that take one of a few words."""
_NOBODYS = "no_such_key_of_any_release"
_PROBES: Mapping[str, object] = {
    "word": "no such word", "whole": 7, "part": 7.5, "switch": True, "list": [], "map": {},
}  # fmt: skip
"""A value of each kind that JSON has."""
_TYPES: Mapping[frozenset[str], str] = {
    frozenset(refused.split()): name
    for name, refused in {
        "int": "word part list map",
        "float": "word list map",
        "bool": "word whole part list map",
        "text": "whole part switch list map",
        "list": "word whole part switch map",
        "map": "word whole part switch list",
    }.items()
} | {frozenset(_PROBES): "text"}  # a few words only
"""The types of keys, by the probes that they refuse."""
_QUOTED = re.compile(r"'[^']*'|\bor\b|[, ]")


def _registry(module: str, manager: str, eager: str) -> Callable[[], Iterable[str]]:
    """Return what lists the names in a registry of parsers."""

    def listed() -> Iterable[str]:
        made: Any = getattr(importlib.import_module(module), manager)
        return {*getattr(made, eager), *getattr(made, "lazy_parsers", ())}

    return listed


def _members(made: Any) -> Iterable[str]:
    names: Iterable[str] = made.__members__
    return names


def _names_in(
    module: str, variable: str, of: Callable[[Any], Iterable[str]] = iter
) -> Callable[[], Iterable[str]]:
    """Return what lists the names in a variable of a module."""
    return lambda: of(getattr(importlib.import_module(module), variable))


def _chosen_from(module: str, hint: str, *others: Callable[[], Iterable[str]]) -> Any:
    """Return what lists the words of a type, and names of registries."""

    def listed() -> Iterable[str]:
        words = typing.get_args(getattr(importlib.import_module(module), hint))
        return {*words, *(name for other in others for name in other())} if words else ()

    return listed


REGISTRIES: Mapping[str, tuple[Callable[[], Iterable[str]], ...]] = {
    "--attention-backend": tuple(
        _names_in(f"vllm.{module}attention.backends.registry", "AttentionBackendEnum", _members)
        for module in ("v1.", "")
    ),
    "--config-format": (
        _names_in("vllm.transformers_utils.config", "_CONFIG_FORMAT_TO_CONFIG_PARSER"),
    ),
    "--distributed-executor-backend": (
        _chosen_from("vllm.config.parallel", "DistributedExecutorBackend"),
    ),
    "--load-format": (
        _names_in("vllm.model_executor.model_loader", "_LOAD_FORMAT_TO_MODEL_LOADER"),
    ),
    "--quantization": (
        _names_in("vllm.model_executor.layers.quantization", "QUANTIZATION_METHODS"),
    ),
    "--reasoning-parser": (
        _registry("vllm.reasoning", "ReasoningParserManager", "reasoning_parsers"),
    ),
    "--tokenizer-mode": (
        _chosen_from(
            "vllm.config.model",
            "TokenizerMode",
            _names_in("vllm.tokenizers.registry", "_VLLM_TOKENIZERS"),
        ),
    ),
    "--tool-call-parser": (
        _registry("vllm.tool_parsers", "ToolParserManager", "tool_parsers"),
        _registry("vllm.entrypoints.openai.tool_parsers", "ToolParserManager", "tool_parsers"),
    ),
}
"""How the names are listed that the engine looks up for an option, newest layout first."""


def keys_of(made: Any) -> dict[str, Any] | None:
    """Return the keys of a class, and whether it ignores others; None if it may take any."""
    names = _fields(made)
    if names is None:
        return None
    try:
        made(**{_NOBODYS: 1})
    except Exception as error:  # noqa: BLE001 - pydantic and dataclasses raise different ones
        return {"keys": names} if _NOBODYS in str(error) else None
    return {"keys": names, "ignores": True}


def words_of(made: Any, key: str) -> list[str]:
    """Return the words that a key takes: those of its Literal, or the names of its Enum.

    A dataclass of Python's library takes any, whatever its types say: only pydantic checks them.
    """
    if not hasattr(made, "__pydantic_validator__"):
        return []
    try:
        hints = typing.get_type_hints(made)
    except Exception:  # noqa: BLE001 - a stub may be no type
        hints = {field.name: field.type for field in dataclasses.fields(made)}
    return sorted(set(_words(hints.get(key))))


def types_of(made: Any) -> dict[str, list[str]]:
    """Return the keys of a class by their type, as far as the class itself refuses other types.

    A dataclass of Python's library takes any, whatever its types say: only pydantic checks them.
    """
    found: dict[str, list[str]] = {}
    checks = hasattr(made, "__pydantic_validator__")
    for key in (_fields(made) or ()) if checks else ():
        if "plugin" in key:  # the release would open a number as a file
            continue
        refused = frozenset(name for name, probe in _PROBES.items() if _refuses(made, key, probe))
        if refused in _TYPES:
            found.setdefault(_TYPES[refused], []).append(key)
    return dict(sorted(found.items()))


def _refuses(made: Any, key: str, value: object) -> bool:
    """Return whether a class refuses the type of a value, whatever else it may say of it."""
    try:
        made(**{key: value})
    except Exception as error:  # noqa: BLE001 - some releases ask for a GPU
        told = error.errors() if hasattr(error, "errors") else ()
        own = [one for one in told if one["loc"][:1] == (key,)]
        return bool(own) and all(map(_of_type, own))
    return False


def _of_type(error: Mapping[str, Any]) -> bool:
    kind: str = error["type"]
    if kind == "literal_error":
        return not _QUOTED.sub("", error["ctx"]["expected"])
    return kind.endswith(("_type", "_parsing")) or kind == "int_from_float"


def registered(listings: Iterable[Callable[[], Iterable[str]]]) -> list[str]:
    """Return the names in a registry; none if the release has it elsewhere: it is a stub then."""
    for listed in listings:
        try:
            names = sorted(listed())
        except (ImportError, AttributeError):
            continue
        if names:
            return names
    return []


def _words(hint: Any) -> Iterator[str]:
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        yield from hint.__members__
    for part in typing.get_args(hint):
        yield from (part,) if isinstance(part, str) else _words(part)


def _fields(made: Any) -> list[str] | None:
    if dataclasses.is_dataclass(made):
        return sorted(field.name for field in dataclasses.fields(made) if field.init)
    return sorted(made.model_fields) if hasattr(made, "model_fields") else None


def main(root: str) -> None:
    """Print the keys and words of each option; nothing of one whose release takes any."""
    out, sys.stdout = sys.stdout, sys.stderr  # what the release prints is not ours
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    build_parser(Path(root))
    config: Any = importlib.import_module("vllm.config")
    found = {option: getattr(config, name, None) for option, name in CLASSES.items()}
    for option, (outer, name) in INSIDE.items():
        found[option] = getattr(getattr(config, outer, None), name, None)
        found[option] = getattr(config, name, found[option])
    keys = {option: keys_of(made) for option, made in found.items() if made is not None}
    told = {option: listed for option, listed in keys.items() if listed is not None}
    for option, key in CHOSEN:
        if option in told and (words := words_of(found[option], key)):
            told[option]["words"] = {key: words}
    for option, listed in told.items():
        if types := types_of(found[option]):
            listed["types"] = types
    for option, listings in REGISTRIES.items():
        if names := registered(listings):
            told[option] = {"words": {"": names}}
    json.dump(told, out)
