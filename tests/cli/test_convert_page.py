"""docs/convert.md shows a Service that the command writes: tests/pages runs the commands."""

import re
from pathlib import Path

import pytest

from tests.support.follow import follow
from tests.support.shells import InProcess

PAGE = (Path(__file__).parents[2] / "docs" / "convert.md").read_text()
_, SERVICE, *_ = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_page_shows_what_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    follow("docs/convert.md", InProcess(capsys), tmp_path)
    assert Path("out/llama.yaml").read_text().split("---\n")[1] == SERVICE
