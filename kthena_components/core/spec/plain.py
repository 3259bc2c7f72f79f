"""Finds values that no object of Kubernetes can contain, in a user's input before it is parsed.

A program in Python can pass numbers and texts that JSON has no form for, or that no process gets as
an argument, a variable or the name of a file.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kthena_components.core.findings import Finding, path_of
from kthena_components.core.remedies import either, remove
from kthena_components.core.values.display import display

_BITS = 64
_NUL, _HALF = "\0", re.compile(r"[\ud800-\udfff]")


def unwritable(data: object) -> Iterator[Finding]:
    """Yield a finding for each value, or key of a map, that cannot be written to an object.

    Args:
        data: The input. Maps and lists of other types are left to the parser.
    """
    waiting: list[tuple[tuple[Any, ...], object]] = [((), data)]
    for path, value in waiting:
        if isinstance(value, Mapping):
            waiting += [((*path, key), item) for key, item in value.items()]
            found = next(filter(None, map(_wrong, value)), None)
        elif isinstance(value, list | tuple):
            waiting += [((*path, index), item) for index, item in enumerate(value)]
            continue
        else:
            found = _wrong(value)
        if found is not None:
            seen, remedy = found
            yield Finding(path=path_of(path), seen=seen, remedy=remedy, rule="value")


def _wrong(value: object) -> tuple[str, str] | None:
    """Return what is wrong with a value, and what to do; None if it can be written."""
    if isinstance(value, str):
        return None if value.isascii() and _NUL not in value else _wrong_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}, and JSON has no such number", "write a finite number"
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"is {display(value)}; Kubernetes reads at most {_BITS}", "write a smaller number"
    return None


def _wrong_text(text: str) -> tuple[str, str] | None:
    if _NUL in text:
        told = f"is {display(text)}, with a NUL, where a program's argument or a variable ends"
        return told, r"remove the character \x00"
    half = _HALF.search(text)
    if half is None:
        return None
    told = f"contains {half[0]!r}, half a character, which no cluster can store"
    return told, either(remove(), "write the whole character")
