"""Every file that a reader of a kubeconfig may take is looked through before a preview."""

import os
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import kube_config

from kthena_components.cli.review.settings_versions import clauses_of, kubeconfigs
from kthena_components.cluster.client import Cluster, ClusterError
from kthena_components.reading.files import Unreadable

RUNS = "users: [{name: u, user: {exec: {command: touch, args: [ran]}}}]\n"
QUIET = "users: [{name: u, user: {token: a}}]\n"


def clauses(value: str, folder: Path, main: str = "") -> list[str]:
    return [
        clause for content in kubeconfigs([value], folder, main) for clause in clauses_of(content)
    ]


@pytest.mark.parametrize("value", ["{} #.md", "a: b\nc: d #.md", "{}\n# x/LICENSE", "k.md"])
def test_a_file_comes_before_the_text_that_its_name_is(tmp_path: Path, value: str) -> None:
    (tmp_path / value).parent.mkdir(exist_ok=True)
    (tmp_path / value).write_text(RUNS)
    assert clauses(value, tmp_path) == ["its user 'u' runs 'touch ran' (exec)"]
    (tmp_path / value).write_text(QUIET)
    assert clauses(value, tmp_path) == []


def test_a_path_starts_at_the_folder_of_the_program(tmp_path: Path) -> None:
    project = tmp_path / "platform" / "serving"
    for folder, text in ((project, RUNS), (project.parent, QUIET)):
        (folder / "docs").mkdir(parents=True)
        (folder / "docs" / "k.md").write_text(text)
    (project / "program").mkdir()
    (project / "program" / "app.py").touch()
    for main in ("program", "program/app.py"):
        assert clauses("../docs/k.md", project, main) == ["its user 'u' runs 'touch ran' (exec)"]
    assert clauses("../docs/k.md", project) == []


def test_each_of_several_paths_is_looked_through(tmp_path: Path) -> None:
    value = os.pathsep.join(["quiet.md", "runs.md"])
    (tmp_path / value).write_text(QUIET)
    (tmp_path / "quiet.md").write_text(QUIET)
    (tmp_path / "runs.md").write_text(RUNS)
    assert clauses(value, tmp_path) == ["its user 'u' runs 'touch ran' (exec)"]


def test_a_tilde_is_a_name_for_some_readers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for path, text in (("home/k.md", QUIET), ("~/k.md", RUNS)):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    assert clauses("~/k.md", tmp_path) == ["its user 'u' runs 'touch ran' (exec)"]


def test_a_path_without_a_file_cannot_be_read(tmp_path: Path) -> None:
    (found,) = kubeconfigs(["users: [] # one line"], tmp_path)
    assert isinstance(found, Unreadable)
    assert list(kubeconfigs(["{}"], tmp_path)) == ["{}"]


def test_the_client_reads_one_file(tmp_path: Path) -> None:
    """Its library reads several, as this shows."""
    value = os.pathsep.join([str(tmp_path / "quiet.md"), str(tmp_path / "runs.md")])
    for name, text in (("quiet.md", QUIET), ("runs.md", RUNS)):
        (tmp_path / name).write_text(f"apiVersion: v1\nkind: Config\ncurrent-context: u\n{text}")
    merger: Any = kube_config.KubeConfigMerger
    assert len(merger(value).paths) == 2
    with pytest.raises(ClusterError, match="contains ':', which separates paths: rename it"):
        Cluster.open(Path(value))
