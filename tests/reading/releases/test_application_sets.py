"""Which Applications an ApplicationSet makes of the files and the elements of its generators."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kthena_components.reading.releases.argo import application_set
from kthena_components.reading.releases.flux import helm_release
from kthena_components.reading.releases.release import (
    ChartRelease,
    Outside,
    Place,
    Repository,
    Statement,
)

SOURCE = {"path": "chart", "helm": {"values": "at: {{path}}{{number}}\n"}}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    for file in ("chart/Chart.yaml", "apps/a/config.json", "apps/a/b/config.json", "config.json"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("{}\n")
    return Repository(str(tmp_path))


def statements(repository: Repository, *generators: Any) -> list[Statement]:
    template = {"metadata": {"name": "{{path}}"}, "spec": {"source": SOURCE}}
    body = {"spec": {"generators": generators, "template": template}}
    place = Place(file="set.yaml", what="ApplicationSet chat", boundary=repository.boundary)
    return application_set(body, place, repository)


def values(found: Sequence[Statement]) -> list[str]:
    return [each.values[0] for each in found if isinstance(each, ChartRelease)]


def test_a_star_of_the_files_generator_matches_folders_too(repository: Repository) -> None:
    found = statements(repository, {"git": {"files": [{"path": "apps/*/config.json"}]}})
    assert values(found) == ["at: apps/a/b{{number}}\n", "at: apps/a{{number}}\n"]


def test_a_star_of_the_directories_generator_does_not(repository: Repository) -> None:
    found = statements(repository, {"git": {"directories": [{"path": "apps/*"}]}})
    assert values(found) == ["at: apps/a{{number}}\n"]


def test_more_applications_than_are_read_are_reported(repository: Repository) -> None:
    listed = {"list": {"elements": [{"number": str(number)} for number in range(201)]}}
    for generator in (listed, {"matrix": {"generators": [listed, {"list": {"elements": [{}]}}]}}):
        found = statements(repository, generator)
        outside = [each.why for each in found if isinstance(each, Outside)]
        assert outside == ["its generators make more than 200 Applications"]
    assert len(values(statements(repository, listed))) == 200


def test_a_post_renderer_without_a_kustomization_keeps_the_others(repository: Repository) -> None:
    patch = {"patch": json.dumps({"kind": "Deployment"})}
    spec = {
        "chart": {
            "spec": {"chart": "chart", "sourceRef": {"kind": "GitRepository", "name": "own"}}
        },
        "postRenderers": [{"kustomize": {"patches": [patch]}}, {}],
    }
    place = Place(file="release.yaml", what="HelmRelease chat", boundary=repository.boundary)
    body = {"metadata": {"name": "chat"}, "spec": spec}
    (found,) = helm_release(body, place, repository, lambda *_: None)
    assert isinstance(found, ChartRelease)
    assert found.fields == {"patches": [patch]}
