"""The hook for the program pre-commit, run by that program in a repository of a user.

pre-commit clones this package from a local repository, and pip installs it without network.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.wheel import libraries

ROOT = Path(__file__).parent.parent
COPIED = (".pre-commit-hooks.yaml", "pyproject.toml", "README.md", "LICENSE", "kthena_components")
BASE = ROOT / "examples" / "kustomize-and-helm" / "base" / "llama.yaml"


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", *who, *arguments]
    ran = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def committed(folder: Path) -> str:
    """Make a repository of a folder, and give its commit."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "all")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def package(tmp_path: Path) -> dict[str, str]:
    """Give the repository of the package, as `repo` and `rev` of a config of pre-commit."""
    folder = tmp_path / "package"
    folder.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    return {"repo": str(folder), "rev": committed(folder)}


def pre_commit(folder: Path, home: Path) -> subprocess.CompletedProcess[str]:
    offline = {
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as the value of build_isolation
        "PYTHONPATH": str(libraries(home.parent / "libraries")),
        "PRE_COMMIT_HOME": str(home),
        "VIRTUALENV_OVERRIDE_APP_DATA": str(home / "virtualenv"),
        "VIRTUALENV_NO_PERIODIC_UPDATE": "1",
    }
    return subprocess.run(
        [Path(sys.prefix, "bin", "pre-commit"), "run", "--all-files", "--verbose"],
        cwd=folder, env={**os.environ, **offline}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_hook_checks_the_whole_repository(package: dict[str, str], tmp_path: Path) -> None:
    page = (ROOT / "docs" / "check.md").read_text()
    shown = yaml.safe_load(
        page.partition("```yaml\n# .pre-commit-config.yaml\n")[2].partition("```")[0]
    )
    shown["repos"][0].update(package)
    mine = tmp_path / "mine"
    (mine / "manifests").mkdir(parents=True)
    (mine / ".pre-commit-config.yaml").write_text(yaml.safe_dump(shown))
    shutil.copy(BASE, mine / "manifests")
    committed(mine)
    ran = pre_commit(mine, tmp_path / "home")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "check the manifests of LLM servings" in ran.stdout
    assert "1 object checked in 2 files: 0 mandatory" in ran.stdout

    text = BASE.read_text()
    assert "--tensor-parallel-size=8" in text
    wrong = text.replace("--tensor-parallel-size=8", "--tensor-parallel-size=4")
    (mine / "manifests" / "llama.yaml").write_text(wrong)
    git(mine, "add", "--all")
    ran = pre_commit(mine, tmp_path / "home")
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert "Failed" in ran.stdout
    assert "manifests/llama.yaml:13: mandatory: Deployment llama" in ran.stdout
    assert "[world-size-equals-gpus]" in ran.stdout
