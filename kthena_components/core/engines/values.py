"""Turn the text of one flag into a value, as the engine would, or say why it is refused."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kthena_components.core.engines.options import Kind, Option
from kthena_components.core.known import MaybeText, Unknown

_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
_LENGTH = re.compile(r"\s*([0-9]{1,15}(?:\.[0-9]{1,9})?)([kKmMgGtT])\s*")
_UNEXPANDED = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")
_SUFFIXES = "kmgt"
_NUMBERS = frozenset({Kind.SIZE, Kind.LENGTH, Kind.FRACTION})


@dataclass(frozen=True, slots=True)
class Refused:
    """A value that the engine does not take."""

    text: str
    """What was seen and the rule. A clause, no full stop."""
    remedy: str
    hard: bool = True


def convert(option: Option, shown: str, given: MaybeText, *, in_shell: bool) -> Any:
    """Give a flag's value: int, float, str, tuple, None for "the engine chooses", or Refused.

    Args:
        option: The flag.
        shown: The value as the user wrote it, for messages.
        given: Its text.
        in_shell: Whether a shell has expanded it, so that a `$` is no forgotten variable.
    """
    if isinstance(given, Unknown):
        return given
    variable = None if in_shell else _UNEXPANDED.search(given)
    if variable is not None and option.kind in _NUMBERS:
        return Refused(
            f"'{shown}' stands where no shell expands it",
            f"write $({variable[1]}), which Kubernetes expands, or start the engine from a shell",
            hard=False,
        )
    reader = _READERS.get(option.kind)
    return given if reader is None else reader(option, shown, given)


def _size(option: Option, shown: str, given: str) -> int | Refused:
    if not _INTEGER.fullmatch(given):
        return Refused(f"{option.name} takes an integer, not '{shown}'", "write a number")
    value = int(given)
    if value < option.least:
        return Refused(
            f"{option.name} takes an integer of at least {option.least}, not '{shown}'",
            f"write {option.least} or more",
        )
    return value


def _length(option: Option, shown: str, given: str) -> int | Refused | None:
    """Read a length as `human_readable_int_or_auto` of vllm/utils/argparse_utils.py does."""
    text = given.strip()
    if text == "-1" or text.lower() == "auto":
        return None
    match = _LENGTH.fullmatch(text)
    if match is None:
        return _size(option, shown, given)
    number, suffix = match.groups()
    power = 1 + _SUFFIXES.index(suffix.lower())
    if suffix.islower():
        return int(float(number) * 1000**power)
    if "." in number:
        return Refused(
            f"{option.name} takes no decimals before '{suffix}', which counts in 1024s: '{shown}'",
            f"write {number}{suffix.lower()}",
        )
    return int(int(number) * 1024**power)


def _fraction(option: Option, shown: str, given: str) -> float | Refused:
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if math.isnan(value) or math.isinf(value):
        return Refused(f"{option.name} takes a number, not '{shown}'", "write a number such as 0.9")
    return value


def _inside_json(option: Option, _: str, given: str) -> Any:
    """Take the one key that matters out of a JSON object; None when it is not there."""
    try:
        parsed = json.loads(given)
    except (ValueError, RecursionError):
        return Unknown(f"{option.name} holds no JSON that can be read")
    value = parsed.get(option.key) if isinstance(parsed, dict) else None
    if option.item is Kind.MANY and isinstance(value, list):
        return tuple(item for item in value if isinstance(item, str))
    wanted = {Kind.SIZE: int, Kind.TEXT: str}.get(option.item)
    return value if type(value) is wanted else None


_READERS: Mapping[Kind, Callable[[Option, str, str], Any]] = {
    Kind.SIZE: _size,
    Kind.LENGTH: _length,
    Kind.FRACTION: _fraction,
    Kind.JSON: _inside_json,
}
