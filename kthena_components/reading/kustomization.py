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

from kthena_components.core.templates import without_changed, without_image, without_set
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import DEFAULT_NAMESPACE, group_kind, mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved
from kthena_components.core.values.values_in_text import read_yaml_text
from kthena_components.reading.files import Unreadable
from kthena_components.reading.folders import KUSTOMIZATIONS, is_of_git
from kthena_components.reading.settings import parse_kube_map, plain_scalars, read_below

_GROUP, _COMPONENT = "kustomize.config.k8s.io/", "Component"
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
_CHANGING_ANY = ("transformers", "replacements", "vars")
_DOCUMENTS = regex(r"^---(?:[ \t].*)?$", re.MULTILINE)
_PLAIN_PATTERN, _MOST_STARS = regex(r"(?:[\w/|-]|\.\*?)*"), 3
"""Patterns that Go and Python read alike, and that take no long time."""
_PLAIN_PATH = regex(r"[\w./-]+")
_OWN = ("name", "namespace")
_SCALED = "Deployment|ReplicaSet|ReplicationController|StatefulSet"
_INCLUDED = ("includetemplates", "includeselectors")
_SELECTING = "DaemonSet|Deployment|ReplicaSet|StatefulSet|PodDisruptionBudget"
_TEMPLATED = "DaemonSet|Deployment|Job|ReplicaSet|ReplicationController|StatefulSet"
_MERGED_BY_NAME = frozenset({"", "apps", "batch"})
"""API groups with pods, of whose kinds Kustomize has the schema. It replaces lists of others."""


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
    """Files that are not objects: patches, replacements, files of ConfigMaps."""
    patches: list[str] = field(default_factory=list)
    """The parts that change objects."""
    aimed: list[str] = field(default_factory=list)
    """The patches that state which objects they change, and not only definitions."""
    texts: list[str] = field(default_factory=list)
    """The parts that become contents of ConfigMaps and Secrets."""
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
        """Read what it names. Raises OSError or ValueError for what is not a path."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What a kustomization changes in some objects."""

    file: str
    """The kustomization."""
    target: Mapping[str, Any] = field(default_factory=dict)
    """Patterns of the objects, by the keys of a target in lower case. Empty: all objects."""
    change: object = None
    """A strategic merge patch, the operations of a JSON patch, or None if it is not known."""
    image: str = ""
    """The name of images that it changes, wherever they are."""
    loose: frozenset[str] = frozenset()
    """Keys of a target that other fields of the kustomizations change before: not compared."""

    def may_change(self, body: Mapping[str, Any]) -> bool:
        """Return whether it may change an object.

        Source: sigs.k8s.io/kustomize/api v0.20, types/selector.go: patterns of the whole text.
        """
        metadata, (group, kind) = mapping(body.get("metadata")), group_kind(body)
        stated = {
            "group": group,
            "version": str(body.get("apiVersion")).rpartition("/")[2],
            "kind": kind,
            "name": metadata.get("name"),
            "namespace": metadata.get("namespace", DEFAULT_NAMESPACE),
        }
        compared = [key for key in stated if key not in self.loose]
        return all(_may_fit(self.target.get(key), stated[key]) for key in compared)

    def without(self, body: Mapping[str, Any]) -> Any:
        """Return an object in which what it may change is not known; no map if that is all."""
        if self.image:
            return without_image(body, self.image)
        if isinstance(self.change, Mapping):
            by_name = group_kind(body)[0] in _MERGED_BY_NAME
            own = {key: body.get(key) for key in ("apiVersion", "kind")}
            change = {**self.change, **own, "metadata": {**mapping(self.change.get("metadata"))}}
            kept = mapping(body.get("metadata")).items()
            change["metadata"] |= {k: v for k, v in kept if k in _OWN}
            return without_changed(body, change, by_name=by_name)
        return without_set(body, self.change) if isinstance(self.change, list) else None


def _may_fit(pattern: object, value: object) -> bool:
    """Return whether a pattern may fit a value. One that is not plain may fit any."""
    if not pattern or not isinstance(value, str) or is_unresolved(value):
        return True
    text = pattern.removeprefix("^").removesuffix("$") if isinstance(pattern, str) else "("
    if not _PLAIN_PATTERN.fullmatch(text) or text.count("*") > _MOST_STARS:
        return True
    return re.fullmatch(text, value) is not None


