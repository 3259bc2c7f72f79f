"""Reads Applications of Argo CD.

Later values override earlier ones: the values files, the values in the object, the parameters.
Source: argo-cd reposerver/repository/repository.go (helmTemplate, getResolvedValueFiles) and
util/helm/cmd.go (template).
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.folders import CHART
from kthena_components.reading.kustomization import find_kustomization
from kthena_components.reading.releases.model import (
    ChartRelease,
    Outside,
    OutsideError,
    Overlay,
    Place,
    Statement,
    images_of,
    patches_of,
)
from kthena_components.reading.releases.repository import Repository

_REF = regex(r"\$([^/]+)/(.*)")
_GLOB = regex(r"[*?]")
_COUNT = regex(r"[0-9]{1,9}")
_API = regex(r"[A-Za-z0-9./-]{1,200}")
_KEPT = ("namePrefix", "nameSuffix", "namespace", "commonAnnotations")
_SILENT = frozenset({"version", "forceCommonLabels", "forceCommonAnnotations"})
_LABELS = ("commonLabels", "labelWithoutSelector", "labelIncludeTemplates")


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
        self._source, self._refs = source, refs
        self._place, self._repository = place, repository
        self._helm = mapping(source.get("helm"))
        goes = mapping(mapping(body.get("spec")).get("destination"))
        self._namespace = str(self._helm.get("namespace") or goes.get("namespace") or "")
        self._name = str(mapping(body.get("metadata")).get("name") or "")

    def read(self) -> Iterator[Statement]:
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
        stated = mapping(self._source.get("kustomize"))
        fields = {key: stated[key] for key in _KEPT if stated.get(key)}
        fields |= patches_of(stated.get("patches")) | images_of(stated.get("images"))
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
