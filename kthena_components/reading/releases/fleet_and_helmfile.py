"""Reads fleet.yaml of Rancher Fleet, and helmfiles: those with Go templates only helmfile knows.

In Fleet, later values override earlier ones: `values`, then `valuesFiles`; those of a target
override both. Source: rancher/fleet internal/bundlereader/resources.go (generateValues) and
internal/cmd/controller/options/calculate.go (Merge).

In a helmfile, too: `values` in their order, then `set`. Paths start at the file.
Source: helmfile docs/index.md, pkg/state/state.go (flagsForTemplate, namespaceAndValuesFlags).
"""

import json
import os
from collections.abc import Iterator, Mapping
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
)
from kthena_components.reading.settings import parse_kube_map

NAMES = ("fleet.yaml", "fleet.yml")
_TARGETS = ("targetCustomizations", "targets")


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
            found.append(Outside(place=own, why=str(error), folder=error.folder))
    return found


def _bundle(
    content: Mapping[str, Any], target: Mapping[str, Any], place: Place, repository: Repository
) -> Iterator[Statement]:
    """Yield the chart or the kustomization that a bundle of Fleet deploys."""
    start = os.path.realpath(Path(place.file).parent)
    both = [mapping(content.get("helm")), mapping(target.get("helm"))]
    helm = {**both[0], **{key: value for key, value in both[1].items() if value}}
    chart = helm.get("chart")
    if chart and (helm.get("repo") or not repository.has(chart, start)):
        raise OutsideError(f"its chart {chart} is not in the repository")
    folder = repository.folder(chart or ".", start)
    if Path(folder, CHART).is_file():
        with OutsideError.of(folder):
            texts = tuple(text for each in both for text in _values(each, start, repository))
        namespace = (target.get("namespace"), content.get("namespace"))
        defaults = (target.get("defaultNamespace"), content.get("defaultNamespace"))
        yield ChartRelease(
            place=place,
            folder=folder,
            name=str(helm.get("releaseName") or Path(start).name),
            namespace=str(next(filter(None, (*namespace, *defaults)), "")),
            values=texts,
        )
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
                found.append(Outside(place=own, why=str(error), folder=error.folder))
    return found


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
