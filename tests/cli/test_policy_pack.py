"""`policy-pack` writes a folder that Pulumi can run, with the environment of the command."""

import sys
from pathlib import Path

import pytest
import yaml

from kthena_components.checker.levels import ENVIRONMENTS, environment_levels
from kthena_components.cli import policy_pack
from kthena_components.cli.main import main
from kthena_components.cli.policy_pack import PackError, complete, write_pack
from kthena_components.cli.settings import read_settings

ROOT = Path(__file__).parents[2]


def files(folder: Path) -> dict[str, str]:
    found = (
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in str(path)
    )
    return {path.relative_to(folder).as_posix(): path.read_text() for path in found}


@pytest.fixture
def in_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a project whose environment is .venv."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    return tmp_path


def virtualenv(folder: Path) -> str | None:
    stated = yaml.safe_load((folder / "PulumiPolicy.yaml").read_text())
    found: str | None = stated["runtime"]["options"].get("virtualenv")
    return found


def test_the_folder_of_this_repository_is_what_is_written(in_tree: Path) -> None:
    write_pack(in_tree / "policies")
    assert files(in_tree / "policies") == files(ROOT / "policies")
    assert virtualenv(in_tree / "policies") == "../.venv"


def test_an_environment_elsewhere_is_named_in_full(in_tree: Path) -> None:
    write_pack(in_tree / "a" / "pack")
    assert virtualenv(in_tree / "a" / "pack") == str(in_tree / ".venv")


def test_without_an_environment_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    write_pack(tmp_path / "pack")
    assert virtualenv(tmp_path / "pack") is None


@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_the_levels_are_those_of_the_environment(tmp_path: Path, environment: str) -> None:
    write_pack(tmp_path)
    read = read_settings(str(tmp_path / "levels" / f"{environment}.json"))
    assert read.levels == environment_levels(environment)


def test_own_levels_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / "pack" / "levels" / "qa.json"
    own.parent.mkdir(parents=True)
    own.write_text("{}")
    assert main(["policy-pack", str(tmp_path / "pack")]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'pack'}\n"
    assert [path.name for path in own.parent.iterdir()] == ["qa.json"]


def test_what_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(policy_pack, "can_run", lambda: False)
    with pytest.raises(SystemExit) as left:
        main(["policy-pack", str(tmp_path / "pack")])
    assert left.value.code == 2
    said = "pulumi-policy is not installed: pip install 'kthena-components[policy]'\n"
    assert capsys.readouterr().err.endswith(said)
    assert not (tmp_path / "pack").exists()
    with pytest.raises(PackError, match="pulumi-policy is not installed"):
        complete(tmp_path, runs=True)
    complete(tmp_path, runs=False)
    assert (tmp_path / "policies" / "levels" / "prod.json").exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as left:
        main(["policy-pack", str(tmp_path / "file")])
    assert left.value.code == 2
    assert "it is a file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["__main__.py", "PulumiPolicy.yaml"])
def test_another_pack_or_program_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["policy-pack", str(tmp_path / "pack")]) == 0
    assert main(["policy-pack", str(tmp_path / "pack")]) == 0
    (tmp_path / name).write_text("runtime: nodejs\n")
    with pytest.raises(SystemExit) as left:
        main(["policy-pack", str(tmp_path)])
    assert left.value.code == 2
    assert capsys.readouterr().err.endswith(f"{tmp_path} has another policy pack or program\n")
    assert (tmp_path / name).read_text() == "runtime: nodejs\n"


def test_a_pack_of_the_base_stays_and_gets_its_environment(in_tree: Path) -> None:
    (in_tree / ".venv").mkdir()
    judge = in_tree / "judge"
    (judge / "policies").mkdir(parents=True)
    (judge / "policies" / "PulumiPolicy.yaml").write_text("runtime: python\n")
    complete(judge, runs=True)
    assert list(files(judge / "policies")) == ["PulumiPolicy.yaml"]
    assert (judge / ".venv").resolve() == in_tree / ".venv"
