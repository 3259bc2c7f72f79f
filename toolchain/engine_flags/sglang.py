"""Reads SGLang's options from the parser of one release.

Source: `ServerArgs.add_cli_args` in the release's sglang/srt/server_args.py, which `sglang_parser`
runs in another process without any installed package. The keys of --kv-events-config are those of
KVEventsConfig in its sglang/srt/disaggregation/kv_events.py, and the names of
--speculative-algorithm those of SpeculativeAlgorithm in its sglang/srt/speculative/spec_info.py,
which are read and not run.
"""

import ast
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


_ALGORITHM = "--speculative-algorithm"
_SPECULATIVE = tuple(f"sglang/srt/speculative/spec_{name}.py" for name in ("info", "registry"))
_EVENTS, _OPTION = "sglang/srt/disaggregation/kv_events.py", "--kv-events-config"


def read_keys(root: Path) -> dict[str, dict[str, Any]]:
    """Read the keys and publishers of --kv-events-config of an unpacked release, and algorithms.

    A class of pydantic ignores other keys, unless it says `extra="forbid"`.
    """
    names = _algorithms(root)
    chosen: dict[str, dict[str, Any]] = {_ALGORITHM: {"words": {"": names}}} if names else {}
    file = root / _EVENTS
    found = ast.walk(ast.parse(file.read_text())) if file.exists() else ()
    classes = {each.name: each for each in found if isinstance(each, ast.ClassDef)}
    config, factory = classes.get("KVEventsConfig"), classes.get("EventPublisherFactory")
    if config is None or [ast.unparse(each) for each in config.bases] != ["BaseModel"]:
        return chosen
    fields = [each for each in config.body if isinstance(each, ast.AnnAssign)]
    made: dict[str, Any] = {"keys": sorted(ast.unparse(each.target) for each in fields)}
    if "forbid" not in ast.unparse(config):
        made["ignores"] = True
    tables = [each for each in factory.body if isinstance(each, ast.AnnAssign)] if factory else []
    words = [ast.literal_eval(key) for each in tables for key in _keys(each.value)]
    if words:
        made["words"] = {"publisher": sorted(words)}
    return {**chosen, _OPTION: made}


def _algorithms(root: Path) -> list[str]:
    """Read the names of --speculative-algorithm: an enum's members, and reserved other names."""
    found: set[str] = set()
    for file in (root / name for name in _SPECULATIVE):
        for each in ast.parse(file.read_text()).body if file.exists() else ():
            if isinstance(each, ast.ClassDef) and each.name == "SpeculativeAlgorithm":
                assigned = [item for item in each.body if isinstance(item, ast.Assign)]
                names = (ast.unparse(item.targets[0]) for item in assigned)
                found.update(name for name in names if not name.startswith("_"))
            elif isinstance(each, ast.Assign) and "_RESERVED" in ast.unparse(each.targets[0]):
                texts = (n.value for n in ast.walk(each.value) if isinstance(n, ast.Constant))
                found.update(text for text in texts if isinstance(text, str))
    return sorted(found)


def _keys(value: ast.expr | None) -> list[ast.expr]:
    return [key for key in value.keys if key is not None] if isinstance(value, ast.Dict) else []
