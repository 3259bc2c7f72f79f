"""Reads HelmReleases and Kustomizations of Flux.

Later values override earlier ones: `valuesFrom` in its order, then `values`. The `valuesFiles` of
the chart replace its values.yaml.
Source: fluxcd/pkg chartutil/values.go (ChartValuesFromReferences); fluxcd/source-controller
internal/helm/chart/builder_local.go; fluxcd/kustomize-controller docs/spec/v1/kustomizations.md.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping, namespace_of, sequence, spec_of
from kthena_components.core.values.regex import regex
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

Find = Callable[[str, str, str], Mapping[str, Any] | None]
"""Finds another object in the files by kind, namespace and name."""
_GIT, _CHART, _CONFIG_MAP = "GitRepository", "HelmChart", "ConfigMap"
_PATH = regex(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


def helm_release(
    body: Mapping[str, Any], place: Place, repository: Repository, find: Find
) -> list[Statement]:
    """Read a HelmRelease."""
    try:
        return [_HelmRelease(body, place, repository, find).read()]
    except OutsideError as error:
        return [Outside(place=place, why=str(error), folder=error.folder)]


def flux_kustomization(
    body: Mapping[str, Any], place: Place, repository: Repository, find: Find
) -> list[Statement]:
    """Read a Kustomization of Flux. Its folder may have only objects, which are read as files."""
    try:
        return list(_kustomization(body, place, repository, find))
    except OutsideError as error:
        spec = mapping(body.get("spec"))
        folders = (error.folder, *repository.beside(error.folder, spec.get("components")))
        return [Outside(place=place, why=str(error), folder=each) for each in folders]


class _HelmRelease:
    """The reading of a HelmRelease."""

    def __init__(
        self, body: Mapping[str, Any], place: Place, repository: Repository, find: Find
    ) -> None:
        self._spec, self._metadata = mapping(body.get("spec")), mapping(body.get("metadata"))
        self._place, self._repository, self._find = place, repository, find
        self._own = str(self._metadata.get("namespace") or "")

    def read(self) -> ChartRelease:
        """Read a HelmRelease whose chart is a folder of the repository."""
        chart = mapping(mapping(self._spec.get("chart")).get("spec"))
        named = mapping(self._spec.get("chartRef"))
        if not chart and named.get("kind") == _CHART:
            own = str(named.get("namespace") or self._own)
            chart = spec_of(mapping(self._find(_CHART, own, str(named.get("name")))))
        if not chart:
            raise OutsideError(f"its chart is {named.get('kind')} {named.get('name')}")
        with OutsideError.of(self._repository.known(chart.get("chart"))):
            _require(mapping(chart.get("sourceRef")), self._own, self._repository, self._find)
        folder = self._repository.folder(chart.get("chart"))
        if not Path(folder, CHART).is_file():
            raise OutsideError(f"{chart.get('chart')} has no {CHART}")
        with OutsideError.of(folder):
            return self._release(folder, chart)

    def _release(self, folder: str, chart: Mapping[str, Any]) -> ChartRelease:
        """Read the release's name, namespace and values, in the order in which Flux merges them."""
        goes, name = self._spec.get("targetNamespace"), str(self._metadata.get("name") or "")
        return ChartRelease(
            place=self._place,
            folder=folder,
            name=str(self._spec.get("releaseName") or (f"{goes}-{name}" if goes else name)),
            namespace=str(goes or self._own),
            values=(*self._files(chart), *self._from_objects(), *self._inline()),
            keeps_defaults=not chart.get("valuesFiles"),
            fields=self._post(),
        )

    def _files(self, chart: Mapping[str, Any]) -> Iterator[str]:
        for path in sequence(chart.get("valuesFiles")):
            ignored = chart.get("ignoreMissingValuesFiles") is True
            if not ignored or self._repository.has(path):
                yield self._repository.read(path)

    def _inline(self) -> Iterator[str]:
        values = self._spec.get("values")
        if isinstance(values, Mapping):
            yield json.dumps(values, default=str)

    def _from_objects(self) -> Iterator[str]:
        for each in map(mapping, sequence(self._spec.get("valuesFrom"))):
            text, path = self._text(each), each.get("targetPath")
            if text is not None:
                yield _values_at_path(str(path), text) if path else text

    def _text(self, named: Mapping[str, Any]) -> str | None:
        """Read values from a ConfigMap among the files; None if it may be missing."""
        kind, name = str(named.get("kind")), str(named.get("name"))
        body = self._find(kind, self._own, name) if kind == _CONFIG_MAP else None
        text = mapping(mapping(body).get("data")).get(str(named.get("valuesKey", "values.yaml")))
        if isinstance(text, str):
            return text
        if named.get("optional") is True and kind == _CONFIG_MAP:
            return None
        raise OutsideError(f"it takes values from the {kind} {name}, which is not in the files")

    def _post(self) -> dict[str, Any]:
        """Read the patches and images of the only postRenderer."""
        every = map(mapping, sequence(self._spec.get("postRenderers")))
        stated = [body for each in every if (body := mapping(each.get("kustomize")))]
        if len(stated) > 1:
            raise OutsideError("it has several postRenderers, of which one is read")
        if any(body.get("patchesStrategicMerge") or body.get("patchesJson6902") for body in stated):
            raise OutsideError(
                "its postRenderers have patchesStrategicMerge or patchesJson6902, and only patches "
                "are read"
            )
        only = mapping(next(iter(stated), None))
        return stated_patches(only.get("patches")) | images_of(only.get("images"))


