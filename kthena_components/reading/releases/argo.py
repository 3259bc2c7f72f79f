"""Reads Applications of Argo CD, and ApplicationSets with the Applications that they make.

Later values override earlier ones: the values files, the values in the object, the parameters.
Source: argo-cd reposerver/repository/repository.go (helmTemplate, getResolvedValueFiles) and
util/helm/cmd.go (template).

Reads ApplicationSets of Argo CD: the Applications that their generators make.

Generators of lists and of git need no cluster, and neither does a matrix of them. Of Go templates,
only fields are read: `{{ .path.basename }}`.
Source: argo-cd applicationset/generators (list.go, git.go, matrix.go), applicationset/utils
(Replace in utils.go) and docs/operator-manual/applicationset/Generators-Git-File-Globbing.md.
"""

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable
from kthena_components.reading.folders import CHART
from kthena_components.reading.kustomization import find_kustomization
from kthena_components.reading.releases.release import (
    ChartRelease,
    Outside,
    OutsideError,
    Overlay,
    Place,
    Repository,
    Statement,
    images_of,
    stated_patches,
)
from kthena_components.reading.settings import parse_kube_map

_REF = regex(r"\$([^/]+)/(.*)")
_GLOB = regex(r"[*?]")
_COUNT = regex(r"[0-9]{1,9}")
_API = regex(r"[A-Za-z0-9./-]{1,200}")
_KEPT = ("namePrefix", "nameSuffix", "namespace", "commonAnnotations")
_SILENT = frozenset({"version", "forceCommonLabels", "forceCommonAnnotations"})
_LABELS = ("commonLabels", "labelWithoutSelector", "labelIncludeTemplates")
_MOST = 200
"""Maximum number of Applications of one set."""
_TEMPLATE = regex(r"\{\{((?:[^{}]|\{(?!\{)|\}(?!\}))*)\}\}")
_FIELD = regex(r"\.[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_INDEX = regex(r"index\s+(\.[\w.]+)\s+(\d{1,3})")
_ODD = regex(r"[^a-z0-9.-]")
_TRIMMED = "-."
_BESIDE = frozenset({"selector", "template", "values"})
_LONGEST = 253
_HEAD = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
Params = Mapping[str, Any]


def applications(body: Mapping[str, Any], place: Place, repository: Repository) -> list[Statement]:
    """Read the sources of an Application."""
    spec = mapping(body.get("spec"))
    sources = [mapping(each) for each in sequence(spec.get("sources"))] or [
        mapping(spec.get("source"))
    ]
    refs = {str(each["ref"]): each for each in sources if "ref" in each}
    found: list[Statement] = []
    for source in sources:
        if "ref" in source and not source.get("path") and not source.get("chart"):
            continue
        reading = _Source(body, source, refs, place, repository)
        try:
            found.extend(reading.read())
        except OutsideError as error:
            components = mapping(source.get("kustomize")).get("components")
            folders = (error.folder, *repository.beside(error.folder, components))
            found.extend(Outside(place=place, why=str(error), folder=each) for each in folders)
    return found


class _Source:
    """One source of an Application."""

    def __init__(
        self,
        body: Mapping[str, Any],
        source: Mapping[str, Any],
        refs: Mapping[str, Mapping[str, Any]],
        place: Place,
        repository: Repository,
    ) -> None:
        """Keep what the values and the name of the release are read from."""
        self._source, self._refs = source, refs
        self._place, self._repository = place, repository
        self._helm = mapping(source.get("helm"))
        goes = mapping(mapping(body.get("spec")).get("destination"))
        self._namespace = str(self._helm.get("namespace") or goes.get("namespace") or "")
        self._name = str(mapping(body.get("metadata")).get("name") or "")

    def read(self) -> Iterator[Statement]:
        """Read a chart or a kustomization in the repository; others are refused."""
        url = self._source.get("repoURL")
        if self._source.get("chart"):
            raise OutsideError(f"its chart {self._source['chart']} is in the registry {url}")
        path = self._source.get("path")
        with OutsideError.of(self._repository.known(path)):
            self._repository.require(url, self._source.get("targetRevision"))
        folder = self._repository.folder(path)
        with OutsideError.of(folder):
            if self._source.get("plugin") is not None:
                raise OutsideError("a plugin makes its objects")
            if Path(folder, CHART).is_file():
                yield self._chart(folder)
            elif find_kustomization(folder) is not None:
                yield self._overlay(folder)

    def _chart(self, folder: str) -> ChartRelease:
        """Read the release of a chart with its files of values and its parameters."""
        if self._helm.get("fileParameters"):
            raise OutsideError("its fileParameters are not read")
        return ChartRelease(
            place=self._place,
            folder=folder,
            name=str(self._helm.get("releaseName") or self._name),
            namespace=self._namespace,
            values=(*self._files(folder), *self._inline()),
            options=(*self._parameters(), *self._versions()),
        )

    def _files(self, folder: str) -> Iterator[str]:
        """Read the files of values, also of other sources by $NAME and by patterns."""
        for path in sequence(self._helm.get("valueFiles")):
            ref = _REF.fullmatch(path) if isinstance(path, str) else None
            start, below = folder, path
            if ref is not None:
                start, below = self._referred(ref[1]), f"/{ref[2]}"
            if isinstance(below, str) and _GLOB.search(below):
                yield from self._matching(below, start)
            elif self._repository.has(below, start):
                yield self._repository.read(below, start)
            elif not self._helm.get("ignoreMissingValueFiles"):
                raise OutsideError(f"its values are in {path}, which is not in the repository")

    def _referred(self, ref: str) -> str:
        """Return where the paths of another source start: it must be this repository, too."""
        other = self._refs.get(ref)
        if other is None:
            raise OutsideError(f"its values are in the source ${ref}, which it does not state")
        url = other.get("repoURL")
        if url != self._source.get("repoURL") and not self._repository.name:
            raise OutsideError(f"its values are in the repository {url}")
        self._repository.require(url, other.get("targetRevision"))
        return self._repository.boundary

    def _matching(self, path: str, start: str) -> Iterator[str]:
        root = Path(self._repository.boundary)
        base = "" if path.startswith("/") else Path(start).relative_to(root).as_posix()
        pattern = path.lstrip("/") if base in ("", ".") else f"{base}/{path}"
        found = self._repository.matching(pattern, folders=False)
        if not found and not self._helm.get("ignoreMissingValueFiles"):
            raise OutsideError(f"its values are in {path}, which matches no file of the repository")
        yield from map(self._repository.read, found)

    def _inline(self) -> Iterator[str]:
        values = self._helm.get("valuesObject")
        if isinstance(values, Mapping):
            yield json.dumps(values, default=str)
        elif isinstance(text := self._helm.get("values"), str) and text.strip():
            yield text

    def _parameters(self) -> Iterator[str]:
        for item in sequence(self._helm.get("parameters")):
            name, value = mapping(item).get("name"), mapping(item).get("value", "")
            option = "--set-string" if mapping(item).get("forceString") is True else "--set"
            yield f"{option}={name}={_escaped(_text(value))}"

    def _versions(self) -> Iterator[str]:
        for version in sequence(self._helm.get("apiVersions")):
            if isinstance(version, str) and _API.fullmatch(version):
                yield f"--api-versions={version}"

    def _overlay(self, folder: str) -> Overlay:
        """Read what an Application changes of a kustomization, as fields of a kustomization."""
        stated = mapping(self._source.get("kustomize"))
        fields = {key: stated[key] for key in _KEPT if stated.get(key)}
        fields |= stated_patches(stated.get("patches")) | images_of(stated.get("images"))
        if isinstance(stated.get("commonLabels"), Mapping):
            selects = stated.get("labelWithoutSelector") is not True
            label = {"pairs": stated["commonLabels"], "includeSelectors": selects}
            within = stated.get("labelIncludeTemplates") is True
            fields["labels"] = [{**label, "includeTemplates": True} if within else label]
        if replicas := sequence(stated.get("replicas")):
            fields["replicas"] = [
                {"name": mapping(each).get("name"), "count": int(number)}
                for each in replicas
                if _COUNT.fullmatch(number := str(mapping(each).get("count")))
            ]
        known = {*_KEPT, *_LABELS, *_SILENT, "patches", "images", "replicas"}
        if others := sorted(key for key in stated if key not in known and stated[key]):
            raise OutsideError(f"its kustomize.{others[0]} is not read")
        return Overlay(place=self._place, folder=folder, fields=fields)


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool | int | float) else str(value)


