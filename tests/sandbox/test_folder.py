"""A folder in which something is, and what its owner is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from sandbox.__main__ import main
from sandbox.cluster import Size, deployed, require_free
from sandbox.layout import Layout, make
from sandbox.processes import Processes, SandboxError
from tests.support.pages import ROOT, block


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    (tmp_path / "log").mkdir()
    made = Layout.free(tmp_path)
    made.write()
    return made


@pytest.fixture
def sleeping(layout: Layout, tmp_path: Path) -> Iterator[Processes]:
    script = tmp_path / "sleeper"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    processes = Processes(layout)
    processes.start("etcd", script, [])
    yield processes
    processes.stop_all()


def test_no_folder_and_an_empty_one_are_free(tmp_path: Path) -> None:
    require_free(tmp_path / "none")
    require_free(tmp_path)


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(
        SandboxError, match=r"contains other files\. Choose another folder with FOLDER"
    ):
        require_free(tmp_path)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SandboxError, match=r"is a file\. Choose another folder with FOLDER"):
        require_free(tmp_path / "file")


def test_a_folder_of_ones_own_is_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert make("sandbox-down", Path(".sandbox")) == "`make sandbox-down`"
    assert make("sandbox-down", Path("my box")) == "`make sandbox-down FOLDER='my box'`"
    assert main(["down", "--folder", str(tmp_path / "none")]) == 1
    said = capsys.readouterr().err
    assert f"Start one with `make sandbox FOLDER={tmp_path / 'none'}`" in said


def test_stacks_that_are_still_deployed_are_named(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = yaml.safe_load((ROOT / "Pulumi.yaml").read_text())["name"]
    stacks = {"acme/shop/dev": 2, f"organization/{own}/sandbox": 6}
    monkeypatch.setattr("sandbox.__main__.deployed", lambda _: stacks)
    monkeypatch.setattr("sandbox.cluster.ensure_sandbox", None)  # nothing has to be built to end
    assert main(["down", "--folder", str(layout.folder)]) == 0
    said = capsys.readouterr().err
    other, ours = said.splitlines()[-2:]
    assert other.startswith("acme/shop/dev was still deployed, with 2 objects.")
    assert other.endswith("There, run `pulumi up --stack dev --refresh`")
    assert f"{ours}\n" == block("docs/sandbox.md", "organization/")


def test_a_sandbox_whose_server_is_down_has_no_stacks(layout: Layout) -> None:
    assert deployed(layout.folder) == {}


def test_a_sandbox_that_runs_is_offered(sleeping: Processes, layout: Layout) -> None:
    assert sleeping.running() == ["etcd"]
    with pytest.raises(SandboxError) as refused:
        require_free(layout.folder)
    assert f"a sandbox with 1 program is running in {layout.folder}" in str(refused.value)
    assert f"export KUBECONFIG={layout.kubeconfig}" in str(refused.value)
    assert f"make sandbox-down FOLDER={layout.folder}" in str(refused.value)


def test_a_sandbox_that_has_ended_names_its_logs(layout: Layout) -> None:
    with pytest.raises(SandboxError) as refused:
        require_free(layout.folder)
    assert f"its logs are in {layout.folder / 'log'}" in str(refused.value)


def test_the_command_says_it_in_a_line(layout: Layout, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["up", "--folder", str(layout.folder)]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_down_without_a_sandbox_says_how_to_start_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["down", "--folder", str(tmp_path)]) == 1
    assert f"there is no sandbox in {tmp_path}. Start one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (Size(), "4 racks × 4 nodes × 8 GPUs = 128 GPUs"),
        (Size(racks=1, nodes=1, gpus=1), "1 rack × 1 node × 1 GPU = 1 GPU"),
    ],
)
def test_a_size_is_said_in_words(size: Size, words: str) -> None:
    assert str(size) == words


@pytest.mark.parametrize("count", ["0", "-1", "x", "1.5", "99999"])
def test_a_count_is_a_count(count: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["up", "--racks", count])
    assert "is not a number from 1 to 9999" in capsys.readouterr().err


def test_processes_that_start_together_choose_other_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    for process in (1000, 1001):
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        monkeypatch.setattr("sandbox.layout._GIVEN", set())  # each has its own
        taken.append({port for _ in range(3) for port in Layout.free(tmp_path).ports.values()})
    assert not taken[0] & taken[1]
