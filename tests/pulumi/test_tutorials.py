"""The start page and the tutorials, followed in a checkout, with Pulumi and without a cluster."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pages.stages import IN_CHECKOUT
from tests.support.checkout import checkout, terminal
from tests.support.follow import follow
from tests.support.pages import ROOT

pytestmark = pytest.mark.programs
CLONED = ("ci", "policies", ".gitignore")
"""What a pull request needs besides the checkout that `make up` needs."""


@pytest.mark.parametrize("page", IN_CHECKOUT)
def test_a_tutorial_prints_what_it_shows(page: str, tmp_path: Path) -> None:
    folder = checkout(tmp_path / "kthena_components")
    _commit(folder)
    with terminal(folder) as shell:
        follow(page, shell, folder)


def _commit(folder: Path) -> None:
    """Make it a clone: pull requests compare commits."""
    for name in CLONED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    for command in (
        ("init", "--quiet", "--initial-branch=main"),
        ("config", "user.email", "ann@example.com"),
        ("config", "user.name", "Ann"),
        ("add", "."),
        ("commit", "--quiet", "--message=Clone"),
    ):
        subprocess.run(["git", *command], cwd=folder, check=True)
