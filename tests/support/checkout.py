"""A copy of what a user has after `git clone` and `make venv`."""

import shutil
import sys
from pathlib import Path

from tests.support.pages import ROOT

COPIED = (
    "Makefile", "Pulumi.yaml", "__main__.py", "kthena_components", "pyproject.toml",
    "requirements.lock", "sandbox", "stacks", "toolchain",
)  # fmt: skip


def checkout(folder: Path) -> Path:
    """Copy it; its environment is the one that runs the tests."""
    folder.mkdir(parents=True)
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    own = folder / ".venv"
    own.mkdir()
    for path in Path(sys.prefix).iterdir():
        (own / path.name).symlink_to(path)
    ready = own / ".ready"
    ready.unlink(missing_ok=True)
    ready.touch()  # later than requirements.lock, so that `make venv` has nothing to do
    return folder
