"""Reads what a kustomization names, without Kustomize and before Kustomize may run.

Kustomize fetches whatever looks like an address, in any field that names a file. So every such
field is read here. Go ignores the case of keys, and reads YAML tags and merge keys in its own way:
a kustomization that has them is not built.
Source: sigs.k8s.io/kustomize/api v0.20, types/kustomization.go, internal/target/kusttarget.go and
internal/loader/fileloader.go.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable
from kthena_components.reading.folders import KUSTOMIZATIONS, is_of_git
from kthena_components.reading.settings import parse_kube_map, plain_scalars, read_below

_GROUP = "kustomize.config.k8s.io/"
_COMPONENT = "Component"
_ADDRESS = regex(
    r"[a-z][a-z0-9+.-]*(?:://|::)|git@|(?:www\.)?(?:github\.com|gitlab\.com|bitbucket\.org)[/:]|gh:",
    re.IGNORECASE,
)
_REPOSITORY = regex(r"\.git(?:/|\?|$)|[?&](?:ref|version|timeout|submodules)=|//")
"""An address, unless there is a file or folder of that name."""
_ANYWHERE = regex(r"https?:|://", re.IGNORECASE)
"""An address in the settings of a plugin."""
_BUILT_OF = ("resources", "bases", "components")
_PARTS = ("patchesstrategicmerge", "patches", "crds", "configurations")
_PATCHES = ("patches", "patchesjson6902", "replacements", "openapi")
_CHANGING = frozenset({"patchesstrategicmerge", "patches", "patchesjson6902"})
_DEFINITION = "CustomResourceDefinition"
_GENERATED = ("configmapgenerator", "secretgenerator")
_PLUGINS = ("generators", "transformers", "validators")
_LINE = "\n"
_CHARTS = ("helmcharts", "helmchartinflationgenerator")
_CHANGING_ANY = ("transformers", "replacements")
_KIND = regex(r"""^[ \t{-]*["']?kind["']?[ \t]*:[ \t]*["']?([A-Za-z]+)""", re.MULTILINE)
_PLAIN_KIND = regex(r"[A-Za-z]+")
ANY_KIND = "*"
"""Stands for every kind: the patch states no kind, or is not here to read."""


@dataclass(slots=True)
class Kustomization:
    """A kustomization file. Its paths start at the folder that the user named."""

    file: str
    boundary: str
    """The real path of the folder that nothing may lead out of."""
    is_component: bool = False
    objects: list[str] = field(default_factory=list)
    """Files with objects among its resources."""
    bases: list[str] = field(default_factory=list)
    """Folders with kustomizations among its resources and components."""
    parts: list[str] = field(default_factory=list)
    """Files that are not objects: patches, replacements, texts of ConfigMaps."""
    patches: list[str] = field(default_factory=list)
    """The parts that change objects."""
    aimed: list[str] = field(default_factory=list)
    """The patches that state which objects they change, and not only definitions."""
    texts: list[str] = field(default_factory=list)
    """The parts that become texts of ConfigMaps and Secrets."""
    problem: str = ""
    """Why it must not be built; empty if it may be built."""
    stated: Mapping[str, Any] = field(default_factory=dict)
    """Its content."""

    @property
    def folder(self) -> str:
        """The folder of the file."""
        return str(Path(self.file).parent)


def find_kustomization(folder: str) -> str | None:
    """Return the kustomization file of a folder."""
    files = (str(Path(folder, name)) for name in KUSTOMIZATIONS)
    return next((file for file in files if Path(file).is_file()), None)


def read_kustomization(file: str, boundary: str) -> Kustomization | Unreadable | None:
    """Read a kustomization. Returns None for a file of another program, such as Flux.

    Args:
        file: The file.
        boundary: The real path of the folder that nothing may lead out of.
    """
    text = read_below(Path(file), Path(boundary))
    content = text if isinstance(text, Unreadable) else parse_kube_map(text, file)
    if isinstance(content, Unreadable):
        return content
    version = next(_values(content, "apiversion"), None)
    if version is not None and not str(version).startswith(_GROUP):
        return None
    is_component = _COMPONENT in _values(content, "kind")
    made = Kustomization(file=file, boundary=boundary, is_component=is_component)
    reading = _Reading(made)
    reading.check_form(str(text))
    try:
        reading.read(content)
    except (OSError, ValueError) as error:  # too long, or with a null byte
        why = error.strerror if isinstance(error, OSError) else error
        reading.refuse(f"it names a path that cannot be read: {why}")
    return made


class _Reading:
    """The reading of one kustomization."""

    def __init__(self, made: Kustomization) -> None:
        self._made = made
        self._boundary = made.boundary
        self._folder = os.path.realpath(made.folder)

    def check_form(self, text: str) -> None:
        """Refuse what Kustomize may read differently than this module."""
        present = [name for name in KUSTOMIZATIONS if os.path.lexists(Path(self._folder, name))]
        if len(present) > 1:
            self.refuse(f"its folder has both {' and '.join(present)}")
        if plain_scalars(text) is None:
            self.refuse("it has YAML tags or merge keys, which programs read differently")

    def read(self, content: Mapping[str, Any]) -> None:
        """Read what it names. Raises OSError or ValueError for what is no path."""
        for key in _BUILT_OF:
            for entry in _texts(content, key):
                self._built_of(entry)
        for key in _PLUGINS:
            for entry in _texts(content, key):
                self._plugin(entry)
        self._made.stated = content
        self._read_parts(content)
        for path in _generated(content):
            self._part(path, is_text=True)
        if any(any(_values(content, key)) for key in _CHARTS):
            self.refuse("it takes in a Helm chart (helmCharts)")

    def _read_parts(self, content: Mapping[str, Any]) -> None:
        for key in _PARTS:
            for path in (text for text in _texts(content, key) if _LINE not in text):
                self._part(path, is_patch=key in _CHANGING)
        for key in _PATCHES:
            for item in _maps(content, key):
                for path in _texts(item, "path"):
                    self._part(path, is_patch=key in _CHANGING, is_aimed=_is_aimed(item))

    def refuse(self, why: str) -> None:
        """Note the first reason why it must not be built."""
        self._made.problem = self._made.problem or why

    def _join(self, path: str) -> str:
        """Resolve a path as Kustomize does: from the real folder, and `..` before links."""
        shown, real = (
            os.path.normpath(Path(each, path)) for each in (self._made.folder, self._folder)
        )
        return shown if os.path.realpath(shown) == os.path.realpath(real) else real

    def _leads_out(self, path: str) -> bool:
        real = os.path.realpath(path)
        return real != self._boundary and not Path(real).is_relative_to(self._boundary)

    def _built_of(self, entry: str) -> None:
        """Add what a kustomization builds on: a folder, a file, or an address to refuse."""
        path = self._join(entry)
        if _ADDRESS.match(entry):
            self.refuse(f"remote base {entry}")
        elif self._leads_out(path):
            self.refuse(f"it builds on {entry}, which leads out of {self._boundary}")
        elif is_of_git(os.path.realpath(path), self._boundary):
            self.refuse(f"it builds on {entry}, which is data of git")
        elif Path(path).is_dir():
            self._made.bases.append(path)
        elif Path(path).is_file():
            self._made.objects.append(path)
        elif _REPOSITORY.search(entry):
            self.refuse(f"remote base {entry}")
        else:
            self.refuse(f"it builds on {entry}, which is not here")

    def _plugin(self, entry: str) -> None:
        """Read the settings of a generator or a transformer: a file, or the entry itself."""
        path, shown = self._join(entry), entry.partition(_LINE)[0]
        if Path(path).is_dir():
            self.refuse(f"the plugin {shown} is a folder")
        texts: list[str | Unreadable] = [entry]
        if _LINE not in entry:
            self._part(entry)
            if Path(path).is_file():
                texts.append(read_below(Path(path), Path(self._boundary)))
        if any(isinstance(text, Unreadable) or _may_fetch(text) for text in texts):
            self.refuse(f"the plugin {shown} may fetch something")

    def _part(
        self, path: str, *, is_text: bool = False, is_patch: bool = False, is_aimed: bool = False
    ) -> None:
        """Add a file that a kustomization reads: texts, patches, and patches aimed at a target."""
        if _ADDRESS.match(path):
            self.refuse(f"remote file {path}")
            return
        joined = self._join(path)
        if is_of_git(os.path.realpath(joined), self._boundary):
            self.refuse(f"it reads {path}, which is data of git")
            return
        self._made.parts.append(joined)
        if is_text:
            self._made.texts.append(joined)
        if is_patch:
            self._made.patches.append(joined)
        if is_aimed:
            self._made.aimed.append(joined)


def _is_aimed(item: Mapping[str, Any]) -> bool:
    """Return whether a patch states a target that may be another object than a definition."""
    targets = [mapping(target) for target in _values(item, "target")]
    return any(set(_values(target, "kind")) != {_DEFINITION} for target in targets)


def patched_kinds(made: Kustomization) -> set[str]:
    """Return the kinds of objects that the patches of a kustomization itself may change."""
    content, found = made.stated, set[str]()
    for key in _CHANGING_ANY:
        found.update(ANY_KIND for value in _values(content, key) if value)
    for text in _texts(content, "patchesstrategicmerge"):
        found |= _kinds_of(text, made)
    for item in (each for key in ("patches", "patchesjson6902") for each in _maps(content, key)):
        targets = [mapping(target) for target in _values(item, "target")]
        kinds = {str(kind) for target in targets for kind in _values(target, "kind") if kind}
        if not kinds:
            texts = (text for key in ("patch", "path") for text in _texts(item, key))
            kinds = {kind for text in texts for kind in _kinds_of(text, made)}
        found.update(kind if _PLAIN_KIND.fullmatch(kind) else ANY_KIND for kind in kinds)
    return found


def _kinds_of(patch: str, made: Kustomization) -> set[str]:
    """Return the kinds in a patch, which is a text or the path of a file."""
    text: str | Unreadable = patch
    if _LINE not in patch:
        text = read_below(Path(made.folder, patch), Path(made.boundary))
    found = set[str]() if isinstance(text, Unreadable) else set(_KIND.findall(text))
    return found or {ANY_KIND}


def _may_fetch(text: str) -> bool:
    """Return whether the settings of a plugin contain an address, or may be read differently."""
    found = plain_scalars(text)
    return found is None or any(map(_ANYWHERE.search, found))


def _generated(content: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of files whose text becomes a part of a ConfigMap or a Secret."""
    for key in _GENERATED:
        for item in _maps(content, key):
            for text in _texts(item, "files"):
                path = text.partition("=")[2]  # of key=path; it may be the path alone
                yield text if not path or _ADDRESS.match(text) else path
            yield from (text for name in ("env", "envs") for text in _texts(item, name))


def _values(content: Mapping[str, Any], key: str) -> Iterator[Any]:
    """Yield the values of a key, however it is written: Go may take any of several."""
    return (value for name, value in content.items() if str(name).casefold() == key)


def _maps(content: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    for value in _values(content, key):
        yield from (mapping(item) for item in (value, *sequence(value)))


def _texts(content: Mapping[str, Any], key: str) -> Iterator[str]:
    for value in _values(content, key):
        yield from (item for item in (value, *sequence(value)) if isinstance(item, str) and item)
