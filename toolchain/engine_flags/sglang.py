"""SGLang's options, as the parser of one release lists them.

Source: `ServerArgs.add_cli_args` in the release's sglang/srt/server_args.py, run by `sglang_parser`
in another process, without any installed package.
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
"""What SGLang's converters read. `nullable_str` takes any word; `None` is one that means none."""


def read(root: Path) -> list[Flag]:
    """Read the options of the release unpacked at a path.

    Beside the usual types an option of SGLang can have two that say that it was retired: `refused`
    ends the start, and `deprecated` is ignored with a warning.

    Raises:
        ValueError: The release's parser could not be run.
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
