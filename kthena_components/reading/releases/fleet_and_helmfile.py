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
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

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
        own = Place(file=place.file, what=named, boundary=place.boundary)
        try:
            found.extend(_bundle(content, target, own, repository))
        except OutsideError as error:
            found.append(_bundle_outside(content, target, own, repository, error))
    return found


def _bundle_outside(
    content: Mapping[str, Any],
    target: Mapping[str, Any],
    place: Place,
    repository: Repository,
    error: OutsideError,
) -> Outside:
    """Describe what cannot be rendered, with the values of a chart that is elsewhere."""
    helm = _helm_of(content, target)
    if not error.folder and isinstance(helm.get("chart"), str):
        with suppress(OutsideError):
            stated = _chart(content, target, place, "", repository)
            return elsewhere(str(error), stated, helm["chart"], helm.get("version"))
    return Outside(place=place, why=str(error), folder=error.folder)


def _helm_of(content: Mapping[str, Any], target: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a bundle states for Helm, and a target instead of it."""
    own = {key: value for key, value in mapping(target.get("helm")).items() if value}
    return {**mapping(content.get("helm")), **own}


def _chart(
    content: Mapping[str, Any],
    target: Mapping[str, Any],
    place: Place,
    folder: str,
    repository: Repository,
) -> ChartRelease:
    """Read a release of a chart, of which both the bundle and a target state values."""
    both = [mapping(content.get("helm")), mapping(target.get("helm"))]
    start = os.path.realpath(Path(place.file).parent)
    namespace = (target.get("namespace"), content.get("namespace"))
    defaults = (target.get("defaultNamespace"), content.get("defaultNamespace"))
    return ChartRelease(
        place=place,
        folder=folder,
        name=str(_helm_of(content, target).get("releaseName") or Path(start).name),
        namespace=str(next(filter(None, (*namespace, *defaults)), "")),
        values=tuple(text for each in both for text in _values(each, start, repository)),
    )


def _bundle(
    content: Mapping[str, Any], target: Mapping[str, Any], place: Place, repository: Repository
) -> Iterator[Statement]:
    """Yield the chart or the kustomization that a bundle of Fleet deploys."""
    start = os.path.realpath(Path(place.file).parent)
    helm = _helm_of(content, target)
    chart = helm.get("chart")
    if chart and (helm.get("repo") or not repository.has(chart, start)):
        raise OutsideError(f"its chart {chart} is not in the repository")
    folder = repository.folder(chart or ".", start)
    if Path(folder, CHART).is_file():
        with OutsideError.of(folder):
            yield _chart(content, target, place, folder, repository)
        return
    chosen = (mapping(each.get("kustomize")).get("dir") for each in (target, content))
    below = next(filter(None, chosen), None)
    folder = repository.folder(below, start) if below else start
    if find_kustomization(folder) is not None:
        yield Overlay(place=place, folder=folder)


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
            own = Place(
                file=place.file, what=f"release {release.get('name')}", boundary=place.boundary
            )
            try:
                found.extend(_release(release, content, own, repository))
            except OutsideError as error:
                found.append(_outside(release, content, own, repository, error))
    return found


def _outside(
    release: Mapping[str, Any],
    content: Mapping[str, Any],
    place: Place,
    repository: Repository,
    error: OutsideError,
) -> Outside:
    """Describe a release that cannot be rendered, with the values of a chart that is elsewhere."""
    if not error.folder:
        with suppress(OutsideError):
            stated = _stated(release, content, place, "", repository)
            return elsewhere(str(error), stated, release.get("chart"), release.get("version"))
    return Outside(place=place, why=str(error), folder=error.folder)


def _charts(text: str, place: Place, repository: Repository) -> list[str]:
    """List the charts that a template names; the repository if it computes one."""
    start = os.path.realpath(Path(place.file).parent)
    named = _CHART.findall(text)
    found = [each for each in named if repository.has(f"{each}/{CHART}", start)]
    if any(_ACTION in each for each in named):
        return [repository.boundary]
    return [repository.folder(each, start) for each in found] or [""]


def _release(
    release: Mapping[str, Any], content: Mapping[str, Any], place: Place, repository: Repository
) -> Iterator[ChartRelease]:
    """Read a release of a helmfile whose chart is in the repository."""
    if release.get("installed") is False:
        return
    start, chart = os.path.realpath(Path(place.file).parent), str(release.get("chart"))
    if not repository.has(chart, start):
        raise OutsideError(f"its chart {chart} is not in the repository")
    folder = repository.folder(chart, start)
    if not Path(folder, CHART).is_file():
        raise OutsideError(f"{chart} has no {CHART}")
    with OutsideError.of(folder):
        yield _stated(release, content, place, folder, repository)


def _stated(
    release: Mapping[str, Any],
    content: Mapping[str, Any],
    place: Place,
    folder: str,
    repository: Repository,
) -> ChartRelease:
    """Read what a release states of its name, namespace, values and options."""
    if unread := next((key for key in _UNREAD if release.get(key)), ""):
        raise OutsideError(f"its {unread} is known only to helmfile")
    defaults = mapping(content.get("helmDefaults"))
    start = os.path.realpath(Path(place.file).parent)
    return ChartRelease(
        place=place,
        folder=folder,
        name=str(release.get("name")),
        namespace=str(release.get("namespace") or defaults.get("namespace") or ""),
        values=tuple(_file_values(release, start, repository)),
        options=tuple(_sets(release)),
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
    written = json.dumps(value) if isinstance(value, bool | int | float | None) else str(value)
    return written.replace(",", "\\,")


def helm_charts(text: str, place: Place, repository: Repository) -> list[Statement]:
    """Read the charts of a kustomization that are in none of its folders."""
    content = parse_kube_map(text, place.file) if _CHARTS in text else {}
    if isinstance(content, Unreadable):
        return []
    found: list[Statement] = []
    for item in map(mapping, sequence(content.get(_CHARTS))):
        name, start = str(item.get("name")), os.path.realpath(Path(place.file).parent)
        home = mapping(content.get("helmGlobals")).get("chartHome") or "charts"
        own = Place(file=place.file, what=f"helmCharts {name}", boundary=place.boundary)
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
