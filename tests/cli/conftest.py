"""How the tests run the command: in this process, with its words and its exit status."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from kthena_components.cli.main import main
from kthena_components.core.findings import rule_name
from kthena_components.core.rules import registry as checks
from tests.support.programs import path_with

FEW = {
    "world-size-equals-gpus",
    "nodes-whole",
    "leader-worker-same-gpus",
    "gpu-requests-equal-limits",
    "ray-cluster-size-equals-group",
    "gang-covers-engine",
    "name-fits",
}


@dataclass(frozen=True)
class Ran:
    """What a run of the command gave."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., Ran]
Write = Callable[[str, str | bytes], Path]
Review = Callable[..., Ran]


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Run `check` with arguments, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> Ran:
        try:
            status = main(["check", *arguments])
        except SystemExit as left:
            status = int(left.code or 0)
        told = capsys.readouterr()
        return Ran(status, told.out, told.err)

    return command


@pytest.fixture
def review(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Review:
    """Run `review` on previews by stack, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str, **previews: str) -> Ran:
        for stack, text in previews.items():
            Path(f"{stack}.jsonl").write_text(text)
        try:
            status = main(["review", *arguments, *(f"{s}={s}.jsonl" for s in previews)])
        except SystemExit as left:
            status = int(left.code or 0)
        told = capsys.readouterr()
        return Ran(status, told.out, told.err)

    return command


@pytest.fixture(autouse=True)
def only_programs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Leave on PATH only what the marker `on_path` of a test names."""
    if marker := request.node.get_closest_marker("on_path"):
        folder = tmp_path_factory.mktemp("programs")
        monkeypatch.setenv("PATH", path_with(folder, *marker.args))


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file into the folder in which the command runs."""

    def file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return file


@pytest.fixture(autouse=True)
def few_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judge by the rules that these manifests are about: the others have tests of their own."""
    few = tuple(check for check in checks.CHECKS if rule_name(check) in FEW)
    monkeypatch.setattr(checks, "CHECKS", few)


class Server(HTTPServer):
    """Counts the requests that it answers."""

    asked: int = 0


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked += 1
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fetched}\n")

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    """Serve a manifest on the loopback interface, for which programs use no proxy."""
    made = Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run the program with arguments."""

    def run(*arguments: str) -> Ran:
        status = main(arguments)
        told = capsys.readouterr()
        return Ran(status, told.out, told.err)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Any:
    """Write objects to one file, and give its path."""

    def write(*objects: Any) -> str:
        path = tmp_path / "model.yaml"
        path.write_text(yaml.safe_dump_all(objects, sort_keys=False))
        return str(path)

    return write
