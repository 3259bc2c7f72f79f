"""`kthena-components new`: what it writes, and what it says instead of writing."""

import contextlib
import json
import re
from pathlib import Path

import pytest
import yaml

from kthena_components import __version__
from kthena_components.cli import new
from kthena_components.cli.main import main
from tests.support.engine import ROOT
from tests.support.for_each import for_each

LANGUAGES = pytest.mark.parametrize("language", new.LANGUAGES)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the line with which the command ends."""
    with pytest.raises(SystemExit) as ended:
        main(["new", *words])
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert not told.out
    (line,) = told.err.splitlines()
    return line.removeprefix("kthena-components new: ")


@LANGUAGES
def test_a_project_has_a_file_of_each_stack(language: str, tmp_path: Path) -> None:
    folder = tmp_path / "chat"
    assert main(["new", str(folder), "--language", language]) == 0
    project = yaml.safe_load((folder / "Pulumi.yaml").read_text())
    assert project["name"] == "chat"
    assert project["description"] == "One LLM on two nodes with 16 GPUs"
    assert "template" not in project
    assert {path.name for path in folder.glob("Pulumi.*.yaml")} == {
        "Pulumi.dev.yaml", "Pulumi.staging.yaml", "Pulumi.prod.yaml",
    }  # fmt: skip
    written = [path.read_text() for path in folder.iterdir()]
    assert not [text for text in written if "${PROJECT}" in text or "${DESCRIPTION}" in text]


@LANGUAGES
def test_a_stack_for_a_cluster_names_its_context(language: str, tmp_path: Path) -> None:
    """The current context may be any cluster. A name that no kubeconfig has applies to none."""
    folder = tmp_path / "chat"
    assert main(["new", str(folder), "--language", language]) == 0
    for stack in ("staging", "prod"):
        text = (folder / f"Pulumi.{stack}.yaml").read_text()
        assert yaml.safe_load(text)["config"]["kubernetes:context"] == stack
        assert "kubectl config get-contexts" in text
    dev = yaml.safe_load((folder / "Pulumi.dev.yaml").read_text())["config"]
    assert "kubernetes:renderYamlToDirectory" in dev
    assert "kubernetes:context" not in dev


@LANGUAGES
def test_settings_are_those_of_the_project_as_pulumi_writes_them(
    language: str, tmp_path: Path
) -> None:
    """A review takes those of another namespace for a provider's, and asks for an approval.

    `pulumi stack init` with a passphrase writes the file again, with every value as a string.
    """
    folder = tmp_path / "chat"
    assert main(["new", str(folder), "--language", language]) == 0
    for file in folder.glob("Pulumi.*.yaml"):
        config = yaml.safe_load(file.read_text())["config"]
        own = {key for key in config if not key.startswith("kubernetes:")}
        assert own == {"replicas"}  # without a namespace, that of the project
        assert all(isinstance(value, str) for value in config.values())


def test_ci_adds_the_workflow_of_the_docs_and_a_pack_of_this_folder(tmp_path: Path) -> None:
    folder = tmp_path / "chat"
    assert main(["new", str(folder), "--with", "ci", "--name", "other"]) == 0
    workflow = folder / ".github" / "workflows" / "review.yml"
    assert not workflow.is_symlink()
    assert workflow.read_text() == (ROOT / "docs/ci/github-actions.yml").read_text()
    pack = yaml.safe_load((folder / "policies" / "PulumiPolicy.yaml").read_text())
    assert pack["runtime"]["options"]["virtualenv"] == "../.venv"
    assert yaml.safe_load((folder / "Pulumi.yaml").read_text())["name"] == "other"


def test_without_ci_there_are_neither(tmp_path: Path) -> None:
    assert main(["new", str(tmp_path / "chat")]) == 0
    assert not (tmp_path / "chat" / ".github").exists()
    assert not (tmp_path / "chat" / "policies").exists()


@for_each(
    ("folder", "told", "enters"), [(".", "wrote here. ", False), ("a/b", "wrote a/b. ", True)]
)
def test_the_next_steps_begin_in_the_folder(
    folder: str,
    told: str,
    enters: bool,
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
) -> None:
    here = tmp_path_factory.mktemp("new") / "here"
    here.mkdir()
    with contextlib.chdir(here):
        assert main(["new", folder]) == 0
    first, *steps = capsys.readouterr().out.splitlines()
    assert first.startswith(told)
    assert (f"  cd {folder}" in steps) is enters
    assert ("cd " in "".join(steps)) is enters


def test_an_empty_folder_may_have_an_environment_and_a_repository(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".git").mkdir()
    assert main(["new", str(tmp_path), "--name", "chat"]) == 0


def test_the_next_steps_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", str(tmp_path / "a b"), "--name", "chat"]) == 0
    assert f"  cd '{tmp_path}/a b'\n" in capsys.readouterr().out


@for_each("name", ["my chat", "ö", "a/b", "x" * 101, "a\n", "${PROJECT}"])
def test_a_wrong_name_is_one_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refused(capsys, str(tmp_path / "chat"), "--name", name)
    assert "cannot be the name of a Pulumi project: write --name" in told
    assert not (tmp_path / "chat").exists()


def test_the_name_of_the_folder_may_be_no_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refused(capsys, str(tmp_path / "my chat")).startswith("'my chat' cannot be")


def test_a_folder_with_files_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    told = refused(capsys, str(tmp_path), "--name", "chat")
    assert told == f"{tmp_path} is not empty: name a folder that is empty or does not exist"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_file_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chat").write_text("")
    assert "is a file: name a folder" in refused(capsys, str(tmp_path / "chat"))


def test_a_folder_below_a_file_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert "Not a directory" in refused(capsys, str(tmp_path / "file" / "chat"))


def test_typescript_without_node_names_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    told = refused(capsys, str(tmp_path / "chat"), "--language", "typescript")
    assert told == (
        "typescript needs node and npm on PATH: install Node.js (https://nodejs.org), or write "
        "--language python"
    )
    assert main(["new", str(tmp_path / "chat")]) == 0, "the remedy works"


def test_ci_without_pulumi_policy_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(new, "can_run", lambda: False)
    told = refused(capsys, str(tmp_path / "chat"), "--with", "ci")
    assert "pip install 'kthena-components[policy]'" in told
    assert not (tmp_path / "chat").exists()


class Installed:
    """What the installer has recorded about a package."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, _name: str) -> str | None:
        return self.text


def test_requirements_name_the_wheel_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "https://files.example.com/kthena_components.whl"
    recorded = Installed(json.dumps({"url": address}))
    monkeypatch.setattr(new, "distribution", lambda _: recorded)
    assert new.requirement() == f"kthena-components[cluster,policy] @ {address}"
    monkeypatch.setattr(new, "distribution", lambda _: Installed(None))
    assert new.requirement() == new.UNPINNED


@LANGUAGES
def test_the_templates_name_this_version(language: str) -> None:
    folder = new.TEMPLATES / language
    assert new.UNPINNED in (folder / "requirements.txt").read_text().splitlines()
    written = "".join(path.read_text() for path in folder.iterdir())
    found = re.findall(r"kthena@([\w.]+)|kthena_components-([\w.]+)-py3", written)
    assert {one or other for one, other in found} == {__version__}