def _escaped(value: str) -> str:
    """Escape commas, which separate values, as Argo CD does."""
    if value.startswith("{") and value.endswith("}"):
        return value
    return re.sub(r"(?<!\\),", r"\\,", value)


def application_set(
    body: Mapping[str, Any], place: Place, repository: Repository
) -> list[Statement]:
    """Read the Applications of an ApplicationSet."""
    found: list[Statement] = []
    try:
        for application in _applications(mapping(body.get("spec")), repository):
            name = mapping(application.get("metadata")).get("name")
            own = replace(place, what=f"{place.what}: {name}")
            for each in applications(application, own, repository):
                whole = {**_HEAD, **application}
                found.append(replace(each, body=whole) if isinstance(each, Outside) else each)
    except OutsideError as error:
        spec = mapping(mapping(mapping(body.get("spec")).get("template")).get("spec"))
        sources = [mapping(each) for each in (spec.get("source"), *sequence(spec.get("sources")))]
        folders = [repository.known(each.get("path")) for each in sources] or [""]
        found.extend(Outside(place=place, why=str(error), folder=each) for each in folders)
    return found


def _applications(spec: Mapping[str, Any], repository: Repository) -> Iterator[Mapping[str, Any]]:
    is_go = spec.get("goTemplate") is True
    if spec.get("templatePatch"):
        raise OutsideError("its templatePatch is not read")
    generators = map(mapping, sequence(spec.get("generators")))
    every = chain.from_iterable(_generated(each, repository, is_go=is_go) for each in generators)
    for params in _limited(every):
        yield mapping(_filled(spec.get("template"), params, is_go=is_go))


