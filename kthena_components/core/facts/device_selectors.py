"""Reads the CEL expressions by which requests and classes of devices select devices.

Only plain comparisons are read: `device.driver == 'gpu.nvidia.com'`, an attribute that equals a
text or is in a list of texts, and several of them joined by `&&`. Whatever else an expression has
selects fewer devices, and states nothing here.

Source: kubernetes staging/src/k8s.io/api/resource/v1/types.go CELDeviceSelector.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

DRIVER = "driver"
"""The key of the driver among the values that selectors require."""
_LONGEST = 10 * 1024
_TEXT = r"'[^'\\]*'|\"[^\"\\]*\""
_WORD = regex(rf"{_TEXT}|&&|\|\||[()\[\]{{}}?!]|[^\s&|()\[\]{{}}?!'\"]+|\S")
_NAME = rf"(?:\.(?P<field>[A-Za-z_]\w*)|\[\s*(?P<key>{_TEXT})\s*\])"
_ATTRIBUTE = rf"device\.attributes\s*\[\s*(?P<domain>{_TEXT})\s*\]\s*{_NAME}"
_LIST = rf"\[\s*(?P<several>(?:{_TEXT})(?:\s*,\s*(?:{_TEXT}))*)\s*\]"
_VALUE = rf"(?:device\.(?P<driver>driver)|{_ATTRIBUTE})"
_COMPARED = regex(
    rf"(?:(?P<first>{_TEXT})\s*==\s*)?{_VALUE}"
    rf"(?:\s*==\s*(?P<one>{_TEXT})|\s*in\s+{_LIST})?"
)
_OPEN, _CLOSED, _QUOTES = frozenset("([{"), frozenset(")]}"), frozenset("'\"")
_DEEPEST = 8


def required_values(selectors: object) -> Mapping[str, frozenset[str]]:
    """Return the values that selectors allow, by `driver` or `domain/attribute`.

    Args:
        selectors: The field `selectors` of a request or a class. All of them apply.
    """
    found: dict[str, frozenset[str]] = {}
    for selector in sequence(selectors):
        expression = mapping(mapping(selector).get("cel")).get("expression")
        for name, values in _comparisons(expression):
            found[name] = found.get(name, values) & values
    return found


def are_late(selectors: object) -> bool:
    """Return whether a selector is not known yet."""
    parts: Sequence[Any] = sequence(selectors)
    expressions = (mapping(mapping(part).get("cel")).get("expression") for part in parts)
    return any(map(is_unresolved, (selectors, *parts, *expressions)))


def _comparisons(expression: object) -> Iterator[tuple[str, frozenset[str]]]:
    if not isinstance(expression, str) or is_unresolved(expression) or len(expression) > _LONGEST:
        return
    for part in _conjuncts(expression):
        match = _COMPARED.fullmatch(part)
        texts = [] if match is None else [t for t in match.group("first", "one", "several") if t]
        if match is None or len(texts) != 1:
            continue
        name = match["field"] or _plain(match["key"] or "")
        key = DRIVER if match["driver"] else f"{_plain(match['domain'])}/{name}"
        yield key, frozenset(map(_plain, re.findall(_TEXT, texts[0])))


def _conjuncts(expression: str, levels: int = _DEEPEST) -> Iterator[str]:
    """Yield the parts of an expression that must all hold; none if it has alternatives."""
    depth, start, parts = 0, 0, list[str]()
    for match in _WORD.finditer(expression):
        word = match[0]
        if word in _QUOTES or word.startswith("//") or (depth == 0 and word in {"||", "?"}):
            return
        depth += (word in _OPEN) - (word in _CLOSED)
        if depth == 0 and word == "&&":
            parts.append(expression[start : match.start()].strip())
            start = match.end()
    for part in (*parts, expression[start:].strip()):
        inner = _within(part)
        if not inner:
            yield part
        elif levels:
            yield from _conjuncts(inner, levels - 1)


def _within(part: str) -> str:
    """Return what a pair of parentheses around a whole expression holds; empty without one."""
    depth = 0
    for match in _WORD.finditer(part) if part.startswith("(") else ():
        depth += (match[0] in _OPEN) - (match[0] in _CLOSED)
        if depth == 0:
            return part[1:-1] if match.end() == len(part) else ""
    return ""


def _plain(text: str) -> str:
    return text[1:-1]
