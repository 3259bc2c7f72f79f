"""docs/own-program.md, followed by a new user in a folder beside the checkout.

pip installs the built wheel without network: its libraries are those of this environment.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kthena_components.resources import _provider
from tests.resources.test_provider_release import SAID
from tests.support.engine import ROOT, STATE_VARIABLES, environment
from tests.support.wheel import build, libraries

pytestmark = pytest.mark.engine
PAGE = (ROOT / "docs" / "own-program.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)
((_, PROJECT), (_, PROGRAM)) = (block for block in BLOCKS if block[0])
SHOWN = [text for language, text in BLOCKS if not language and text.startswith("$ ")]


def split(block: str) -> tuple[str, str]:
    """Give the commands of a block, and what the page says that they print."""
    lines = block.splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return "\n".join(commands), "".join(f"{line}\n" for line in lines[len(commands) :])


class User:
    """A shell of a new user."""

    def __init__(self, folder: Path) -> None:
        """Put the wheel where the page expects it."""
        build(folder / "kthena_components" / "dist")
        (folder / "state").mkdir()
        path = f"{Path(sys.executable).parent}:{environment()['PATH']}"
        self.folder = folder
        self.variables = {
            **environment(),
            **STATE_VARIABLES,
            "LC_ALL": "C.UTF-8",
            "PATH": path,
            "PULUMI_BACKEND_URL": (folder / "state").as_uri(),
            "PULUMI_SKIP_CONFIRMATIONS": "true",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PYTHONPATH": str(libraries(folder / "libraries")),
        }

    def run(self, commands: str) -> str:
        """Run commands, each of which must succeed."""
        at = self.folder / "chat"
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=at if at.exists() else self.folder,
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ran.returncode == 0, f"{commands}\n{ran.stdout}{ran.stderr}"
        return ran.stdout


def test_the_page_can_be_followed(tmp_path: Path) -> None:
    user, printed = User(tmp_path), list[str]()
    for block in SHOWN:
        commands, shown = split(block)
        printed.append(user.run(commands))
        assert not shown or printed[-1] == shown, commands
        (tmp_path / "chat" / "Pulumi.yaml").write_text(PROJECT)
        (tmp_path / "chat" / "__main__.py").write_text(PROGRAM)
    assert "    + 10 created\n" in printed[1]
    assert "kthena-components@v" in printed[-1]
    own = tmp_path / "chat" / ".venv" / "lib"
    assert list(own.glob("python*/site-packages/kthena_components/policies/pack.py"))


def test_the_program_is_the_one_of_the_readme() -> None:
    (shown,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert shown == PROGRAM


def test_the_page_quotes_the_warning_and_the_tested_release() -> None:
    assert f"```\n{SAID}\n```" in PAGE
    assert f"it was tested, {_provider.TESTED}, and" in PAGE
