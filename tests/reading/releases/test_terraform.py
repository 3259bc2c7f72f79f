"""Releases of Helm in files of Terraform, and the charts that they name."""

from pathlib import Path

import pytest

from kthena_components.reading.releases.model import Outside, Place
from kthena_components.reading.releases.repository import Repository
from kthena_components.reading.releases.terraform import terraform

RELEASE = 'resource "helm_release" "%s" {\n  chart = %s\n}\n'


@pytest.mark.parametrize(
    ("chart", "folder"),
    [
        ('"./chat"', "infra/chat"),
        ('"${path.module}/chat"', "infra/chat"),
        ('"${path.root}/charts/chat"', "charts/chat"),
        ("local.chart", "."),
        ('"redis"', None),
    ],
)
def test_the_chart_of_a_release_is_found(tmp_path: Path, chart: str, folder: str | None) -> None:
    root = tmp_path.resolve()
    for each in ("infra/chat", "charts/chat"):
        (root / each).mkdir(parents=True)
        (root / each / "Chart.yaml").write_text("name: chat\n")
    place = Place(file=str(root / "infra/main.tf"), what="Terraform", boundary=str(root))
    text = RELEASE % ("a", '"other"') + RELEASE % ("b", chart)
    first, second = terraform(text, place, Repository(str(root)))
    assert isinstance(first, Outside)
    assert isinstance(second, Outside)
    assert (first.folder, first.place.what) == ("", "helm_release a")
    assert second.folder == ("" if folder is None else str((root / folder).resolve()))


@pytest.mark.parametrize("name", ["a.tf", "a.tf.json"])
@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", "variable x {}", "{", '{"resource": [{"x": 1}]}']
)
def test_a_file_without_releases_has_none(tmp_path: Path, name: str, text: str) -> None:
    place = Place(file=name, what="Terraform", boundary=str(tmp_path))
    assert terraform(text, place, Repository(str(tmp_path))) == []
