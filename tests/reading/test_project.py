"""A project is read as Pulumi reads it, or refused in a sentence."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kthena_components.cli.main import main
from kthena_components.reading.project import (
    ProjectError,
    config_of,
    parse_project,
    read_mapping,
    read_project,
    stack_config,
)

BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


def wrote(folder: Path, text: str, name: str = "Pulumi.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("text", "stacks", "main_"),
    [
        ("name: p", "", ""),
        ("name: p\nstackConfigDir: stacks\nmain: src", "stacks", "src"),
        ("name: p\nstackConfigDir: ./a/../b/\nmain: ./x/", "b", "x"),
        # Go joins an absolute path below the project's folder.
        ("name: p\nstackConfigDir: /stacks", "stacks", ""),
        ("name: p\nstackConfigDir: .\nmain: .", "", ""),
        ("name: p\nstackConfigDir:\nmain:", "", ""),
        ("name: p\nconfig: old", "old", ""),
        ("name: p\nconfig: {p:a: 1}", "", ""),
    ],
)
def test_a_project_says_where_its_parts_are(
    text: str, stacks: str, main_: str, tmp_path: Path
) -> None:
    found = read_project(wrote(tmp_path, text))
    assert (found.name, found.stacks, found.main, found.suffix) == ("p", stacks, main_, ".yaml")
    assert found.stack_file("dev") == f"{stacks}/Pulumi.dev.yaml".lstrip("/")


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
def test_stack_files_end_as_the_project_does(suffix: str, tmp_path: Path) -> None:
    found = read_project(wrote(tmp_path, '{"name": "p"}', f"Pulumi{suffix}"))
    wrote(tmp_path, '{"config": {"p:a": 1}}', f"Pulumi.dev{suffix}")
    assert found.suffix == suffix
    assert stack_config(tmp_path, found, "dev") == {"p:a": 1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "contains no map of settings"),
        ("[]", "contains no map of settings"),
        ("name: p\nname: q", "Pulumi.yaml:2:1: states 'name' twice in one map"),
        ("name: p\n---\nname: q", "has a second document after ---"),
        ("a: 1", "name is None, but must be letters"),
        ("name: 3", "name is 3, but must be letters"),
        ("name: 'a:b'", "name is 'a:b', but must be letters"),
        ("name: p\nstackConfigDir: 3", "stackConfigDir is 3, but must be a path: write one"),
        ("name: p\nstackConfigDir: ../x", "stackConfigDir is '../x', which leads out of the"),
        ("name: p\nstackConfigDir: /..", "stackConfigDir is '/..', which leads out of the"),
        ("name: p\nstackConfigDir: a/../../x", "leads out of the project's folder: write a path"),
        ("name: p\nmain: /bin", "main is '/bin', which leads out of the project's folder"),
        ("name: p\nmain: ..", "main is '..', which leads out of the project's folder"),
        ("name: p\nmain: [a]", "main is ['a'], but must be a path"),
        ("name: p\nstackconfigdir: x", "contains the key 'stackconfigdir': write 'stackConfigDir'"),
        ("name: p\nconfig: a\nstackConfigDir:", "config and stackConfigDir both set the"),
        ("name: p\nconfig: [a]", "config is ['a'], but must be a map of config keys"),
        ("name: p\nconfig: {a:b:c: 1}", "contains the config key 'a:b:c': write it as p:name"),
        (
            "name: p\nconfig: {3: 1}",
            "has the key 3, which not every program reads as a string: write",
        ),
        ("name: p\nconfig: {a: 1, p:a: 1}", "states 'p:a' twice: remove one of the two"),
        ("name: p\nconfig: {a: {Value: 1}}", "contains the key 'Value': write 'value'"),
        (BOMB, "expands to more than 1,000,000 values by its aliases"),
        (f"a: {'[' * 100_000}", "is nested more deeply than 250 levels"),
    ],
)
def test_what_is_not_understood_is_refused(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as refused:
        read_project(wrote(tmp_path, text))
    assert told in str(refused.value)
    assert len(str(refused.value)) < 400


def test_json_that_states_a_key_twice_is_refused(tmp_path: Path) -> None:
    wrote(tmp_path, '{"name": "p", "name": "q"}', "Pulumi.json")
    with pytest.raises(ProjectError, match="states 'name' twice in one map"):
        read_project(tmp_path)
    wrote(tmp_path, '{"name": "p"}\n{}', "Pulumi.json")
    with pytest.raises(ProjectError, match=r"Pulumi\.json:2:1: is not JSON: Extra data"):
        read_project(tmp_path)


def test_of_two_project_files_pulumi_reads_one_that_is_not_seen(tmp_path: Path) -> None:
    wrote(tmp_path, "name: p")
    wrote(tmp_path, '{"name": "q"}', "Pulumi.json")
    told = (
        "contains Pulumi.json and Pulumi.yaml, of which Pulumi reads the first: remove the others"
    )
    with pytest.raises(ProjectError, match=told):
        read_project(tmp_path)
    # A folder of that name is passed over by Pulumi as well, a link to nothing may be filled later.
    (tmp_path / "Pulumi.json").unlink()
    (tmp_path / "Pulumi.json").mkdir()
    assert read_project(tmp_path).name == "p"
    (tmp_path / "Pulumi.yml").symlink_to("gone")
    with pytest.raises(ProjectError, match=r"contains Pulumi\.yaml and Pulumi\.yml"):
        read_project(tmp_path)


def test_keys_of_stacks_are_read_in_every_form_that_pulumi_takes() -> None:
    stated = {"a": 1, "p:b": 2, "p:config:c": 3, "kubernetes:d": 4}
    assert config_of({"config": stated}, "p", "f") == {
        "p:a": 1, "p:b": 2, "p:c": 3, "kubernetes:d": 4,
    }  # fmt: skip
    assert config_of({"config": None}, "p", "f") == config_of({}, "p", "f") == {}
    wrong: list[dict[str, Any]]
    wrong = [{"config": 3}, {"Config": {}}, {"config": {"a": 1, "p:config:a": 2}}]
    for odd in wrong:
        with pytest.raises(ProjectError):
            config_of(odd, "p", "f")


def test_a_project_gives_its_stacks_what_they_do_not_state(tmp_path: Path) -> None:
    config = {
        "kubeconfig": "from/project",
        "p:context": {"default": "d", "type": "string"},
        "kubernetes:kubeconfig": {"value": "v"},
        "output": "render",
        "required": {"type": "string"},
        "listed": [1],
    }
    project = parse_project({"name": "p", "config": config}, "Pulumi.json")
    wrote(tmp_path, json.dumps({"config": {"p:output": "cluster"}}), "Pulumi.s.json")
    assert stack_config(tmp_path, project, "s") == {
        "p:kubeconfig": "from/project",
        "p:context": "d",
        "kubernetes:kubeconfig": "v",
        "p:output": "cluster",
        "p:listed": [1],
    }


@pytest.fixture
def doctor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], str]:
    """Run `doctor --stack s` in a folder with a project; give the sentence that it ends with."""
    monkeypatch.chdir(wrote(wrote(tmp_path, "name: p"), "config: {}", "Pulumi.s.yaml"))

    def command() -> str:
        with pytest.raises(SystemExit) as ended:
            main(["doctor", "--stack", "s", "--kubeconfig", "none"])
        said = capsys.readouterr()
        assert (ended.value.code, said.out, said.err.count("\n")) == (2, "", 1)
        return said.err

    return command


ODD: dict[str, tuple[Callable[[Path], object], str]] = {
    "a pipe": (os.mkfifo, "is a pipe, and only regular files are read"),
    "a link out": (lambda path: path.symlink_to("/etc/hostname"), "leads out of "),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "leads out of "),
    "a link to nothing": (
        lambda path: path.symlink_to("gone"),
        "cannot be read: No such file or directory",
    ),
    "an alias bomb": (lambda path: path.write_text(BOMB), "expands to more than 1,000,000 values"),
    "deep": (lambda path: path.write_text("{" * 100_000), "is nested more deeply than 250 levels"),
    "broken": (lambda path: path.write_text("name: p\nconfig: [\n"), "is not valid YAML"),
    "a control character": (
        lambda path: path.write_text("name: \x07"),
        "is not valid YAML: character U+0007 is not",
    ),
    "no Unicode": (
        lambda path: path.write_bytes(b"name: \xff"),
        "is not UTF-8: byte 0xff cannot be decoded",
    ),
}


@pytest.mark.parametrize("name", ["Pulumi.yaml", "Pulumi.s.yaml"])
@pytest.mark.parametrize(("make", "told"), ODD.values(), ids=ODD)
def test_doctor_tells_in_a_sentence_what_cannot_be_read(
    name: str, make: Callable[[Path], object], told: str, doctor: Callable[[], str]
) -> None:
    Path(name).unlink()
    make(Path(name))
    assert told in doctor()


def test_doctor_tells_that_a_text_of_json_is_too_deep(doctor: Callable[[], str]) -> None:
    Path("Pulumi.s.yaml").write_text(json.dumps({"config": {"p:servings": "[" * 99_999}}))
    assert "Pulumi.s.yaml is nested too deeply to be read" in doctor()


def test_a_folder_of_stacks_does_not_lead_out_by_a_link(tmp_path: Path) -> None:
    wrote(tmp_path, "config: {}", "elsewhere/Pulumi.s.yaml")
    tree = wrote(tmp_path / "tree", "name: p\nstackConfigDir: stacks")
    (tree / "stacks").symlink_to("../elsewhere")
    with pytest.raises(ProjectError, match="leads out of"):
        stack_config(tree, read_project(tree), "s")
    (tree / "stacks").unlink()
    wrote(tree, "config: {}", "real/Pulumi.s.yaml")
    (tree / "stacks").symlink_to("real")
    assert stack_config(tree, read_project(tree), "s") == {}


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "Pulumi.yaml").open("wb") as file:
        file.truncate(2**26 + 1)
    with pytest.raises(ProjectError, match="is larger than the limit of 64 MiB a file"):
        read_mapping(tmp_path / "Pulumi.yaml")
