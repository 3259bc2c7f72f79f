"""Prints the keys inside the JSON options of one unpacked vLLM release, as JSON.

`vllm.read_keys` starts this in a separate process, because it runs the release's code: the classes
that the values of these options become.
"""

import dataclasses
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from toolchain.engine_flags.vllm_parser import build_parser

CLASSES = {
    "--compilation-config": "CompilationConfig",
    "--eplb-config": "EPLBConfig",
    "--kv-transfer-config": "KVTransferConfig",
    "--speculative-config": "SpeculativeConfig",
}
"""The class in vllm.config of each option."""
_NOBODYS = "no_such_key_of_any_release"


def keys_of(made: Any) -> list[str] | None:
    """Return the keys that a class takes; None if it takes any other key without an error."""
    try:
        made(**{_NOBODYS: 1})
    except Exception as error:  # noqa: BLE001 - pydantic and dataclasses raise different ones
        if _NOBODYS not in str(error):
            return None
    else:
        return None
    if not dataclasses.is_dataclass(made):
        return sorted(made.model_fields) if hasattr(made, "model_fields") else None
    return sorted(field.name for field in dataclasses.fields(made) if field.init)


def main(root: str) -> None:
    """Print the keys of each option; nothing of an option whose release takes any key."""
    out, sys.stdout = sys.stdout, sys.stderr  # what the release prints is not ours
    os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
    build_parser(Path(root))
    config: Any = importlib.import_module("vllm.config")
    found = {option: getattr(config, name, None) for option, name in CLASSES.items()}
    keys = {option: keys_of(made) for option, made in found.items() if made is not None}
    json.dump({option: listed for option, listed in keys.items() if listed is not None}, out)
