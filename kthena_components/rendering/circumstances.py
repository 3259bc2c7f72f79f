"""Finds out under which other circumstances a chart may render other objects.

A template may ask whether the release is an upgrade, what it is called, what the cluster offers,
and which objects are in it. A chart that asks is rendered again, so that no object is hidden.
Source: helm v3.19.0 pkg/chartutil/values.go (ToRenderValues) and capabilities.go,
pkg/engine/lookup_func.go; Masterminds/sprig dict.go.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.maps import parse_kube_map
from kthena_components.rendering.templates import actions, in_actions

_UPGRADE = regex(r"Is(?:Upgrade|Install)|\.Release(?!\.(?:Name|Namespace|Service|Revision)\b)")
_API = regex(r"\b[a-z0-9][a-z0-9.-]*(/v[0-9][a-z0-9]*(?:/[A-Z][A-Za-z]*)?\b)?")
"""A word, with the version if it is that of an API: a word without one is read once, too."""
_CAPABILITIES, _LOOKUP = regex(r"Capabilities"), regex(r"\blookup\b")
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
"""A name of a release that is read as a text wherever it stands."""
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


def _names(folder: Path, asked: list[str]) -> list[str]:
    """List the texts with which templates may compare the name or namespace of the release."""
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
    """Yield the texts of a chart. A packed one is a text that asks for whatever is usual."""
    for file in _files(folder):
        text = read_text(str(file), named=False)
        if not isinstance(text, Unreadable):
            yield text
        elif file.name.endswith(_PACKED):
            yield "{{ .Release.IsUpgrade }}"
