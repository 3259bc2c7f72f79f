"""Reads fleet.yaml of Rancher Fleet: a chart or a kustomization, for each target.

Later values override earlier ones: `values`, then `valuesFiles`; those of a target override both.
Source: rancher/fleet internal/bundlereader/resources.go (generateValues) and
internal/cmd/controller/options/calculate.go (Merge).
"""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kthena_components.core.values.read import mapping, sequence
from kthena_components.reading.files import Unreadable
from kthena_components.reading.folders import CHART
from kthena_components.reading.kustomization import find_kustomization
from kthena_components.reading.maps import parse_kube_map
from kthena_components.reading.releases.model import (
    ChartRelease,
    Outside,
    OutsideError,
    Overlay,
    Place,
    Statement,
)
from kthena_components.reading.releases.repository import Repository

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
