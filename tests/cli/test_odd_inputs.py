"""Files of any content, given to each command that reads files, end with a sentence."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

from kthena_components.cli.main import main
from kthena_components.reading import files
from tests.support.for_each import for_each

GOOD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: serving}
spec:
  replicas: 1
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      containers:
      - name: e
        image: vllm/vllm-openai:v0.11.0
        command: [vllm, serve, Qwen/Qwen3-32B, --tensor-parallel-size, "8"]
        resources: {limits: {nvidia.com/gpu: 8}}
"""
INVENTORY = """\
apiVersion: kthena-components/v1
kind: Inventory
racks: 1
nodes_per_rack: 2
gpus: 8
"""
HEAD = '{"apiVersion": "v1", "kind": "Pod", '
BOMB = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
READ: dict[str, bytes] = {
    "CRLF": GOOD.replace("\n", "\r\n").encode(),
    "a byte order mark": GOOD.encode("utf-8-sig"),
    "UTF-16 with its mark": GOOD.encode("utf-16"),
    "a long line": f"{GOOD}x: {'a' * 10_000_000}\n".encode(),
}
"""What Kubernetes reads, too."""
EMPTY: dict[str, bytes] = {
    "nothing": b"", "blanks": b" \n\n", "null": b"null\n", "a string": b"hello\n",
    "a list": b"- 1\n", "20,000 documents": b"---\n" * 20_000,
}  # fmt: skip
REFUSED: dict[str, bytes] = {
    "UTF-16 without a mark": GOOD.encode("utf-16-le"),
    "the other UTF-16": GOOD.encode("utf-16-be"),
    "UTF-32": GOOD.encode("utf-32"),
    "Latin-1": GOOD.replace("name: e", "name: é").encode("latin-1"),
    "a zero byte": GOOD.replace("name: e", "name: e\0").encode(),
    "zero bytes": b"\0" * 10_000,
    "any bytes": bytes(range(256)) * 10,
    "deep YAML": f"{GOOD}x: {'[' * 5000}{']' * 5000}\n".encode(),
    "deep blocks": (GOOD + "".join(f"{' ' * n}x:\n" for n in range(1000))).encode(),
    "deep JSON": f'{HEAD}"x": {"[" * 5000}{"]" * 5000}}}'.encode(),
    "aliases of aliases": f"{GOOD}a0: &a0 [x]\n{BOMB}".encode(),
    "a key twice": f"{GOOD}kind: Pod\n".encode(),
    "tabs": GOOD.replace("  ", "\t").encode(),
}
HALF = f'{HEAD}"metadata": {{"name": "\\ud800"}}}}'.encode()
"""Half a character. `check` shows it, and has other findings."""
COMMANDS: dict[str, Callable[[str], list[str]]] = {
    "check": lambda path: ["check", path],
    "convert": lambda path: ["convert", path, "--to", "lws"],
    "fit": lambda path: ["fit", path, "--inventory", "inventory.yaml"],
    "fit's inventory": lambda path: ["fit", "good.yaml", "--inventory", path],
    "size": lambda path: ["size", "m/m", "--gpu", "h100", "--hf-config", path],
    "levels": lambda path: ["check", "good.yaml", "--level", path],
    "model": lambda path: ["check", "good.yaml", "--model-config", f"m={path}"],
    "review": lambda path: ["review", f"dev={path}"],
    "review's state": lambda path: ["review", "dev=preview.json", "--state", f"dev={path}"],
}
MANIFESTS = ("check", "convert", "fit")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.yaml").write_text(GOOD)
    Path("inventory.yaml").write_text(INVENTORY)
    Path("preview.json").write_text('{"steps": []}')


def run(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> tuple[int, str]:
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = int(ended.code or 0)
    said = capsys.readouterr()
    return status, said.out + said.err


def swept() -> Iterator[tuple[str, str, bytes]]:
    for title, content in {**READ, **EMPTY, **REFUSED, "half a character": HALF}.items():
        yield from ((command, title, content) for command in COMMANDS)


@for_each(("command", "title", "content"), list(swept()))
def test_any_content_ends_with_a_sentence(
    command: str, title: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("odd.yaml").write_bytes(content)
    status, said = run(capsys, COMMANDS[command]("odd.yaml"))
    assert status in {0, 1, 2}, (command, title)
    assert "Traceback" not in said, (command, title)
    is_read = title in READ and command in MANIFESTS
    assert not is_read or status < 2, (command, title, said)
    is_refused = title in REFUSED or (title == "half a character" and command != "check")
    if command in MANIFESTS and is_refused:
        assert status == 2, (command, title, said)
        assert "odd.yaml:" in said, (command, title, said)


@for_each("command", COMMANDS)
def test_a_path_without_a_file_is_told(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("folder.yaml").mkdir(exist_ok=True)
    for name, target in (("broken.yaml", "nowhere"), ("self.yaml", "self.yaml")):
        if not Path(name).is_symlink():
            Path(name).symlink_to(target)
    for name in ("folder.yaml", "broken.yaml", "self.yaml", "missing.yaml"):
        status, said = run(capsys, COMMANDS[command](name))
        assert status == 2, (name, said)
        assert name in said
        assert "Traceback" not in said


def test_wide_characters_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    for encoding in ("utf-16-le", "utf-16-be", "utf-32", "utf-32-be"):
        Path("wide.yaml").write_bytes(GOOD.encode(encoding))
        status, said = run(capsys, ["check", "wide.yaml"])
        assert status == 2, encoding
        assert "wide.yaml: seems to be UTF-16 or UTF-32" in said, encoding


def test_a_folder_that_contains_itself_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    Path("loop").mkdir()
    Path("loop/good.yaml").write_text(GOOD)
    Path("loop/again").symlink_to("../loop")
    status, said = run(capsys, ["check", "loop"])
    assert status == 0
    assert "1 object checked in 1 file" in said


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_with_a_late_writer_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(files, "WAITS", 0.1)
    os.mkfifo("pipe")

    def write() -> None:
        time.sleep(0.4)
        Path("pipe").write_text(GOOD)

    writer = Thread(target=write)
    writer.start()
    status, said = run(capsys, ["check", "pipe"])
    writer.join()
    assert status == 0
    assert "waiting for pipe, which has not ended: it is a pipe or a terminal\n" in said
    assert "1 object checked in 1 file" in said
