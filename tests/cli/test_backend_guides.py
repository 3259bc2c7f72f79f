"""Each backend's page shows how its objects become a stack file, with real output."""

import re
from pathlib import Path

import pytest

from kthena_components.cli.main import main
from kthena_components.compiler.sources import describers

PAGES = Path(__file__).parents[2] / "docs" / "backends"
HEADING = "## From its YAML to a stack\n"


@pytest.mark.parametrize("backend", [name for name, _, _ in describers()])
def test_the_page_shows_a_conversion(
    backend: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    section = (PAGES / f"{backend}.md").read_text().partition(HEADING)[2]
    source, stack = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)
    ((command, printed),) = re.findall(r"```\n\$ kthena-components (.*)\n((?:.*\n)*?)```", section)
    Path(command.split()[-1]).write_text(source)
    assert main(command.split()) == 0
    assert capsys.readouterr().err == printed
    (written,) = Path("out").iterdir()
    assert written.read_text().strip() == stack.strip()
