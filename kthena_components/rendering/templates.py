"""Reads what templates of a chart state, and in which circumstances they may state more.

What is between `define` and its `end` is rendered only where another template includes it. The rest
of the template is its own.
Source: Go's text/template/parse/lex.go: quotes, raw strings and comments inside of actions.

A template may ask whether the release is an upgrade, what it is called, what the cluster offers,
and which objects are in it. A chart that asks is rendered again, so that no object is hidden.
Source: helm v3.19.0 pkg/chartutil/values.go (ToRenderValues) and capabilities.go,
pkg/engine/lookup_func.go; Masterminds/sprig dict.go.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.values_in_text import unescaped
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.settings import parse_kube_map
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
    """Whether it decodes strings, which hides words."""
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
    """List the lines of each object in a template that stand in no other object of it."""
    plain = [
        {line for each in part.split("\n") if "{{" not in each and (line := each.strip())}
        for part in parts
    ]
    times = Counter(line for lines in plain for line in lines)
    for part, lines in zip(parts, plain, strict=True):
        for kind in kinds_of(part)[:1]:
            yield kind, frozenset(line for line in lines if times[line] == 1)


def _actions(text: str) -> Iterator[re.Match[str]]:
    """Yield the actions of a template up to one without an end, with which Helm renders nothing.

    To look for another one behind that would take the square of the time.
    """
    at = text.find(_OPEN)
    while at >= 0 and (found := _ACTION.match(text, at)) is not None:
        yield found
        at = text.find(_OPEN, found.end())


def actions(text: str) -> list[str]:
    """List what is inside of the actions of a template."""
    return [found["inside"] or "" for found in _actions(text)]


def in_actions(text: str, change: Callable[[re.Match[str]], str]) -> str:
    """Change the actions of a template, and nothing between them."""
    made, at = list[str](), 0
    for found in _actions(text):
        made += [text[at : found.start()], change(found)]
        at = found.end()
    return "".join([*made, text[at:]])


def _divided(text: str) -> tuple[str, str]:
    """Return the text of a template itself, and the text of its definitions."""
    own, defined, at = list[str](), list[str](), 0
    open_blocks: list[str] = []
    for found in _actions(text):
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
    """Return whether a document has a string or an action that writes one."""
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


_UPGRADE = regex(r"Is(?:Upgrade|Install)|\.Release(?!\.(?:Name|Namespace|Service|Revision)\b)")
_API = regex(r"\b[a-z0-9][a-z0-9.-]*(/v[0-9][a-z0-9]*(?:/[A-Z][A-Za-z]*)?\b)?")
"""A word, with the version if it is the group of an API: a word without one is read once, too."""
_CAPABILITIES, _LOOKUP = regex(r"Capabilities"), regex(r"\blookup\b")
_ASKS = regex(r"\.APIVersions\.Has\s*\(?\s*[\"`]([a-z0-9.-]+/v[a-z0-9]+)")
_NAMED = regex(r"\.Release\.(?:Name|Namespace)\b|\binclude\b|\btemplate\b|\$\w")
"""What may be the name of the release, or holds it."""
_COMPARES = regex(r"\b(?:eq|ne|has|contains|has(?:Pre|Suf)fix|regexMatch|mustRegexMatch|list)\b")
_PICK = r"\b(?:index|get|hasKey|dig|pluck|pick|omit)\b"
_PICKS = regex(rf"{_PICK}(?:(?!{_PICK}).)*\.Release\.(?:Name|Namespace)\b")
_CHOOSES = regex(r"^\s*(?:else\s+)?(?:if|with|range)\b|\b(?:ternary|eq|ne|gt|lt|ge|le|mod)\b")
_TIMES = regex(r"\b(?:now|ago|date|rand[A-Z]\w*|uuidv4|shuffle|getHostByName)\b")
_REVISION, _VERSION = regex(r"\.Revision\b"), regex(r"HelmVersion|\.Capabilities(?!\.\w)")
_WORDS = "y|n|yes|no|on|off|true|false|null"
_TEXT = regex(rf"[\"`](?!(?:{_WORDS})[\"`])([a-z](?:[a-z0-9-]{{0,50}}[a-z0-9])?)[\"`]")
"""A name of a release that is read as a string wherever it stands."""
_MOST_NAMES, _MOST_APIS = 20, 60
_LATER = "1.99.0"
_PACKED, _VALUES = ".tgz", "values.yaml"


@dataclass(frozen=True, slots=True)
class Circumstance:
    """Something that templates may ask for."""

    name: str
    """Its name in messages."""
    options: tuple[str, ...] = ()
    """Options of helm."""
    release: str = ""
    """The name of the release, if it is another one."""
    finds_objects: bool = False
    """Whether `lookup` finds something."""


def circumstances(folder: Path) -> Iterator[Circumstance]:
    """Yield the circumstances for which the files of a chart ask."""
    asked = [each for text in _texts(folder) for each in actions(text)]
    upgrade = ("--is-upgrade",) if any(map(_UPGRADE.search, asked)) else ()
    if upgrade:
        yield Circumstance("as an upgrade", upgrade)
    if any(map(_CAPABILITIES.search, asked)):
        found = sorted({each[0] for text in asked for each in _API.finditer(text) if each[1]})[
            :_MOST_APIS
        ]
        options = (*(f"--api-versions={each}" for each in found), f"--kube-version={_LATER}")
        yield Circumstance("in a later cluster", options)
        if upgrade:
            yield Circumstance("as an upgrade in a later cluster", (*options, *upgrade))
    for name in _names(folder, asked)[:_MOST_NAMES]:
        options = (f"--namespace={name}",)
        yield Circumstance(f"as {name}", options, release=name)
    if any(map(_LOOKUP.search, asked)):
        yield Circumstance("where lookup finds an object", upgrade, finds_objects=True)


def asked_versions(folder: Path) -> frozenset[str]:
    """Return the API versions for which the templates of a chart ask the cluster."""
    every = (each for text in _texts(folder) for each in actions(text))
    return frozenset(found for each in every for found in _ASKS.findall(each))


def _names(folder: Path, asked: list[str]) -> list[str]:
    """List the strings with which templates may compare the name or namespace of the release."""
    compared = (each for each in asked if _COMPARES.search(each) and _NAMED.search(each))
    found = {name for each in compared for name in _TEXT.findall(each)}
    if any(map(_PICKS.search, asked)):
        found |= {name for name in _keys_of_values(folder) if _TEXT.fullmatch(f'"{name}"')}
    return sorted(found)


def _keys_of_values(folder: Path) -> Iterator[str]:
    """Yield the keys in the values of a chart."""
    for file in _files(folder):
        text = read_text(str(file), named=False) if file.name == _VALUES else ""
        content = text if isinstance(text, Unreadable) else parse_kube_map(text, _VALUES)
        waiting = [] if isinstance(content, Unreadable) else [content]
        for part in waiting:
            yield from map(str, part)
            waiting += [each for each in part.values() if isinstance(each, Mapping)]


def unknown(folder: Path) -> Iterator[str]:
    """Yield the circumstances for which the files of a chart ask, and that cannot be tried."""
    asked = [each for text in _texts(folder) for each in actions(text)]
    if any(map(_REVISION.search, asked)):
        yield "as another revision of the release, for which a template asks"
    if any(map(_VERSION.search, asked)):
        yield "by another version of helm, for which a template asks"
    if any(_TIMES.search(each) and _CHOOSES.search(each) for each in asked):
        yield "at another time, for which a template asks"
    if len(_names(folder, asked)) > _MOST_NAMES:
        yield f"as each of more than {_MOST_NAMES} names with which templates may compare its own"


def find_objects(folder: Path) -> None:
    """Let `lookup` find something in a copy of a chart: a map of its four arguments."""
    for file in _files(folder):
        text = read_text(str(file), named=False)
        if not isinstance(text, Unreadable) and _LOOKUP.search(text):
            file.write_text(in_actions(text, lambda each: _LOOKUP.sub("dict", each[0])))


def _files(folder: Path) -> Iterator[Path]:
    for above, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(above, name) for name in sorted(names))


def _texts(folder: Path) -> Iterator[str]:
    """Yield the contents of a chart. A packed one is a text that asks for whatever is usual."""
    for file in _files(folder):
        text = read_text(str(file), named=False)
        if not isinstance(text, Unreadable):
            yield text
        elif file.name.endswith(_PACKED):
            yield "{{ .Release.IsUpgrade }}"