def _limited(every: Iterable[Params]) -> Iterator[Params]:
    for number, params in enumerate(every):
        if number == _MOST:
            raise OutsideError(f"its generators make more than {_MOST} Applications")
        yield params


def _generated(
    generator: Mapping[str, Any], repository: Repository, *, is_go: bool
) -> Iterator[Params]:
    """Yield the parameters of a generator."""
    named = [key for key in generator if key not in _BESIDE]
    inner = mapping(generator.get(named[0])) if named else {}
    if generator.get("selector") or inner.get("template"):
        raise OutsideError("its generator has a selector or a template, which is not read")
    match named:
        case ["list"]:
            if inner.get("elementsYaml"):
                raise OutsideError("its generator has elementsYaml, which is not read")
            for each in map(mapping, sequence(inner.get("elements"))):
                yield each if is_go else _flat(each)
        case ["git"]:
            yield from _from_git(inner, repository, is_go=is_go)
        case ["matrix"]:
            both = map(mapping, sequence(inner.get("generators")))
            sides = [list(_limited(_generated(g, repository, is_go=is_go))) for g in both]
            for combined in product(*sides):
                yield {key: value for params in combined for key, value in params.items()}
        case _:
            raise OutsideError(f"its generator {', '.join(named)} needs a cluster or a server")


