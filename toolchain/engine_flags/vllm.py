"""vLLM's options, as the parser of one release lists them.

Source: the parser of `vllm serve` as vllm/entrypoints/cli/main.py builds it (vllm/scripts.py up to
0.8.2), run by `vllm_parser` in another process. Assertions are dropped: those that an import of the
release meets are about PyTorch, which is not there.
"""

from pathlib import Path
from typing import Any

from toolchain.engine_flags.flags import Flag
from toolchain.engine_flags.isolated import run


def read(root: Path) -> list[Flag]:
    """Read the options of the release unpacked at a path.

    Raises:
        ValueError: The release's parser could not be run.
    """
    options = run("toolchain.engine_flags.vllm_parser", root.resolve(), "-O")
    return [_flag(option) for option in options]


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
