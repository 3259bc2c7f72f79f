"""Reads fleet.yaml of Rancher Fleet, and helmfiles: those with Go templates only helmfile knows.

In Fleet, later values override earlier ones: `values`, then `valuesFiles`; those of a target
override both. Source: rancher/fleet internal/bundlereader/resources.go (generateValues) and
internal/cmd/controller/options/calculate.go (Merge).

In a helmfile, too: `values` in their order, then `set`. Paths start at the file.
Source: helmfile docs/index.md, pkg/state/state.go (flagsForTemplate, namespaceAndValuesFlags).

So they do in `helmCharts` of a kustomization: the file, then the values in the kustomization, then
the other files. With `valuesMerge: merge` the file overrides them; with `replace` it is not used.
Source: sigs.k8s.io/kustomize api/internal/builtins/HelmChartInflationGenerator.go
(createNewMergedValuesFile, templateCommand) and api/types/helmchartargs.go (AsHelmArgs).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import Unreadable
from kthena_components.reading.folders import CHART, HELMFILE, HELMFILES, TEMPLATE
from kthena_components.reading.kustomization import find_kustomization
from kthena_components.reading.releases.release import (
    ChartRelease,
    Outside,
    OutsideError,
    Overlay,
    Place,
    Repository,
    Statement,
    elsewhere,
    read_or_outside,
)
from kthena_components.reading.settings import parse_kube_map

NAMES = ("fleet.yaml", "fleet.yml")
_TARGETS = ("targetCustomizations", "targets")
_CHARTS = "helmCharts"


def fleet(text: str, place: Place, repository: Repository) -> list[Statement]:
    """Read a fleet.yaml: what it deploys without a target, and on each target."""
    content = parse_kube_map(text, place.file)
    if isinstance(content, Unreadable):
        return []
    found: list[Statement] = []
    targets = [mapping(each) for key in _TARGETS for each in sequence(content.get(key))]
    for target in ({}, *targets):
        if target.get("doNotDeploy") is True:
            continue
        named = f"{place.what}, target {target.get('name')}" if target else place.what
        bundle = _Bundle(content, target, replace(place, what=named), repository)
        chart, version = map(bundle.helm.get, ("chart", "version"))
        found += read_or_outside(bundle.read, bundle.place, bundle.chart, chart, version)
    return found


@dataclass(frozen=True, slots=True)
class _Bundle:
    """A bundle of Fleet on one of its targets."""

    content: Mapping[str, Any]
    target: Mapping[str, Any]
    place: Place
    repository: Repository

    @property
    def helm(self) -> Mapping[str, Any]:
        """What it states for Helm, and the target instead of it."""
        own = {key: value for key, value in mapping(self.target.get("helm")).items() if value}
        return {**mapping(self.content.get("helm")), **own}

    def chart(self, folder: str) -> ChartRelease:
        """Read a release of a chart; both the bundle and the target state values."""
        fields = ("namespace", "defaultNamespace")
        spaces = (each.get(key) for key in fields for each in (self.target, self.content))
        both = [mapping(self.content.get("helm")), mapping(self.target.get("helm"))]
        start = self.place.folder
        return ChartRelease(
            place=self.place,
            folder=folder,
            name=str(self.helm.get("releaseName") or Path(start).name),
            namespace=str(next(filter(None, spaces), "")),
            values=tuple(text for each in both for text in _values(each, start, self.repository)),
        )

    def read(self) -> Iterator[Statement]:
        """Yield the chart or the kustomization that it deploys."""
        start, repository = self.place.folder, self.repository
        chart = self.helm.get("chart")
        if chart and (self.helm.get("repo") or not repository.has(chart, start)):
            raise OutsideError(f"its chart {chart} is not in the repository")
        folder = repository.folder(chart or ".", start)
        if Path(folder, CHART).is_file():
            with OutsideError.of(folder):
                yield self.chart(folder)
            return
        chosen = (mapping(each.get("kustomize")).get("dir") for each in (self.target, self.content))
        below = next(filter(None, chosen), None)
        folder = repository.folder(below, start) if below else start
        if find_kustomization(folder) is not None:
            yield Overlay(place=self.place, folder=folder)


def _values(helm: Mapping[str, Any], start: str, repository: Repository) -> Iterator[str]:
    unread = ("valuesFrom", "templateValues")
    if key := next((key for key in unread if helm.get(key)), ""):
        raise OutsideError(f"its {key} is in a cluster")
    if isinstance(helm.get("values"), Mapping):
        yield json.dumps(helm["values"], default=str)
    for path in sequence(helm.get("valuesFiles")):
        yield repository.read(path, start)


_ACTION = "{{"
_UNREAD = (
    *("inherit", "condition", "secrets", "strategicMergePatches", "jsonPatches", "transformers"),
    *("valuesTemplate", "setTemplate", "chartTemplate", "postRenderer", "dependencies"),
)
_CHART = regex(r"\bchart[\"']?\s*:\s*[\"']?([^\s\"',}]+)")
_SUFFIXES = (".yaml", ".yml", TEMPLATE)


def is_helmfile(file: str) -> bool:
    """Return whether a file is one of helmfile's, by its name."""
    if HELMFILE not in file:  # most files, and quicker to tell
        return False
    path = Path(file)
    is_there = path.parent.name == HELMFILES or path.name.partition(".")[0] == HELMFILE
    return is_there and path.name.endswith(_SUFFIXES)


