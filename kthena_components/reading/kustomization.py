"""What a kustomization names, read without Kustomize, and before it may run.

Kustomize fetches what looks like an address, from wherever it stands. So each place that may hold
one is looked through here. Go reads the keys of these files without regard to their case.
Source: sigs.k8s.io/kustomize/api v0.20, types/kustomization.go, internal/target/kusttarget.go and
internal/loader/fileloader.go.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable
from kthena_components.reading.folders import KUSTOMIZATIONS
from kthena_components.reading.maps import parse_map, read_below

_GROUP = "kustomize.config.k8s.io/"
_COMPONENT = "Component"
_ADDRESS = re.compile(
    r"[a-z][a-z0-9+.-]*(?:://|::)|git@|(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org)[/:]|gh:",
    re.IGNORECASE,
)
_REPOSITORY = re.compile(r"\.git(?:/|\?|$)|[?&](?:ref|version|timeout|submodules)=|//")
"""What is an address where nothing of that name lies here."""
_BUILT_OF = ("resources", "bases", "components")
_PARTS = ("patchesstrategicmerge", "crds", "configurations")
_PATCHES = ("patches", "patchesjson6902", "replacements")
_GENERATED = ("configmapgenerator", "secretgenerator")
_PLUGINS = ("generators", "transformers", "validators")
_LINE = "\n"
_CHARTS = ("helmcharts", "helmchartinflationgenerator")


@dataclass(slots=True)
class Kustomization:
    """A file from which Kustomize builds manifests. Paths are below the folder that was named."""

    file: str
    boundary: str
    """The real path of the folder that nothing may lead out of."""
    is_component: bool = False
    objects: list[str] = field(default_factory=list)
    """Files with objects that it builds on."""
    bases: list[str] = field(default_factory=list)
    """Folders with kustomizations that it builds on."""
    parts: list[str] = field(default_factory=list)
    """Files that are no objects of their own: patches, replacements, texts of ConfigMaps."""
    problem: str = ""
    """Why it must not be built."""

    @property
    def folder(self) -> str:
        """Where it stands."""
        return str(Path(self.file).parent)


def find_kustomization(folder: str) -> str | None:
    """Find the file from which Kustomize would build a folder."""
    files = (str(Path(folder, name)) for name in KUSTOMIZATIONS)
    return next((file for file in files if Path(file).is_file()), None)


def read_kustomization(file: str, boundary: str) -> Kustomization | Unreadable | None:
    """Read a kustomization; None for a file that is of another program, such as Flux.

    Args:
        file: The file.
        boundary: The real path of the folder that nothing may lead out of.
    """
    text = read_below(Path(file), Path(boundary))
    content = text if isinstance(text, Unreadable) else parse_map(text, file)
    if isinstance(content, Unreadable):
        return content
    stated = {str(key).casefold(): value for key, value in content.items()}
    version = stated.get("apiversion")
    if version is not None and not str(version).startswith(_GROUP):
        return None
    is_component = stated.get("kind") == _COMPONENT
    made = Kustomization(file=file, boundary=boundary, is_component=is_component)
    _Reading(made).read(stated)
    return made


class _Reading:
    """The reading of one kustomization."""

    def __init__(self, made: Kustomization) -> None:
        self._made = made
        self._boundary = made.boundary

    def read(self, stated: Mapping[str, Any]) -> None:
        for key in _BUILT_OF:
            for entry in _texts(stated.get(key)):
                self._built_of(entry)
        for key in _PLUGINS:
            for entry in _texts(stated.get(key)):
                self._plugin(entry)
        for path in _parts(stated):
            self._part(path)
        if any(stated.get(key) for key in _CHARTS):
            self._refuse("it takes in a Helm chart (helmCharts)")

    def _refuse(self, why: str) -> None:
        self._made.problem = self._made.problem or why

    def _join(self, path: str) -> str:
        return os.path.normpath(Path(self._made.folder, path))

    def _leads_out(self, path: str) -> bool:
        real = os.path.realpath(path)
        return real != self._boundary and not Path(real).is_relative_to(self._boundary)

    def _built_of(self, entry: str) -> None:
        path = self._join(entry)
        if _ADDRESS.match(entry):
            self._refuse(f"remote base {entry}")
        elif self._leads_out(path):
            self._refuse(f"it builds on {entry}, which leads out of {self._boundary}")
        elif Path(path).is_dir():
            self._made.bases.append(path)
        elif Path(path).is_file():
            self._made.objects.append(path)
        elif _REPOSITORY.search(entry):
            self._refuse(f"remote base {entry}")
        else:
            self._refuse(f"it builds on {entry}, which is not here")

    def _plugin(self, entry: str) -> None:
        """Read the settings of a generator or a transformer, which may stand in line."""
        path = self._join(entry)
        if _LINE not in entry and not _ADDRESS.match(entry) and Path(path).is_dir():
            self._built_of(entry)
            return
        text: str | Unreadable = entry
        if _LINE not in entry:
            self._part(entry)
            text = read_below(Path(path), Path(self._boundary)) if Path(path).is_file() else ""
        if isinstance(text, Unreadable) or _may_fetch(text):
            self._refuse(f"the plugin {entry.partition(_LINE)[0]} may fetch something")

    def _part(self, path: str) -> None:
        if _ADDRESS.match(path):
            self._refuse(f"remote file {path}")
        else:
            self._made.parts.append(self._join(path))


def _may_fetch(text: str) -> bool:
    """Tell whether the settings of a plugin hold an address, or cannot be read."""
    for document in read_documents(text, "", lambda *_: True):
        if isinstance(document, Unreadable):
            return True
        waiting = [document.body]
        while waiting:
            part = waiting.pop()
            if isinstance(part, str) and "://" in part:
                return True
            waiting += part.values() if isinstance(part, dict) else sequence(part)
    return False


def _parts(stated: Mapping[str, Any]) -> Iterator[str]:
    """Give the paths of files that are no objects of their own."""
    for key in _PARTS:
        yield from (text for text in _texts(stated.get(key)) if _LINE not in text)
    for key in _PATCHES:
        for item in _maps(stated.get(key)):
            yield from _texts(item.get("path"))
    for key in _GENERATED:
        for item in _maps(stated.get(key)):
            for text in _texts(item.get("files")):
                path = text.partition("=")[2]  # of key=path; it may be the path alone
                yield text if not path or _ADDRESS.match(text) else path
            yield from (text for name in ("env", "envs") for text in _texts(item.get(name)))
    yield from _texts(_folded(stated.get("openapi")).get("path"))


def _maps(value: object) -> Iterator[Mapping[str, Any]]:
    yield from (_folded(item) for item in sequence(value))


def _folded(value: object) -> Mapping[str, Any]:
    return {str(key).casefold(): item for key, item in mapping(value).items()}


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        return (value,) if value else ()
    return (item for item in sequence(value) if isinstance(item, str) and item)
