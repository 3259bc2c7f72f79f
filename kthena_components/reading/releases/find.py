"""Finds what files and renderings state about releases of charts and kustomizations."""

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import group_kind, mapping, sequence
from kthena_components.core.values.values_in_text import may_have
from kthena_components.reading.documents import read_documents
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.folders import KUSTOMIZATIONS
from kthena_components.reading.layout import boundary_of
from kthena_components.reading.releases.argo import application_set, applications
from kthena_components.reading.releases.fleet_and_helmfile import (
    NAMES,
    fleet,
    helm_charts,
    helmfile,
    is_helmfile,
)
from kthena_components.reading.releases.flux import flux_kustomization, helm_release
from kthena_components.reading.releases.release import Place, Repository, Statement
from kthena_components.reading.releases.terraform import SUFFIXES, terraform

_APPLICATION = ("argoproj.io", "Application")
_SET = ("argoproj.io", "ApplicationSet")
_HELM_RELEASE = ("helm.toolkit.fluxcd.io", "HelmRelease")
_KUSTOMIZATION = ("kustomize.toolkit.fluxcd.io", "Kustomization")
_STATING = frozenset({_APPLICATION, _SET, _HELM_RELEASE, _KUSTOMIZATION})
_SOURCES = "source.toolkit.fluxcd.io"
_NAMED = frozenset({(_SOURCES, "GitRepository"), (_SOURCES, "HelmChart"), ("", "ConfigMap")})
"""Kinds that a release may name."""
_Reader = Callable[[str, Place, Repository], list[Statement]]
_GROUPS = ("argoproj.io/", ".toolkit.fluxcd.io/")


@dataclass(frozen=True, slots=True)
class Text:
    """A string that may state releases: a file, or what was rendered from files."""

    name: str
    """Its name in messages."""
    path: str
    boundary: str
    """The real path of the repository."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The strings that may state releases."""

    stating: Sequence[Text]
    """Those in which some are stated."""
    all: Sequence[Text]
    """All strings, with the objects that a release may name."""


def texts_of(files: Iterable[str], folders: Iterable[str], stating: Container[str]) -> Texts:
    """Return the contents of files below some folders, and those that state releases."""
    boundaries = {folder: boundary_of(folder) for folder in folders}
    made: list[Text] = []
    for file in files:
        around = (boundaries[each] for each in boundaries if Path(file).is_relative_to(each))
        made.append(Text(name=file, path=file, boundary=next(around)))
    return Texts([each for each in made if each.path in stating], made)


def states_releases(path: str, read: Callable[[str], str | Unreadable]) -> bool:
    """Return quickly whether a file, which `read` reads, may state a release."""
    if any(_by_name(path)):
        return True
    text = read(path)
    return not isinstance(text, Unreadable) and has_releases(text)


def has_releases(text: str) -> bool:
    """Return quickly whether a string may have an object that states a release."""
    return may_have(text, lambda each: any(group in each for group in _GROUPS))


def find_releases(texts: Texts) -> Iterator[tuple[Statement, Mapping[str, Any]]]:
    """Yield the releases that some strings state, each with its object; empty if it is none."""
    repositories: dict[str, Repository] = {}
    stating: list[tuple[Text, Mapping[str, Any]]] = []
    for text in texts.stating:
        repository = repositories.setdefault(text.boundary, Repository(text.boundary))
        content = read_text(text.path, named=False)
        if isinstance(content, Unreadable):
            continue
        for what, read in _by_name(text.path):
            place = Place(file=text.name, what=what, boundary=text.boundary)
            yield from ((each, {}) for each in read(content, place, repository))
        if has_releases(content):
            stating += ((text, body) for body in _objects(content, _STATING))
    named = _NamedObjects(texts.all)
    for text, body in stating:
        name = mapping(body.get("metadata")).get("name")
        place = Place(file=text.name, what=f"{body.get('kind')} {name}", boundary=text.boundary)
        yield from ((each, body) for each in _read(body, place, repositories[text.boundary], named))


def _by_name(path: str) -> Iterator[tuple[str, _Reader]]:
    """Yield how a file is read that is known by its name."""
    name = os.path.basename(path)  # noqa: PTH119 - of each file
    if is_helmfile(path):
        yield "helmfile", helmfile
    elif name in NAMES:
        yield "Fleet", fleet
    elif name in KUSTOMIZATIONS:
        yield "Kustomize", helm_charts
    elif path.endswith(SUFFIXES):
        yield "Terraform", terraform


def _read(
    body: Mapping[str, Any], place: Place, repository: Repository, named: "_NamedObjects"
) -> list[Statement]:
    """Read the statements of an object by its kind: Argo CD's or Flux's."""
    kind = group_kind(body)
    if kind == _APPLICATION:
        return applications(body, place, repository)
    if kind == _SET:
        return application_set(body, place, repository)
    if kind == _HELM_RELEASE:
        return helm_release(body, place, repository, named.find)
    return flux_kustomization(body, place, repository, named.find)


class _NamedObjects:
    """The objects that a release may name. They are read when the first one is asked for."""

    def __init__(self, texts: Iterable[Text]) -> None:
        self._texts = texts
        self._known: dict[tuple[str, str, str], Mapping[str, Any]] | None = None

    def find(self, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
        """Find an object; one without a namespace may be in any."""
        if self._known is None:
            self._known = dict(self._all())
        return self._known.get((kind, namespace, name)) or self._known.get((kind, "", name))

    def _all(self) -> Iterator[tuple[tuple[str, str, str], Mapping[str, Any]]]:
        """List the objects of all strings that HelmReleases may refer to, by kind and name."""
        for text in self._texts:
            content = read_text(text.path, named=False)
            if isinstance(content, Unreadable) or not may_have(content, _names):
                continue
            for body in _objects(content, _NAMED):
                metadata = mapping(body.get("metadata"))
                namespace = str(metadata.get("namespace") or "")
                yield (str(body.get("kind")), namespace, str(metadata.get("name"))), body


def _names(content: str) -> bool:
    return any(kind in content for _, kind in _NAMED)


def _objects(content: str, kinds: frozenset[tuple[str, str]]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of some kinds in a string, also those in lists."""

    def is_wanted(version: object, kind: object, _text: str) -> bool:
        known = group_kind({"apiVersion": version, "kind": kind})
        return known in kinds or str(kind).endswith("List")

    for document in read_documents(content, "", is_wanted):
        waiting = [] if isinstance(document, Unreadable) else [mapping(document.body)]
        for body in waiting:
            waiting += map(mapping, sequence(body.get("items")))
            if group_kind(body) in kinds:
                yield body
