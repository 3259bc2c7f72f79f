"""How the tests run the command: in this process, with its words and its exit status."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kthena_components.cli.main import main


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
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Write a file into the folder in which the command runs."""

    def file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return file
