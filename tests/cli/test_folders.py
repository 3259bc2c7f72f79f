"""What a folder of a stranger may hold: nothing is waited for, and no link leads out of it."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kthena_components.cli.check import files as check
from kthena_components.reading import files
from kthena_components.reading.files import Unreadable, read_text
from kthena_components.reading.folders import find_files
from tests.cli.conftest import Command, Write
from tests.support.manifests import RIGHT, WRONG, pod

SECONDS = 20
"""After which a command that should not wait for anything is said to hang."""


@pytest.fixture(autouse=True)
def nothing_waits() -> Iterator[None]:
    """End the whole process if a test hangs: a blocked open cannot be interrupted otherwise."""
    ends = threading.Timer(SECONDS, os._exit, [3])
    ends.daemon = True
    ends.start()
    yield
    ends.cancel()


def bound(path: Path) -> None:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path.name)
    listening.close()


ODD: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (os.mkfifo, "is a pipe, and only regular files in a folder are read"),
    "a socket": (bound, "is a socket, and only regular files in a folder are read"),
    "a link to a file outside": (
        lambda path: path.symlink_to("/etc/hostname"),
        "is a link to '/etc/hostname', which leads out of the folder . that is checked, and is ",
    ),
    "a link to a device": (
        lambda path: path.symlink_to("/dev/zero"),
        "is a link to '/dev/zero', which leads out of the folder",
    ),
    "a link that climbs": (
        lambda path: path.symlink_to("../../../../../../etc/hostname"),
        "is a link to '../../../../../../etc/hostname', which leads out of the folder",
    ),
    "a link to nothing": (
        lambda path: path.symlink_to("gone.yaml"),
        "is a link to 'gone.yaml', which cannot be followed: No such file or directory",
    ),
    "a link to itself": (
        lambda path: path.symlink_to(path.name),
        "is a link to 'x.yaml', which cannot be followed: Too many levels of symbolic links",
    ),
}


@pytest.mark.parametrize(("make", "told"), ODD.values(), ids=ODD)
def test_what_is_no_file_of_the_folder_is_named_and_the_rest_is_checked(
    run: Command, write: Write, make: Callable[[Path], None], told: str
) -> None:
    write("a.yaml", WRONG)
    make(Path("x.yaml"))
    done = run(".")
    assert done.err.startswith(f"x.yaml: {told}")
    assert done.err.count("\n") == 1
    assert done.lines[-1].startswith("1 object checked in 1 file: 1 mandatory")
    assert done.lines[-1].endswith(", 1 file not read")
    assert done.status == 1
    assert run(".", "--strict-read").lines[-1].endswith(", 1 unreadable")
    assert run(".", "--strict-read").status == 2


def test_a_link_to_a_pipe_of_the_folder_is_not_waited_for(run: Command, write: Write) -> None:
    write("a.yaml", WRONG)
    os.mkfifo("pipe")
    Path("x.yaml").symlink_to("pipe")
    assert run(".").err.startswith("x.yaml: is a pipe, and only regular files in a folder are read")


def test_a_link_that_climbs_over_its_folder_is_not_followed(run: Command, write: Write) -> None:
    write("secret.yaml", WRONG)
    write("tree/a.yaml", WRONG)
    Path("tree/x.yaml").symlink_to("../secret.yaml")
    done = run("tree")
    assert done.err.startswith("tree/x.yaml: is a link to '../secret.yaml', which leads out of ")
    assert "1 object checked in 1 file" in done.lines[-1]
    # When both were named, it leads from one to the other.
    assert run("tree", ".").err == ""


def test_a_link_to_a_file_that_is_read_anyway_is_not_checked_twice(
    run: Command, write: Write
) -> None:
    write("a/a.yaml", WRONG)
    Path("a/link.yaml").symlink_to("a.yaml")
    Path("same.yaml").symlink_to("a/a.yaml")
    done = run(".", "--whole")
    assert done.lines[0].startswith("a/a.yaml:16: mandatory")
    assert "object-twice" not in done.out
    assert done.lines[-1] == (
        "1 object checked in 1 file: 1 mandatory, 0 advisory, 0 not checked, 2 links not read twice"
    )
    assert done.status == 1


def test_a_link_to_a_file_that_nothing_else_reads_is_read(run: Command, write: Write) -> None:
    # As where Kubernetes mounts a ConfigMap.
    write("..2026_01_01/a.yaml", WRONG)
    Path("..data").symlink_to("..2026_01_01")
    Path("a.yaml").symlink_to("..data/a.yaml")
    done = run(".")
    assert done.lines[0].startswith("a.yaml:16: mandatory")
    assert "1 object checked in 1 file" in done.lines[-1]
    assert done.lines[-1].endswith(", 2 folders not read (2 hidden)")


@pytest.mark.parametrize("form", ["text", "markdown", "github"])
def test_folders_that_are_not_read_are_counted(run: Command, write: Write, form: str) -> None:
    write("a.yaml", WRONG)
    write(".hidden/b.yaml", WRONG)
    write("a/a.txt", "")
    Path("linked").symlink_to("a")
    assert "2 folders not read (1 hidden, 1 linked)" in run(".", "--format", form).out


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (".hidden", "is in a folder whose name begins with a dot"),
        (".hidden/b", "is in a folder whose name begins with a dot"),
        ("/etc", "leads out of the folder . that is checked"),
    ],
)
def test_a_linked_folder_that_nothing_reads_is_named(
    run: Command, write: Write, target: str, why: str
) -> None:
    write("a.yaml", RIGHT)
    write(".hidden/b/b.yaml", WRONG)
    Path("linked").symlink_to(target)
    done = run(".", "--strict-read")
    assert done.status == 2
    remedy = "remove the link, or pass the folder as its own argument"
    told = f"linked: is a link to '{target}', which {why}, and is not read: {remedy}"
    assert told in done.err
    assert run(".").status == 0


def test_json_stays_a_list_and_sarif_tells_it(run: Command, write: Write) -> None:
    write("a.yaml", WRONG)
    write(".hidden/b.yaml", WRONG)
    assert "not read" not in run(".", "--format", "json").out
    assert '"text": "1 folder not read (1 hidden)"' in run(".", "--format", "sarif").out


def test_folders_may_be_as_deep_as_a_path_is_long(run: Command, tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(1100):
        deep /= "d"
        deep.mkdir()
    (deep / "a.yaml").write_text(WRONG)
    done = run(".")
    # Whoever cleans up after the tests may call itself for each level.
    (deep / "a.yaml").unlink()
    while deep != tmp_path:
        deep.rmdir()
        deep = deep.parent
    assert "1 object checked in 1 file: 1 mandatory" in done.lines[-1]


def test_what_takes_the_place_of_a_file_is_not_waited_for(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.yaml", WRONG)

    def swapped(*paths: object) -> object:
        found = find_files(*paths)  # type: ignore[arg-type]
        Path("a.yaml").unlink()
        os.mkfifo("a.yaml")
        return found

    monkeypatch.setattr(check, "find_files", swapped)
    done = run(".")
    assert done.err.startswith("a.yaml: is a pipe, and only regular files are read")
    assert done.lines[-1].endswith(", 1 file not read")


def test_what_is_swapped_at_the_last_moment_is_not_waited_for(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("a.yaml", "a: 1")
    regular, pipe = file.stat(), file.parent / "pipe"
    os.mkfifo(pipe)
    with monkeypatch.context() as patched:
        # It was a regular file when it was looked at, and is a pipe when it is opened.
        patched.setattr(Path, "stat", lambda *_, **__: regular)
        told = read_text(str(pipe), named=False)
    assert isinstance(told, Unreadable)
    assert told.because.startswith("is a pipe, and only regular files are read")


def test_pipes_that_are_named_are_read_each_once(run: Command) -> None:
    texts = {"one": pod("a"), "two": pod("b")}
    for name in texts:
        os.mkfifo(name)
    for name, text in texts.items():
        threading.Thread(target=Path(name).write_text, args=[text], daemon=True).start()
    done = run("one", "two")
    assert [line.split(":")[0] for line in done.lines[:-1]] == ["one", "two"]
    assert "2 objects checked in 2 files" in done.lines[-1]


def test_a_link_that_is_named_is_followed(run: Command, write: Write, tmp_path: Path) -> None:
    write("tree/a.txt", WRONG)
    Path("x.yaml").symlink_to(tmp_path / "tree" / "a.txt")
    assert "1 object checked in 1 file: 1 mandatory" in run("x.yaml").lines[-1]


def test_a_file_with_two_names_is_read_as_two(run: Command, write: Write) -> None:
    Path("b.yaml").hardlink_to(write("a.yaml", WRONG))
    assert "2 objects checked in 2 files" in run(".").lines[-1]


def test_the_config_in_a_folder_of_a_model_is_not_waited_for(run: Command, write: Write) -> None:
    write("a.yaml", WRONG)
    Path("model").mkdir()
    os.mkfifo("model/config.json")
    done = run("--model-config", "m=model", "a.yaml")
    assert done.err.startswith(
        "kthena-components check: --model-config m: model/config.json is a pipe, and only regular"
    )
    assert done.status == 2


def test_the_config_in_a_folder_of_a_model_may_be_a_link(run: Command, write: Write) -> None:
    write("a.yaml", WRONG)
    write("blobs/1", '{"num_attention_heads": 16}')
    Path("snapshot").mkdir()
    Path("snapshot/config.json").symlink_to("../blobs/1")
    done = run("--model-config", "m=snapshot", "a.yaml")
    assert "its config.json states no " in done.err


def test_levels_may_come_from_a_pipe_and_end_at_the_limit(
    run: Command, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.yaml", WRONG)
    os.mkfifo("levels")
    text = '{"world-size-equals-gpus": "advisory"}'
    threading.Thread(target=Path("levels").write_text, args=[text], daemon=True).start()
    assert "0 mandatory, 1 advisory" in run("--level", "levels", "a.yaml").out
    write("levels.json", " " * 2000)
    monkeypatch.setattr(files, "MOST_BYTES", 1000)
    told = "kthena-components check: levels.json: is larger than the limit of 0 MiB a file\n"
    assert run("--level", "levels.json", "a.yaml").err == told
