"""docs/from-lws.md shows what its commands print, and what a serving says that nobody converted."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.main import main
from kthena_components.compiler.compile import compile_serving
from kthena_components.core.findings import SpecError
from kthena_components.core.plan.report import render_rows, shape
from tests.support.follow import follow
from tests.support.shells import InProcess

PAGE = (Path(__file__).parents[1] / "docs" / "from-lws.md").read_text()
WORDS = {
    "LWS_GROUP_SIZE": "GROUP_SIZE",
    "LWS_LEADER_ADDRESS": "ENTRY_ADDRESS",
    "LWS_WORKER_INDEX": "WORKER_INDEX",
}


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """Give the folder in which the commands of the page ran."""
    monkeypatch.chdir(tmp_path)
    follow("docs/from-lws.md", InProcess(capsys), tmp_path)
    return tmp_path


def serving(folder: Path, name: str) -> dict[str, Any]:
    """Give the serving of a stack file that a command wrote."""
    config = yaml.safe_load((folder / name / "Pulumi.converted.yaml").read_text())["config"]
    (found,) = config["kthena-components:servings"]
    return dict(found)


def test_the_table_is_the_one_of_the_stack(folder: Path) -> None:
    table = render_rows(shape(compile_serving(serving(folder, "same")).plan))
    assert f"```\n{table}\n```" in PAGE


def test_the_other_backends_get_the_variables_that_are_set_there(folder: Path) -> None:
    same, native, kthena = (serving(folder, name) for name in ("same", "native", "kthena"))
    assert same["roles"] == native["roles"]
    written = yaml.safe_dump(same["roles"])
    for name, own in WORDS.items():
        assert name in written
        written = written.replace(name, own)
    assert kthena["roles"] == yaml.safe_load(written)


def test_a_template_that_is_copied_by_hand_is_refused(folder: Path) -> None:
    copied = {**copy.deepcopy(serving(folder, "same")), "backend": "kthena"}
    with pytest.raises(SpecError) as refused:
        compile_serving(copied)
    found = [f"{one}\n" for one in refused.value.findings if "worker_template" not in str(one)]
    assert f"```\n{''.join(found)}```" in PAGE
    assert len(refused.value.findings) == 2 * len(found)


@pytest.mark.usefixtures("folder")
def test_without_the_change_native_refuses_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--to", "stack", "--backend", "native", "set.yaml"]) == 1
    assert "a StatefulSet recreates only the pod that failed" in capsys.readouterr().err
