"""docs/convert.md shows what the command prints and writes today."""

import re
from pathlib import Path

import pytest

from kthena_components.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "convert.md").read_text()
SHOWN = re.findall(r"```\n\$ kthena-components (.*)\n((?:.*\n)*?)```", PAGE)
SOURCE, SERVICE, STATEFUL_SET, RAY_CLUSTER, MODEL = re.findall(
    r"```yaml\n(.*?)```", PAGE, re.DOTALL
)


def test_the_commands_are_found() -> None:
    assert [command.split()[:3] for command, _ in SHOWN] == [
        ["convert", "--to", "kthena"],
        ["convert", "--to", "kthena"],
        ["convert", "--to", "kthena"],
        ["convert", "--to", "kthena"],
        ["convert", "--to", "native"],
        ["convert", "--to", "native"],
    ]


def test_the_page_shows_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("llama.yaml").write_text(SOURCE)
    Path("qwen.yaml").write_text(STATEFUL_SET)
    Path("ray.yaml").write_text(RAY_CLUSTER)
    Path("model.yaml").write_text(MODEL)
    for command, printed in SHOWN:
        status = main(command.split())
        told = capsys.readouterr()
        assert told.err == printed
        assert told.out == ""
        assert status == (0 if "wrote" in printed else 1)
    assert Path("out/llama.yaml").read_text().split("---\n")[1] == SERVICE
