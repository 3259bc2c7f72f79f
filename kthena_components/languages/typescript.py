"""Values as TypeScript, and the other way."""

import json
import re
from collections.abc import Mapping
from typing import Any

from kthena_components.core.values.safe_text import printable

WIDTH = 96
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PROTOTYPE = "__proto__"
"""The only key that is not a property in an object literal, unless it is computed."""
_TOKEN = re.compile(
    rf"""(?P<text>"(?:[^"\\]|\\.)*")|\["(?P<computed>{_PROTOTYPE})"\]|(?P<name>{_NAME.pattern})(?=:)"""
    r"|(?P<comma>,(?=\s*[\]}]))"
)


def write(value: Any, depth: int = 0) -> str:
    """Write plain data as a literal, on one line if it fits.

    Args:
        value: Data as in JSON.
        depth: How far the line on which it starts is indented, in steps of 4.
    """
    if isinstance(value, Mapping) and value:
        items = [f"{_key(str(key))}: {write(item, depth + 1)}" for key, item in value.items()]
        return _listed("{", items, "}", " ", depth)
    if isinstance(value, list | tuple) and value:
        return _listed("[", [write(item, depth + 1) for item in value], "]", "", depth)
    return _quoted(value)


def read(text: str) -> Any:
    """Read what `write` has written.

    Raises:
        ValueError: The text is something else.
    """
    return json.loads(_TOKEN.sub(_as_json, text))


def _as_json(found: re.Match[str]) -> str:
    name = found["name"] or found["computed"]
    return f'"{name}"' if name else found["text"] or ""


def _key(key: str) -> str:
    if key == _PROTOTYPE:
        return f'["{key}"]'
    return key if _NAME.fullmatch(key) else _quoted(key)


def _quoted(value: Any) -> str:
    """Write a value without parts. What does not show in a text is escaped as in JSON."""
    return printable(json.dumps(value, ensure_ascii=False), lambda char: json.dumps(char)[1:-1])


def _listed(opens: str, items: list[str], closes: str, pad: str, depth: int) -> str:
    line = f"{opens}{pad}{', '.join(items)}{pad}{closes}"
    if "\n" not in line and len(line) + 4 * depth <= WIDTH:
        return line
    space = "    " * (depth + 1)
    inner = "".join(f"{space}{item},\n" for item in items)
    return f"{opens}\n{inner}{'    ' * depth}{closes}"
