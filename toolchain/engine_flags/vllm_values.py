"""Prints what the variables of one unpacked vLLM release take, as JSON.

`variables` starts this in a separate process, because it runs the release's code: the functions of
vllm/envs.py that read the variables. Which values they refuse is tried, not read.
"""

import importlib
import json
import logging
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from toolchain.engine_flags.stubs import install

_NO_WORD = "no-such-word"
_WHOLE, _PART = ("0", "1", "7"), "0.5"
_LISTED = re.compile(r"[Vv]alid options: \[(?P<words>.*)\]")
_WORD = re.compile(r"'([^']*)'")
_LEVEL = "VLLM_LOGGING_LEVEL"
"""The variable that Python's logging reads, which stops at what is not a name of a level."""
_LEVELS = ("CRITICAL", "DEBUG", "ERROR", "FATAL", "INFO", "NOTSET", "WARN", "WARNING")
"""The names of Python's levels (logging/__init__.py _nameToLevel)."""


def levels(read: Callable[[], Any]) -> dict[str, Any] | None:
    """Return the levels that a release passes on to logging, and whether small letters count."""

    def refuses(word: str) -> bool:
        def set_level() -> None:
            logging.Handler().setLevel(read())

        return _refusal(_LEVEL, set_level, word) is not None

    if not refuses(_NO_WORD) or any(map(refuses, _LEVELS)):
        return None
    folds = not refuses(_LEVELS[0].lower())
    return {"takes": list(_LEVELS), **({"folds": True} if folds else {})}


def takes(name: str, read: Callable[[], Any]) -> dict[str, Any] | None:
    """Return what a variable takes; None if it takes any string, or it is not known.

    Args:
        name: The variable.
        read: The function that reads it, and raises ValueError for what it does not take.
    """
    refusal = _refusal(name, read, _NO_WORD)
    if refusal is None:
        return None
    if all(_refusal(name, read, number) is None for number in _WHOLE):
        return {"takes": "int" if _refusal(name, read, _PART) else "float"}
    found = _LISTED.search(refusal)
    words = _WORD.findall(found["words"]) if found else []
    if not words or any(_refusal(name, read, word) for word in words):
        return None
    swapped = words[0].swapcase()
    folds = swapped != words[0] and _refusal(name, read, swapped) is None
    return {"takes": sorted(words), **({"folds": True} if folds else {})}


def _refusal(name: str, read: Callable[[], Any], value: str) -> str | None:
    """Return the message with which a value is refused; None if it is taken."""
    os.environ[name] = value
    try:
        read()
    except ValueError as error:
        return str(error)
    except Exception:  # noqa: BLE001 - a stub, or a file that is not there: nothing is known
        return None
    finally:
        del os.environ[name]
    return None


def main(root: str) -> None:
    """Print what each variable of vLLM's own takes."""
    out, sys.stdout = sys.stdout, sys.stderr  # what the release prints is not ours
    package: Any = ModuleType("vllm")
    package.__path__ = [str(Path(root, "vllm"))]
    sys.modules["vllm"] = package  # its own __init__ imports the engine, which no variable needs
    install("vllm")
    envs: Any = importlib.import_module("vllm.envs")
    named = {name: takes(name, read) for name, read in envs.environment_variables.items()}
    if _LEVEL in named:
        named[_LEVEL] = levels(envs.environment_variables[_LEVEL])
    json.dump({name: one for name, one in named.items() if one and name.startswith("VLLM_")}, out)