def _from_git(
    stated: Mapping[str, Any], repository: Repository, *, is_go: bool
) -> Iterator[Params]:
    """List the parameters that a generator makes of folders or of files in the repository."""
    repository.require(stated.get("repoURL"), stated.get("revision"))
    if stated.get("values") or stated.get("pathParamPrefix"):
        raise OutsideError("its generator git has values or a pathParamPrefix, which are not read")
    for path in _chosen(stated.get("directories"), repository, folders=True):
        yield _of_path(path, {}, "", is_go=is_go)
    for path in _chosen(stated.get("files"), repository, folders=False):
        content = parse_kube_map(repository.read(path), path)
        if isinstance(content, Unreadable):
            raise OutsideError(f"its generator reads {path}, which {content.because}")
        yield _of_path(posixpath.dirname(path), content, posixpath.basename(path), is_go=is_go)


def _chosen(stated: object, repository: Repository, *, folders: bool) -> list[str]:
    """List the paths that a pattern matches and no pattern with `exclude: true` matches."""
    sides: dict[bool, set[str]] = {True: set(), False: set()}
    for each in map(mapping, sequence(stated)):
        # Of files, it is a pattern of `git ls-files`, unless the controller has an option set.
        found = repository.matching(str(each.get("path")), folders=folders, greedy=not folders)
        sides[each.get("exclude") is True].update(found)
    return sorted(sides[False] - sides[True])


def _of_path(path: str, content: Params, filename: str, *, is_go: bool) -> Params:
    """Name the parts of a path as Argo CD's generator does, flat or for Go templates."""
    base, parts = posixpath.basename(path), path.split("/")
    known: dict[str, Any] = {"basename": base, "basenameNormalized": _normalized(base)}
    if filename:
        known |= {"filename": filename, "filenameNormalized": _normalized(filename)}
    if is_go:
        return {**content, "path": {"path": path, "segments": parts, **known}}
    below = {f"path.{key}": value for key, value in known.items()}
    listed = {f"path[{index}]": part for index, part in enumerate(parts) if part}
    return {**_flat(content), "path": path, **below, **listed}


def _normalized(name: str) -> str:
    return _ODD.sub("-", name.lower())[:_LONGEST].strip(_TRIMMED)


def _flat(params: Params, above: str = "") -> dict[str, str]:
    """Name nested values by their paths, as strings."""
    made: dict[str, str] = {}
    for key, value in params.items():
        if isinstance(value, Mapping):
            made |= _flat(value, f"{above}{key}.")
        elif isinstance(value, Sequence) and not isinstance(value, str):
            made |= _flat({str(i): each for i, each in enumerate(value)}, f"{above}{key}.")
        else:
            made[f"{above}{key}"] = _filled_text(value)
    return made


def _filled(value: Any, params: Params, *, is_go: bool) -> Any:
    """Fill the parameters in all strings of a value."""
    if isinstance(value, str):
        fill = _go_field if is_go else _field
        return _TEMPLATE.sub(lambda found: fill(found[1].strip(), params, found[0]), value)
    if isinstance(value, Mapping):
        return {
            _filled(key, params, is_go=is_go): _filled(each, params, is_go=is_go)
            for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [_filled(each, params, is_go=is_go) for each in value]
    return value


def _field(name: str, params: Params, written: str) -> str:
    return str(params.get(name, written))


def _go_field(expression: str, params: Params, written: str) -> str:
    """Evaluate an expression that is one field, or one element of one."""
    indexed = _INDEX.fullmatch(expression)
    path = indexed[1] if indexed else expression
    if not _FIELD.fullmatch(path):
        raise OutsideError(f"its template has {written}, which only Argo CD evaluates")
    value: Any = params
    for key in path[1:].split("."):
        value = mapping(value).get(key)
    if indexed:
        listed = sequence(value)
        value = listed[int(indexed[2])] if int(indexed[2]) < len(listed) else None
    if value is None or isinstance(value, Mapping | list):
        raise OutsideError(f"its template has {written}, which no generator gives")
    return _filled_text(value)


def _filled_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
