"""The built wheel, installed into a new virtual environment as a user would, but without network.

Its libraries are those of the environment that runs the tests.
"""

import os
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import kthena_components
from tests.support.engine import ROOT


@dataclass(frozen=True, slots=True)
class Venv:
    """A virtual environment with the wheel."""

    folder: Path

    def run(self, *command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment; other programs come from the PATH in the variables."""
        return subprocess.run(
            [str(self.folder / "bin" / command[0]), *command[1:]],
            cwd=cwd,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def build(folder: Path) -> Path:
    """Build the wheel of this checkout."""
    command = ["-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"]
    subprocess.run([sys.executable, *command, "--wheel-dir", folder, ROOT], check=True)
    return folder / f"kthena_components-{kthena_components.__version__}-py3-none-any.whl"


def libraries(folder: Path) -> Path:
    """Link all packages of this environment but the checkout, which pip would find installed.

    As PYTHONPATH, this stands for what pip would download.
    """
    if not folder.exists():
        folder.mkdir()
        for path in Path(sysconfig.get_path("purelib")).iterdir():
            if "kthena" not in path.name:
                (folder / path.name).symlink_to(path)
    return folder


def install(wheel: Path, folder: Path) -> Venv:
    """Make an environment, and install the wheel."""
    return install_as(folder, [str(wheel)], folder.parent)


def install_as(folder: Path, words: Sequence[str], cwd: Path) -> Venv:
    """Make an environment, and install what pip is told, without its libraries."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    made = Venv(folder)
    own, shared = (
        sysconfig.get_path("purelib", vars={"base": str(prefix), "platbase": str(prefix)})
        for prefix in (folder, sys.prefix)
    )
    # Python follows no .pth file behind this one, so this checkout is not importable.
    Path(own, "libraries.pth").write_text(f"{shared}\n")
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    # Python compiles what a test imports: a third of what pip would compile.
    offline = ("--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--no-compile")
    subprocess.run([*pip, *offline, *words], cwd=cwd, check=True)
    return made
