"""Whatever a file states about a release, reading it gives statements, and no traceback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.reading.releases.find import Text, Texts, find_releases
from kthena_components.reading.releases.release import ChartRelease, Outside, Overlay
from tests.cli.test_render_releases import FILES, OUTSIDE, RENDERED

ODD: tuple[Any, ...] = (None, 3, True, "", "\0", "../../..", "x" * 5000, [], [None], {}, {"a": [1]})


def paths_in(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each part of a value."""
    yield above
    listed = value if isinstance(value, list) else []
    for key, each in value.items() if isinstance(value, dict) else enumerate(listed):
        yield from paths_in(each, (*above, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """Return a copy of a value with another part."""
    if not path:
        return odd
    made = json.loads(json.dumps(value))
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return made


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def statements(repository: Path, file: str, text: str) -> list[Any]:
    path = repository / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    read = Text(name=str(path), path=str(path), boundary=str(repository))
    return [each for each, _ in find_releases(Texts([read], [read]))]


@pytest.mark.parametrize("name", [*RENDERED, *(f"outside: {key}" for key in OUTSIDE)])
def test_odd_values_are_no_traceback(repository: Path, name: str) -> None:
    own = name.removeprefix("outside: ")
    file, text = (OUTSIDE if own != name else RENDERED)[own][:2]
    if file.endswith(".tf"):
        return
    body = next(iter(yaml.safe_load_all(text)))
    before = statements(repository, file, json.dumps(body))
    assert all(isinstance(each, ChartRelease | Overlay | Outside) for each in before)
    for path in paths_in(body):
        for odd in ODD:
            for each in statements(repository, file, json.dumps(replaced(body, path, odd))):
                assert each.place.boundary == str(repository)
                folder = getattr(each, "folder", "") or str(repository)
                assert Path(folder).is_relative_to(repository)
                assert isinstance(each, Outside) or each.key


def test_no_values_file_leads_out_of_the_repository(repository: Path) -> None:
    (repository / "in").mkdir()
    inner = repository / "in"
    for name, content in FILES.items():
        (inner / name).parent.mkdir(parents=True, exist_ok=True)
        (inner / name).write_text(content)
    (repository / "secret.yaml").write_text("tensor: 99\n")
    (inner / "link.yaml").symlink_to(repository / "secret.yaml")
    for stated in ("/link.yaml", "/../secret.yaml", "../../../secret.yaml", "/*.yaml"):
        source = {"repoURL": "u", "path": "charts/chat", "helm": {"valueFiles": [stated]}}
        body = {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Application",
            "metadata": {"name": "a"},
            "spec": {"source": source},
        }
        (each,) = statements(inner, "app.json", json.dumps(body))
        assert isinstance(each, Outside), stated
