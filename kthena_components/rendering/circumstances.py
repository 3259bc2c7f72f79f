"""Finds out under which other circumstances a chart may render other objects.

A template may ask whether the release is an upgrade, what it is called, what the cluster offers,
and which objects are in it. A chart that asks is rendered again, so that no object is hidden.
Source: helm v3.19.0 pkg/chartutil/values.go (ToRenderValues) and capabilities.go,
pkg/engine/lookup_func.go; Masterminds/sprig dict.go.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.rendering.templates import actions, in_actions

_UPGRADE = regex(r"Is(?:Upgrade|Install)|\.Revision|\.Release(?!\.(?:Name|Namespace|Service)\b)")
_API = regex(r"\b[a-z0-9][a-z0-9.-]*/v[0-9][a-z0-9]*(?:/[A-Z][A-Za-z]*)?\b")
_CAPABILITIES, _LOOKUP = regex(r"Capabilities"), regex(r"\blookup\b")
_NAMED = regex(r"\.Release\.(?:Name|Namespace)\b")
_USUAL = regex(r"contains\s+\$\w+\s+\.Release\.Name")
"""In each chart that `helm create` makes: the name of the release is a prefix, or is not."""
_CHOOSES = regex(
    r"^\s*(?:(?:else\s+)?(?:if|with|range)\b|\$\w*\s*:?=)|\b(?:ternary|eq|ne|has|hasKey|get|index|dict|list)\b"
)
_COMPARES = regex(
    r"\b(?:eq|ne|has|hasKey|get|index|contains|has(?:Pre|Suf)fix|regexMatch|dict|list)\b"
)
_TEXT = regex(r"[\"`]([a-z0-9](?:[a-z0-9-]{0,50}[a-z0-9])?)[\"`]")
_MOST_NAMES, _MOST_APIS = 6, 60
_LATER = "1.99.0"
_PACKED = ".tgz"


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
        found = sorted({each for text in asked for each in _API.findall(text)})[:_MOST_APIS]
        options = (*(f"--api-versions={each}" for each in found), f"--kube-version={_LATER}")
        yield Circumstance("in a later cluster", options)
        if upgrade:
            yield Circumstance("as an upgrade in a later cluster", (*options, *upgrade))
    for name in _names(asked):
        options = (f"--namespace={name}", *upgrade)
        yield Circumstance(f"as {name}", options, release=name)
    if any(map(_LOOKUP.search, asked)):
        yield Circumstance("where lookup finds an object", upgrade, finds_objects=True)


def _names(asked: list[str]) -> list[str]:
    """List the texts with which templates may compare the name or namespace of the release."""
    chosen = (_USUAL.sub("", each) for each in asked)
    if not any(_NAMED.search(each) and _CHOOSES.search(each) for each in chosen):
        return []
    compared = (each for each in asked if _COMPARES.search(each))
    return sorted({name for each in compared for name in _TEXT.findall(each)})[:_MOST_NAMES]


def find_objects(folder: Path) -> None:
    """Let `lookup` find something in a copy of a chart: a map of its four arguments."""
    for file in _files(folder):
        text = read_text(str(file), named=False)
        if not isinstance(text, Unreadable) and _LOOKUP.search(text):
            file.write_text(in_actions(text, lambda each: _LOOKUP.sub("dict", each)))


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
