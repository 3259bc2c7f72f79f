"""Runs the parser of a release in a separate process, because it is untrusted code.

The process gets only a search path and a temporary home as its environment, only the packages of
Python and of this checkout, and a timeout of a few minutes.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PROJECT = Path(__file__).parents[2]
_START = (
    "import sys; project, module, *rest = sys.argv[1:]; sys.path.insert(0, project);"
    "import importlib; main = importlib.import_module(module).main;"
    "sys.path.remove(project); main(*rest)"
)
_SECONDS = 300
_SHOWN = 2000


def run(module: str, root: Path, *flags: str, arguments: Sequence[str] = ()) -> Any:
    """Run `main(root, …)` of one of our modules, and return the JSON that it prints.

    Args:
        module: The module: `toolchain.engine_flags.vllm_parser`.
        root: The folder of the unpacked release.
        flags: Flags for Python: `-S` hides installed packages, `-O` disables assertions.
        arguments: Further arguments for `main`.

    Raises:
        ValueError: It did not finish.
    """
    python = [sys.executable, "-I", "-B", *flags, "-c"]
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [*python, _START, str(_PROJECT), module, str(root), *arguments],
            cwd=home,
            env={"HOME": home, "LC_ALL": "C.UTF-8", "PATH": os.defpath},
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=_SECONDS,
        )
    if done.returncode:
        raise ValueError(f"the parser in {root} did not run: {done.stderr[-_SHOWN:]}")
    return json.loads(done.stdout)