def _values_at_path(path: str, text: str) -> str:
    """Return values with one of them at a path, of the type that `helm --set` gives it."""
    # Only for a targetPath.
    from kthena_components.core.values.values_in_text import typed  # noqa: PLC0415

    value: Any = typed(text)
    if not _PATH.fullmatch(path):
        raise OutsideError(f"its targetPath {path} is not read")
    for key in reversed(path.split(".")):
        value = {key: value}
    return json.dumps(value)


def _require(named: Mapping[str, Any], own: str, repository: Repository, find: Find) -> None:
    """Require that a source is this repository.

    Raises:
        OutsideError: It is another one, or no repository of git.
    """
    kind, name = named.get("kind"), str(named.get("name"))
    if kind != _GIT:
        raise OutsideError(f"its source is the {kind} {name}")
    source = find(_GIT, str(named.get("namespace") or own), name)
    if source is not None:
        spec = mapping(source.get("spec"))
        ref = mapping(spec.get("ref"))
        revision = ref.get("commit") or ref.get("semver") or ref.get("tag")
        repository.require(spec.get("url"), revision)


def _kustomization(
    body: Mapping[str, Any], place: Place, repository: Repository, find: Find
) -> Iterator[Statement]:
    """Read a Kustomization of Flux whose folder is in the repository."""
    spec = mapping(body.get("spec"))
    own = namespace_of(body)
    path = str(spec.get("path") or "")
    with OutsideError.of(repository.known(path) if path.strip("./") else ""):
        _require(mapping(spec.get("sourceRef")), own, repository, find)
    folder = repository.folder(spec.get("path") or "/")
    with OutsideError.of(folder):
        yield from _overlay(spec, folder, place, partial(find, _CONFIG_MAP, own))


def _overlay(
    spec: Mapping[str, Any],
    folder: str,
    place: Place,
    config_map: Callable[[str], Mapping[str, Any] | None],
) -> Iterator[Overlay]:
    """Read what Flux changes of a kustomization, and the variables that it replaces."""
    fields = stated_patches(spec.get("patches")) | images_of(spec.get("images"))
    fields |= {key: spec[key] for key in ("namePrefix", "nameSuffix") if spec.get(key)}
    if isinstance(spec.get("targetNamespace"), str):
        fields["namespace"] = spec["targetNamespace"]
    if spec.get("components"):
        raise OutsideError("its components are not read")
    post = mapping(spec.get("postBuild"))
    stated, closed = _variables(post, config_map)
    if find_kustomization(folder) is None:
        if fields or stated:
            raise OutsideError("its folder has no kustomization that its patches could apply to")
        return
    yield Overlay(
        place=place,
        folder=folder,
        fields=fields,
        variables=stated,
        replaces=bool(post),
        closed=closed,
    )


def _variables(
    post: Mapping[str, Any], config_map: Callable[[str], Mapping[str, Any] | None]
) -> tuple[dict[str, str], bool]:
    """Return the variables of a `postBuild`, and whether these are all.

    `substitute` overrides `substituteFrom`, whose later items override earlier ones.
    """
    found: dict[str, str] = {}
    closed = bool(post)
    for each in map(mapping, sequence(post.get("substituteFrom"))):
        body = config_map(str(each.get("name"))) if each.get("kind") == _CONFIG_MAP else None
        closed = closed and body is not None
        found |= {str(key): str(value) for key, value in mapping(mapping(body).get("data")).items()}
    stated = mapping(post.get("substitute"))
    return found | {str(key): str(value) for key, value in stated.items()}, closed
