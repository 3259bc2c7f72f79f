"""What Kubernetes makes of a plain scalar, where PyYAML makes something else.

Kubernetes has no dates, no sexagesimal numbers (`22:30`) and no `=`: these are text there. And
`y` and `n` are booleans, `1e3`, `-.5` and `08` are numbers.

Source: sigs.k8s.io/yaml v1.6.0, that is go.yaml.in/yaml/v2 v2.4.2, resolve.go.
"""

import math
import re
from functools import lru_cache
from typing import Final

PREFIX = "tag:yaml.org,2002:"
"""Prefix of the tags that are written with `!!`."""
STR, INT, FLOAT, BOOL, NULL, MERGE = (
    f"{PREFIX}{kind}" for kind in ("str", "int", "float", "bool", "null", "merge")
)


def _cased(*words: str) -> list[str]:
    return [form for word in words for form in (word, word.capitalize(), word.upper())]


_WORDS: Final[dict[str, tuple[str, bool | float | str | None]]] = {
    **dict.fromkeys(_cased("y", "yes", "on", "true"), (BOOL, True)),
    **dict.fromkeys(_cased("n", "no", "off", "false"), (BOOL, False)),
    **dict.fromkeys(["", "~", *_cased("null")], (NULL, None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (FLOAT, math.nan)),
    **{f"{s}.{w}": (FLOAT, math.inf) for s in ("", "+") for w in _cased("inf")},
    **{f"-.{w}": (FLOAT, -math.inf) for w in _cased("inf")},
    "<<": (MERGE, "<<"),
}
_INTEGER = re.compile(
    r"[-+]?(?:0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0B[01]+|0|[1-9][0-9]*)\Z|(?:[-+]?0b|0b[-+])[01]+\Z"
)
_REAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_LONG_DECIMAL = re.compile(r"[-+]?[1-9][0-9]{20,}\Z")
"""An integer of more than 64 bits. Python refuses to read one of more than 4,300 digits."""
_DIGITS = "[0-9]+(?:_[0-9]+)*"
_POINT = re.compile(rf"\.{_DIGITS}(?:[eE][-+]?{_DIGITS})?\Z")
_FIRST = frozenset("+-.0123456789")
_REMEMBERED = 4096
Plain = bool | int | float | str | None


@lru_cache(maxsize=_REMEMBERED)
def resolve(text: str) -> tuple[str, Plain]:
    """Return the tag and the value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    number = _number(text) if text[0] in _FIRST else None
    if number is None:
        return STR, text
    return (INT if isinstance(number, int) else FLOAT), number


def _number(text: str) -> int | float | None:
    """Read a number; integers without 64 bits are floats, floats without 64 bits are text."""
    if text[0] == ".":
        return _float(text) if _POINT.match(text) else None
    digits = text.replace("_", "")
    if _INTEGER.match(digits) and not _LONG_DECIMAL.match(digits):
        integer = _integer(digits.lower())
        if -(2**63) <= integer < 2 ** (63 if digits[0] == "+" else 64):
            return integer
    return _float(digits) if _REAL.match(digits) else None


def _integer(digits: str) -> int:
    if "b" in digits and "x" not in digits:
        return int(digits.replace("0b", "", 1), 2)  # 0b-1 is -1, too
    octal = digits.lstrip("+-").replace("o", "")
    if octal[0] == "0" and "x" not in digits:
        return -int(octal, 8) if digits[0] == "-" else int(octal, 8)
    return int(digits, 0)


def _float(digits: str) -> float | None:
    found = float(digits)
    return None if math.isinf(found) else found
