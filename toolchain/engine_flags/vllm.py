"""Reads vLLM's options from the parser of one release.

Source: the parser of `vllm serve` as vllm/entrypoints/cli/main.py builds it (vllm/scripts.py up to
0.8.2), which `vllm_parser` runs in another process. Assertions are disabled, because those that run
during the import are about PyTorch, which is not installed.
"""

from pathlib import Path
from typing import Any

from toolchain.engine_flags.flags import Flag
from toolchain.engine_flags.isolated import run


def read(root: Path) -> list[Flag]:
    """Read the options of an unpacked release.

    Raises:
        ValueError: The parser of the release did not run.
    """
    options = run("toolchain.engine_flags.vllm_parser", root.resolve(), "-O")
    return [_flag(option) for option in options]


def read_keys(root: Path) -> dict[str, dict[str, Any]]:
    """Read the keys inside the JSON options of an unpacked release.

    Raises:
        ValueError: The classes of the release did not load.
    """
    found: dict[str, dict[str, Any]] = run("toolchain.engine_flags.vllm_keys", root.resolve(), "-O")
    return found


def _flag(option: dict[str, Any]) -> Flag:
    arity, choices, default = option["arity"], option["choices"], option["default"]
    return Flag(
        names=tuple(option["names"]),
        arity="1" if arity is None else str(arity),
        type=option["type"],
        choices=None if choices is None else tuple(choices),
        default=None if default == "==SUPPRESS==" else default,
        off=tuple(option["off"]),
    )
