"""Reads which objects a template of a chart states, without values and without parsing YAML.

What is between `define` and its `end` is rendered only where another template includes it. The rest
of the template is its own.
Source: Go's text/template/parse/lex.go: quotes, raw texts and comments inside of actions.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.embedded_escapes_helm_set import unescaped
from kthena_components.core.values.regex import regex
from kthena_components.rendering.servings import is_hinted
from kthena_components.systems import all_systems
from kthena_components.systems.system import Kind

_ACTION = regex(
    r"\{\{-?\s*/\*.*?\*/\s*-?\}\}"
    r"|\{\{-?(?P<inside>(?:\"(?:\\.|[^\"\\\n])*\"|`[^`]*`|'(?:\\.|[^'\\\n])*'|(?!-?\}\})[^\"`'])*)-?\}\}",
    re.DOTALL,
)
_OPEN = "{{"
_WORD = regex(r"\s*([A-Za-z]+)")
_OPENING = frozenset({"if", "range", "with", "define", "block"})
_SILENT = frozenset({"else", "end", "break", "continue", "template", *_OPENING})
_CONTAINERS = "containers"
_KNATIVE, _NOT_KNATIVE = "knative.dev", frozenset({"Service"})
"""A Service has pods only in the API group of Knative."""
_PARTS = regex(r"^---", re.MULTILINE)
_COMMENT = regex(r"^[ \t]*#.*$", re.MULTILINE)
_VALUE = r"[ \t]*:[ \t]*[\"']?([A-Za-z]+)?"
_KIND = regex(rf"^([\"']?)kind\1{_VALUE}", re.MULTILINE)
"""The kind of an object in a template; a kind that the template computes has no name here."""
_INNER_KIND = regex(rf"(?<![\w.])([\"']?)kind\1{_VALUE}")
"""The same if no line begins with one, as in JSON and in indented YAML."""
_FROM_FILES, _DECODES = regex(r"\bFiles\b"), regex(r"\bb(?:64|32)dec\b")


@dataclass(frozen=True, slots=True)
class Template:
    """What a template states. Objects are counted by kind; an empty one is computed."""

    own: Counter[str]
    defined: Counter[str]
    """Objects in definitions."""
    is_open: bool
    """Whether it has a document of its own without a kind: something else gives the object."""
    reads_files: bool
    """Whether it reads files of its chart."""
    lines: tuple[tuple[str, frozenset[str]], ...]
    """For each document, its kind and the lines without actions that no other document has."""
    decodes: bool
    """Whether it decodes texts, which hides words."""
    has_signs: bool
    """Whether its text has words of pods or engines."""


def read_template(text: str) -> Template:
    """Read which objects a template states."""
    own, defined = _divided(text)
    less = _NOT_KNATIVE if _KNATIVE not in text else frozenset()
    parts = [part for part in _PARTS.split(own) if _is_stated(part)]
    return Template(
        own=Counter(kind for part in parts for kind in kinds_of(part) if kind not in less),
        defined=Counter(kind for kind in kinds_of(defined) if kind not in less),
        is_open=any(not kinds_of(part) for part in parts),
        reads_files=_FROM_FILES.search(text) is not None,
        lines=tuple(each for each in _lines(parts) if each[0] not in less),
        decodes=_DECODES.search(text) is not None,
        has_signs=_CONTAINERS in text or is_hinted(text),
    )


def _lines(parts: list[str]) -> Iterator[tuple[str, frozenset[str]]]:
    plain = [
        {line for each in part.split("\n") if "{{" not in each and (line := each.strip())}
        for part in parts
    ]
    times = Counter(line for lines in plain for line in lines)
    for part, lines in zip(parts, plain, strict=True):
        for kind in kinds_of(part)[:1]:
            yield kind, frozenset(line for line in lines if times[line] == 1)


def _found(text: str) -> Iterator[re.Match[str]]:
    """Yield the actions of a template, up to one that does not end: Helm renders none of it then.

    To look for another one behind that would take the square of the time.
    """
    at = text.find(_OPEN)
    while at >= 0 and (found := _ACTION.match(text, at)) is not None:
        yield found
        at = text.find(_OPEN, found.end())


def actions(text: str) -> list[str]:
    """List what is inside of the actions of a template."""
    return [found["inside"] or "" for found in _found(text)]


def in_actions(text: str, change: Callable[[re.Match[str]], str]) -> str:
    """Change the actions of a template, and nothing between them."""
    made, at = list[str](), 0
    for found in _found(text):
        made += [text[at : found.start()], change(found)]
        at = found.end()
    return "".join([*made, text[at:]])


def _divided(text: str) -> tuple[str, str]:
    """Return the own text of a template, and that of its definitions."""
    own, defined, at = list[str](), list[str](), 0
    open_blocks: list[str] = []
    for found in _found(text):
        side = defined if "define" in open_blocks else own
        side.append(text[at : found.start()])
        at = found.end()
        inside = found["inside"]
        if inside is None:
            continue
        word = _WORD.match(inside)
        first = word[1] if word else ""
        if first in _OPENING:
            open_blocks.append(first)
        elif first == "end" and open_blocks:
            open_blocks.pop()
        if first not in _SILENT or first in {"template", "block"}:
            side.append(found[0])
    own.append(text[at:])
    return "".join(own), "".join(defined)


def _is_stated(part: str) -> bool:
    """Return whether a document has a text or an action that writes one."""
    return any(not _assigns(found) for found in _COMMENT.sub("", part).split("\n") if found.strip())


def _assigns(line: str) -> bool:
    """Return whether a line only has actions that write nothing: assignments, failures."""
    rest = in_actions(line, lambda found: "" if _writes_nothing(found["inside"]) else "x")
    return not rest.strip()


def _writes_nothing(inside: str | None) -> bool:
    return inside is None or _ASSIGNMENT.match(inside) is not None


_ASSIGNMENT = regex(r"\s*(?:\$\w*\s*:?=(?!=)|fail\b|required\b)")


def kinds_of(text: str) -> list[str]:
    """List the kinds of the objects in a template or in its output, without reading it as YAML."""
    plain = unescaped(text)
    found = _KIND.findall(plain) or _INNER_KIND.findall(plain)
    return [kind for _, kind in found]


def has_pods(kind: Kind[Any]) -> bool:
    """Return whether objects of a kind have pods that rules check."""
    return bool(kind.is_checked and (kind.facts or kind.pods or kind.demand))


@cache
def with_pods() -> frozenset[str]:
    """Return the names of the kinds with pods: a template need not state the group of its kind."""
    every = (kind for system in all_systems() for kind in system.kinds)
    return frozenset(kind.name for kind in every if has_pods(kind))
