"""A copy of what a user has after `git clone` and `make venv`, and a terminal in it."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.engine import environment
from tests.support.pages import ROOT
from tests.support.shells import Bash

COPIED = (
    "Makefile", "Pulumi.yaml", "__main__.py", "kthena_components", "pyproject.toml",
    "requirements.lock", "sandbox", "stacks", "toolchain",
)  # fmt: skip
FOREIGN = ("PULUMI_CONFIG", "PULUMI_BACKEND", "PULUMI_ACCESS", "KUBE")


@contextmanager
def terminal(folder: Path) -> Iterator[Bash]:
    """Open the terminal of somebody who has no backend, no passphrase and no cluster."""
    kept = {name: text for name, text in {**os.environ, **environment()}.items()
            if not name.startswith(FOREIGN)}  # fmt: skip
    own = {
        "KUBECONFIG": str(folder.parent / "none"),
        "PATH": f"{Path(sys.executable).parent}:{kept['PATH']}",
        "PULUMI_SKIP_CONFIRMATIONS": "true",
        "PYTHONPATH": str(folder),
    }
    with Bash(folder, {**kept, **own}) as bash:
        yield bash


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
