"""Prints the keys inside the JSON options of one unpacked vLLM release, and words, as JSON.

`vllm.read_keys` starts this in a separate process, because it runs the release's code: the classes
that the values of these options become.
"""

import dataclasses
import enum
import importlib
import json
import os
import sys
import typing
from collections.abc import Iterator
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
    """Print the keys of each option; nothing of an option whose release takes any key."""
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
    json.dump(told, out)
