"""Run the parser of a release in a process of its own, because the release's code is foreign.

It gets no environment but a search path and a home that is removed afterwards, no packages but
Python's own and those of this checkout, and a few minutes.
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
    """Run `main(root, …)` of a module of ours, and give the JSON that it prints.

    Args:
        module: The module: `toolchain.engine_flags.vllm_parser`.
        root: Where the release is unpacked.
        flags: More for Python: `-S` hides installed packages, `-O` drops assertions.
        arguments: More for `main`.

    Raises:
        ValueError: It did not run to its end.
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
