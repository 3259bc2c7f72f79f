"""What users write by mistake, in all commands: one sentence, exit status 2, and no traceback."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from kthena_components.cli.main import main
from tests.support.for_each import for_each

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec: {containers: [{name: a, image: a:1}]}
"""
INVENTORY = "apiVersion: kthena-components/v1\nkind: Inventory\nnodes: [{name: a}]\n"
FILES = {
    "pod.yaml": POD,
    "empty.json": "",
    "list.json": "[1]",
    "long.json": f'{{"shm-size": {"9" * 5000}}}',
    "deep.json": "[" * 100_000,
    "pack.json": '{"serving-rules": null}',
    "tab.yaml": POD + "\ta: b\n",
    "inventory.yaml": INVENTORY,
    "two.yaml": f"{INVENTORY}---\na: b\n",
    "cluster.yaml": "clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    "users: [{name: a, user: {}}]\ncontexts: [{name: a, context: {cluster: a, user: a}}]\n",
}
LLAMA = ("size", "meta-llama/Llama-3.1-8B-Instruct", "--gpu", "h200")
EMPTY = "is empty: write it, or leave it out; a shell variable may not be set"
CONVERT = ("convert", "--to", "lws", "pod.yaml")


class Mistake(NamedTuple):
    """Some arguments, and a part of what is said."""

    arguments: tuple[str, ...]
    told: str


MISTAKES = [
    Mistake(("check", "--fromat", "json", "a"), "there is no option '--fromat'; write --format"),
    Mistake(("check", "--fromat=json", "a"), "check: error: there is no option '--fromat'; write"),
    Mistake(("status", "--zzz"), "there is no option '--zzz'; 'kthena-components status --help'"),
    Mistake(("new", "a", "b"), "'b' is one argument too many: remove it"),
    Mistake(("check", ""), f"an argument {EMPTY}"),
    Mistake(("new", ""), f"an argument {EMPTY}"),
    Mistake(("check", "--gpu-types", "", "pod.yaml"), f"the value of --gpu-types {EMPTY}"),
    Mistake(("check", "--gpu-types=", "pod.yaml"), f"the value of --gpu-types {EMPTY}"),
    Mistake((*LLAMA, "--image", ""), f"the value of --image {EMPTY}"),
    Mistake(
        ("check", "--gpu-budget", "3.5", "pod.yaml"),
        "'3.5' is not a number of GPUs: write a whole number from 0 to 999999999, with digits only",
    ),
    Mistake((*LLAMA, "--context", "128k"), "write a whole number from 1 to 999999999"),
    Mistake((*LLAMA, "--price", "$3"), "write a number above 0, such as 2.5, without a unit"),
    Mistake((*LLAMA, "--nodes", "2x99999"), "such as 4x8, with at most 4 digits each"),
    Mistake((*LLAMA, "--image", "a b"), "--image 'a b': write registry/name:tag, without blanks"),
    Mistake(("check", "--level", "empty.json", "a"), "empty.json:1:1: is empty: write at least {}"),
    Mistake(("check", "--level", "list.json", "a"), "list.json: contains no map of settings"),
    Mistake(("check", "--level", "long.json", "a"), "has a whole number of more digits than any"),
    Mistake(("check", "--level", "deep.json", "a"), "is nested too deeply to be read"),
    Mistake(("check", "--level", "pack.json", "a"), '{"serving-rules": {"environment": "prod"}}'),
    Mistake(("check", "--release", "lws", "a"), "write SYSTEM=VERSION, such as lws=0.10"),
    Mistake(("check", "--release", "lsw=0.9", "a"), "--release lsw=0.9: there is no 'lsw'; write"),
    Mistake(
        ("check", "--release", "lws=0.9", "--release", "lws=0.10", "a"),
        "--release: lws is 0.9 and 0.10: keep one",
    ),
    Mistake(
        ("check", "--gpu", "=h200", "a"), "write, for example, POOL=h200, or only h200 for all"
    ),
    Mistake(("check", "--gpu", "h200,h100", "a"), "NVIDIA H200 and NVIDIA H100: keep one of them"),
    Mistake(("check", "a" * 5000), "File name too long"),
    Mistake(("check", "tab.yaml"), "has a tab before a field: indent with blanks only"),
    Mistake((*CONVERT, "--from-cluster"), "write --from-cluster alone"),
    Mistake(
        (*CONVERT, "--set", "a=[1,"), "put a string with special characters into double quotes"
    ),
    Mistake(("policy-pack", "pod.yaml"), "pod.yaml cannot be written: it is a file, or a link"),
    Mistake(("policy-pack", "pod.yaml/x"), "pod.yaml/x cannot be written: Not a directory"),
    Mistake(
        ("fit", "pod.yaml", "--inventory", "two.yaml"),
        "has a second document after ---, and is read as one: remove all but one",
    ),
    Mistake(
        ("fit", "pod.yaml", "--inventory", "inventory.yaml", "--html", "."),
        "--html . cannot be written: Is a directory",
    ),
    Mistake(("review", "a=deep.json"), "is nested too deeply to be read: write it with `pulumi"),
    Mistake(("review", "a=pod.yaml", "a=tab.yaml"), "a stack is named twice: name each stack once"),
    Mistake(("review", "--base", "HEAD", "--judge", "gone"), "--judge gone does not exist: name"),
    Mistake(
        ("review", "--base", "HEAD", "--judge", "pod.yaml"), "--judge pod.yaml is not a folder"
    ),
    Mistake(("check", "socket"), "socket: is a socket, from which nothing is read"),
    Mistake(("fit", "pod.yaml", "--inventory", "socket"), "socket: is a socket, from which"),
    Mistake(("status", "--kubeconfig", "cluster.yaml"), "Name a context with --context"),
    Mistake(("status", "--kubeconfig", "."), ". cannot be read: Is a directory"),
    Mistake(("rights", "--inventory", "--namespace", "a"), "leave out --namespace"),
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the files, and work in their folder."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    return tmp_path


@pytest.mark.usefixtures("files")
@for_each("mistake", MISTAKES)
def test_a_mistake_is_one_sentence(mistake: Mistake, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(mistake.arguments)
    except SystemExit as left:
        status = int(left.code or 0)
    told = capsys.readouterr()
    assert mistake.told in told.err
    assert "Errno" not in told.err
    assert status == 2


SHELL = {
    ">&-": "standard output is closed: redirect it to a file, or to /dev/null",
    ">/dev/full": "standard output cannot be written: No space left on device",
    "- <&-": "<stdin>: is closed: pass a file, or pipe one into the command",
    "nothing 2>&-": "",
    "- < binary": "<stdin>:1:3: is not UTF-16",
}


@for_each("ending", SHELL)
def test_streams_that_are_closed_or_full_are_told(ending: str, files: Path) -> None:
    (files / "binary").write_bytes(b"\xff\xfe\x00")
    command = f"{sys.executable} -m kthena_components check pod.yaml {ending}"
    root = str(Path(__file__).parents[2])
    ran = subprocess.run(  # noqa: S602 - a constant
        command, shell=True, capture_output=True, text=True, check=False, env={"PYTHONPATH": root}
    )
    assert SHELL[ending] in ran.stderr
    assert "Traceback" not in ran.stderr
    assert ran.returncode == 2


def test_a_folder_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["check", "a.yaml"]) == 2
    assert "the current folder does not exist any more" in capsys.readouterr().err


@pytest.mark.usefixtures("files")
def test_a_file_that_is_named_twice_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "pod.yaml", "pod.yaml"])
    assert "1 object checked in 1 file:" in capsys.readouterr().out
