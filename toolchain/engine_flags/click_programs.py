"""Reads the options of `ray start` from its Click decorators.

This runs no code of the release: Ray's wheel is compiled for one version of Python, but its
decorators are plain source.
Sources: ray/scripts/scripts.py, its log options in ray/autoscaler/_private/cli_logger.py, and the
constants in ray/_private/ray_constants.py.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolchain.engine_flags.flags import Default, Flag

_SOURCE = Path("ray/scripts/scripts.py")
_LOGGER = Path("ray/autoscaler/_private/cli_logger.py")
_CONSTANTS = Path("ray/_private/ray_constants.py")
_LOG_OPTIONS = "CLICK_LOGGING_OPTIONS"
_TYPES = {"str": "text", "UNPROCESSED": "text", "loads": "json", "Choice": "text", "Path": "text"}
"""Click parses `bool` from a word: true, t, yes, y, on, 1, or their opposites."""


@dataclass(frozen=True, slots=True)
class _Names:
    """The value of a name in a module: a plain value, or a list of plain values."""

    values: Mapping[str, ast.expr]

    @classmethod
    def of(cls, *files: Path) -> "_Names":
        """Read the assignments at the top of modules and of their classes."""
        values: dict[str, ast.expr] = {}
        for file in files:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    values.setdefault(node.targets[0].id, node.value)
        return cls(values)

    def plain(self, node: ast.expr | None) -> object:
        """Return the value of a literal or of a name in the modules, or None."""
        if isinstance(node, (ast.Name, ast.Attribute)):
            node = self.values.get(_last_name(node))
        try:
            return None if node is None else ast.literal_eval(node)
        except ValueError:
            return None


def read(root: Path) -> list[Flag]:
    """Read the options of `ray start` in the release unpacked at a path.

    Raises:
        ValueError: The release has no command `start`.
    """
    names = _Names.of(root / _CONSTANTS, root / _LOGGER)
    tree = ast.parse((root / _SOURCE).read_text())
    commands = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "start"
    ]
    if not commands:
        raise ValueError(f"{root / _SOURCE} has no command `start`")
    return [_flag(call, names) for call in _options(commands[0], names)]


def _options(command: ast.FunctionDef, names: _Names) -> Iterator[ast.Call]:
    for decorator in command.decorator_list:
        shared = _last_name(decorator) == "add_click_logging_options"
        for node in ast.walk(names.values[_LOG_OPTIONS] if shared else decorator):
            if isinstance(node, ast.Call) and _last_name(node.func) == "option":
                yield node


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return _last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _flag(call: ast.Call, names: _Names) -> Flag:
    stated = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    spelled = [str(names.plain(word)) for word in call.args]
    # A word without a hyphen is the parameter's name, and `--a/--no-a` is a switch.
    options = [word for word in spelled if word.startswith("-")]
    paired = any("/" in word for word in options)
    switch = any(names.plain(stated.get(key)) for key in ("is_flag", "count"))
    return Flag(
        names=tuple(word.partition("/")[0].strip() for word in options),
        off=tuple(word.partition("/")[2].strip() for word in options if "/" in word),
        arity="0" if paired or switch else str(names.plain(stated.get("nargs")) or 1),
        type=_type(stated.get("type"), names.plain(stated.get("default")), switch=switch or paired),
        choices=_choices(stated.get("type"), names),
        default=_default(names.plain(stated.get("default"))),
    )


def _type(converter: ast.expr | None, default: object, *, switch: bool) -> str:
    if converter is None:
        # Click uses the type of the default.
        known = isinstance(default, (int, float)) and not switch
        return type(default).__name__ if known else "text"
    name = _last_name(converter)
    return _TYPES.get(name, name)


def _choices(converter: ast.expr | None, names: _Names) -> tuple[str, ...] | None:
    if not isinstance(converter, ast.Call) or _last_name(converter) != "Choice":
        return None
    words = names.plain(converter.args[0])
    return tuple(map(str, words)) if isinstance(words, (list, tuple)) else None


def _default(value: object) -> Default:
    return value if isinstance(value, (str, int, float, bool)) else None