def patches_of(made: Kustomization) -> Iterator[Patch]:
    """Yield what a kustomization itself changes in objects."""
    content = made.stated
    if any(value for key in _CHANGING_ANY for value in _values(content, key)):
        yield Patch(file=made.file)
    for text in _texts(content, "components"):
        if _ADDRESS.match(text) or not Path(made.folder, text).is_dir():
            yield Patch(file=made.file)
    for text in _texts(content, "patchesstrategicmerge"):
        yield from _patches_in(text, {}, made)
    yield from _labels(made)
    for item in _maps(content, "replicas"):
        target = {"kind": _SCALED, "name": next(_values(item, "name"), None)}
        yield Patch(file=made.file, target=target, change={"spec": {"replicas": "any"}})
    for item in _maps(content, "images"):
        yield from (Patch(file=made.file, image=name) for name in _texts(item, "name"))
    for item in (each for key in ("patches", "patchesjson6902") for each in _maps(content, key)):
        targets = [mapping(target) for target in _values(item, "target")]
        target = {str(key).casefold(): value for each in targets for key, value in each.items()}
        for text in (text for key in ("patch", "path") for text in _texts(item, key)):
            yield from _patches_in(text, target, made)


def _labels(made: Kustomization) -> Iterator[Patch]:
    """Yield the patches that amount to the labels and annotations of a kustomization.

    Source: sigs.k8s.io/kustomize/api v0.20 internal/konfig/builtinpluginconsts.
    """
    for item in _maps(made.stated, "labels"):
        templates, selectors = (any(_values(item, key)) for key in _INCLUDED)
        for pairs in _maps(item, "pairs"):
            yield from _labels_at(made, "labels", pairs, (True, templates or selectors, selectors))
            yield from (_at_field(made, at, pairs) for at in _maps(item, "fields") if at)
    for pairs in _maps(made.stated, "commonlabels"):
        yield from _labels_at(made, "labels", pairs, (True, True, True))
    for pairs in _maps(made.stated, "commonannotations"):
        yield from _labels_at(made, "annotations", pairs, (True, True, False))


def _at_field(made: Kustomization, at: Mapping[str, Any], pairs: Mapping[str, Any]) -> Patch:
    """Return what labels change at a fieldSpec: not known if its path leads through a list."""
    path, change = str(at.get("path")), dict[str, Any](pairs)
    for step in reversed(path.split("/")):
        change = {step: change}
    target = {key: at.get(key) for key in ("group", "version", "kind")}
    known = change if _PLAIN_PATH.fullmatch(path) else None
    return Patch(file=made.file, target=target, change=known)


def _labels_at(
    made: Kustomization, key: str, pairs: Mapping[str, Any], at: tuple[bool, bool, bool]
) -> Iterator[Patch]:
    """Yield what labels change where they are added: in objects, their templates, selectors."""
    own, named = {"metadata": {key: pairs}}, {"selector": {"matchLabels": pairs}}
    changes = (("", own), (_TEMPLATED, {"spec": {"template": own}}), (_SELECTING, {"spec": named}))
    selects = ("Service|ReplicationController", {"spec": {"selector": pairs}})
    for (kinds, change), changes_it in zip((*changes, selects), (*at, at[-1]), strict=True):
        if pairs and changes_it:
            yield Patch(file=made.file, target={"kind": kinds}, change=change)


def _patches_in(patch: str, target: Mapping[str, Any], made: Kustomization) -> Iterator[Patch]:
    """Yield the patches in a string, or in the file that it names."""
    text: str | Unreadable = patch
    if _LINE not in patch and not patch.startswith(("[", "{")):
        text = read_below(Path(made.folder, patch), Path(made.boundary))
    parts = [""] if isinstance(text, Unreadable) else _DOCUMENTS.split(text)
    read = [read_yaml_text(part, "the patch") for part in parts]
    for change in [each for each in read if each is not None] or [None]:
        if isinstance(change, Mapping):
            yield Patch(file=made.file, target=target or _target_of(change), change=change)
        else:
            known = change if isinstance(change, list) else None
            yield Patch(file=made.file, target=target, change=known)


def _target_of(change: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the target of a strategic merge patch: the object that it names."""
    metadata, version = mapping(change.get("metadata")), change.get("apiVersion")
    names = {key: metadata.get(key) for key in ("name", "namespace")}
    kind = change.get("kind")
    group = {"group": group_kind(change)[0]} if version else {}
    return {} if str(kind).endswith("List") else {**group, **names, "kind": kind}


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
    return (mapping(item) for value in _values(content, key) for item in (value, *sequence(value)))


def _texts(content: Mapping[str, Any], key: str) -> Iterator[str]:
    for value in _values(content, key):
        yield from (item for item in (value, *sequence(value)) if isinstance(item, str) and item)