def helmfile(text: str, place: Place, repository: Repository) -> list[Statement]:
    """Read the releases of a helmfile."""
    if _ACTION in text:
        why = "it is a template, which only helmfile evaluates"
        return [
            Outside(place=place, why=why, folder=each) for each in _charts(text, place, repository)
        ]
    found: list[Statement] = []
    for part in text.split("\n---"):
        content = parse_kube_map(part, place.file)
        if isinstance(content, Unreadable):
            continue  # no map: it has no releases
        for release in map(mapping, sequence(content.get("releases"))):
            own = _Release(
                release, content, replace(place, what=f"release {release.get('name')}"), repository
            )
            chart, version = release.get("chart", ""), release.get("version")
            found += read_or_outside(own.read, own.place, own.stated, chart, version)
    return found


def _charts(text: str, place: Place, repository: Repository) -> list[str]:
    """List the charts that a template names; the repository if it computes one."""
    start = place.folder
    named = _CHART.findall(text)
    found = [each for each in named if repository.has(f"{each}/{CHART}", start)]
    if any(_ACTION in each for each in named):
        return [repository.boundary]
    return [repository.folder(each, start) for each in found] or [""]


@dataclass(frozen=True, slots=True)
class _Release:
    """A release of a helmfile."""

    release: Mapping[str, Any]
    content: Mapping[str, Any]
    place: Place
    repository: Repository

    def read(self) -> Iterator[ChartRelease]:
        """Read a release whose chart is in the repository."""
        if self.release.get("installed") is False:
            return
        start, chart = self.place.folder, str(self.release.get("chart"))
        if not self.repository.has(chart, start):
            raise OutsideError(f"its chart {chart} is not in the repository")
        folder = self.repository.folder(chart, start)
        if not Path(folder, CHART).is_file():
            raise OutsideError(f"{chart} has no {CHART}")
        with OutsideError.of(folder):
            yield self.stated(folder)

    def stated(self, folder: str) -> ChartRelease:
        """Read what it states of its name, namespace, values and options."""
        if unread := next((key for key in _UNREAD if self.release.get(key)), ""):
            raise OutsideError(f"its {unread} is known only to helmfile")
        defaults = mapping(self.content.get("helmDefaults"))
        return ChartRelease(
            place=self.place,
            folder=folder,
            name=str(self.release.get("name")),
            namespace=str(self.release.get("namespace") or defaults.get("namespace") or ""),
            values=tuple(_file_values(self.release, self.place.folder, self.repository)),
            options=tuple(_sets(self.release)),
        )


def _file_values(release: Mapping[str, Any], start: str, repository: Repository) -> Iterator[str]:
    for each in sequence(release.get("values")):
        if isinstance(each, Mapping):
            yield json.dumps(each, default=str)
        elif str(each).endswith(TEMPLATE):
            raise OutsideError(f"its values are in {each}, a template")
        elif repository.has(each, start) or release.get("missingFileHandler") in (None, "Error"):
            yield repository.read(each, start)


def _sets(release: Mapping[str, Any]) -> Iterator[str]:
    """Write `set` and `setString` as options of helm."""
    for key, option in (("set", "--set"), ("setString", "--set-string")):
        for each in map(mapping, sequence(release.get(key))):
            name, value = each.get("name"), each.get("value")
            if "file" in each:
                raise OutsideError(f"its {key} reads a file")
            if "values" in each:
                listed = ",".join(map(_text, sequence(each["values"])))
                yield f"{option}={name}={{{listed}}}"
            else:
                yield f"{option}={name}={_text(value)}"


def _text(value: object) -> str:
    """Write a value for `helm --set`, which splits at commas that have no backslash."""
    written = json.dumps(value) if isinstance(value, bool | int | float | None) else str(value)
    return written.replace(",", "\\,")


def helm_charts(text: str, place: Place, repository: Repository) -> list[Statement]:
    """Read the charts of a kustomization that are in none of its folders."""
    content = parse_kube_map(text, place.file) if _CHARTS in text else {}
    if isinstance(content, Unreadable):
        return []
    found: list[Statement] = []
    for item in map(mapping, sequence(content.get(_CHARTS))):
        name, start = str(item.get("name")), place.folder
        home = mapping(content.get("helmGlobals")).get("chartHome") or "charts"
        own = replace(place, what=f"helmCharts {name}")
        if repository.has(f"{home}/{name}/{CHART}", start):
            continue  # it is rendered by itself
        try:
            values = tuple(_chart_values(item, start, repository))
        except OutsideError:
            continue  # the kustomization is listed as one that is not built
        stated = ChartRelease(
            place=own,
            folder="",
            name=str(item.get("releaseName") or name),
            namespace=str(item.get("namespace") or content.get("namespace") or ""),
            values=values,
        )
        found.append(elsewhere("its chart is in a registry", stated, name, item.get("version")))
    return found


def _chart_values(item: Mapping[str, Any], start: str, repository: Repository) -> Iterator[str]:
    """Yield the values of one of `helmCharts`: later ones override earlier ones."""
    file, how = item.get("valuesFile"), item.get("valuesMerge") or "override"
    inline = [json.dumps(mapping(item.get("valuesInline")), default=str)]
    stated = [repository.read(file, start)] if file and how != "replace" else []
    yield from (*inline, *stated) if how == "merge" else (*stated, *inline)
    for path in sequence(item.get("additionalValuesFiles")):
        yield repository.read(path, start)
