"""Finds releases of Helm in files of Terraform, whose values only Terraform evaluates.

Source: developer.hashicorp.com/terraform/language/syntax/json; registry.terraform.io
hashicorp/helm, resource helm_release (name, chart).
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from kthena_components.core.values.read import mapping, sequence
from kthena_components.core.values.regex import regex
from kthena_components.reading.folders import CHART
from kthena_components.reading.releases.model import Outside, Place, Statement
from kthena_components.reading.releases.repository import Repository

SUFFIXES = (".tf", ".tofu", ".tf.json", ".tofu.json")
_JSON = ".json"
_RELEASE = regex(r'\bresource\s+"?helm_release"?\s+"?([\w-]+)"?')
_CHART = regex(r"\bchart\s*=\s*(.+)")
_PATH = regex(r"[\w.@/-]+")
_WHY = "only Terraform evaluates its values"
_EXPRESSION = ("${", "var.", "local.", "each.")


def terraform(text: str, place: Place, repository: Repository) -> list[Statement]:
    """List the releases of Helm in a file."""
    found = _in_json(text) if place.file.endswith(_JSON) else _in_text(text)
    return [
        Outside(
            place=Place(file=place.file, what=f"helm_release {name}", boundary=place.boundary),
            why=_WHY,
            folder=_folder(chart, place, repository),
        )
        for name, chart in found
    ]


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    starts = [*_RELEASE.finditer(text)]
    ends = [*(each.start() for each in starts[1:]), len(text)]
    for found, end in zip(starts, ends, strict=False):
        chart = _CHART.search(text, found.end(), end)
        yield found[1], chart[1] if chart is not None else ""


def _in_json(text: str) -> Iterator[tuple[str, str]]:
    try:
        content = mapping(json.loads(text))
    except (ValueError, RecursionError):
        return  # it is reported as a file that is no JSON
    stated = content.get("resource")
    for resource in map(mapping, (stated, *sequence(stated))):
        releases = resource.get("helm_release")
        for each in map(mapping, (releases, *sequence(releases))):
            for name, body in each.items():
                for one in map(mapping, (body, *sequence(body))):
                    if one:
                        yield str(name), str(one.get("chart") or "")


def _folder(chart: str, place: Place, repository: Repository) -> str:
    """Return the chart in the repository, or the repository if an expression names the chart."""
    start = os.path.realpath(Path(place.file).parent)
    for path in filter(None, (each.rstrip("/") for each in _PATH.findall(chart))):
        for below, own in ((path, start), (path.lstrip("/"), start), (path.lstrip("/"), "")):
            if repository.has(f"{below}/{CHART}", own):
                return repository.folder(below, own)
    return repository.boundary if any(each in chart for each in _EXPRESSION) else ""
