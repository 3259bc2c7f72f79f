"""Reads SGLang's options from the parser of one release.

Source: `ServerArgs.add_cli_args` in the release's sglang/srt/server_args.py, which `sglang_parser`
runs in another process without any installed package.
"""

from pathlib import Path
from typing import Any

from toolchain.engine_flags.flags import Flag
from toolchain.engine_flags.isolated import run

_TYPES = {
    "human_readable_int": "size",
    "json_list_type": "json",
    "loads": "json",
    "nullable_str": "text",
    "str": "text",
}
"""Types of SGLang's converters. `nullable_str` accepts any word; `None` means no value."""


def read(root: Path) -> list[Flag]:
    """Read the options of an unpacked release.

    A removed option of SGLang has one of two further types: `refused` stops the start, and
    `deprecated` is ignored with a warning.

    Raises:
        ValueError: The parser of the release did not run.
    """
    options = run("toolchain.engine_flags.sglang_parser", root.resolve(), "-S")
    return [_flag(option) for option in options]


def _flag(option: dict[str, Any]) -> Flag:
    arity, converter, choices = option["arity"], option["converter"], option["choices"]
    default = option["default"]
    return Flag(
        names=tuple(option["names"]),
        arity={None: "1", "no": "0"}.get(arity, str(arity)),
        off=tuple(option["off"]),
        type="text" if converter is None else _TYPES.get(converter, converter),
        choices=None if choices is None else tuple(choices),
        default=None if default == "==SUPPRESS==" else default,
    )
