"""The programs that render manifests or check alerts, as the toolchain finds or builds them."""

import os
from functools import cache
from pathlib import Path

import pytest

from toolchain.locate import rendering_programs


@cache
def _programs() -> dict[str, Path]:
    return rendering_programs(os.environ) | rendering_programs(os.environ, "alerts")


def program(name: str) -> str:
    """Give the path of helm, kustomize or promtool; skip the test where it is not there."""
    found = _programs().get(name)
    if found is None:
        pytest.skip(f"{name} is neither on PATH nor built: run `make rendering`")
    return str(found)


def path_with(folder: Path, *names: str) -> str:
    """Give a PATH on which these programs are, and nothing else."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).symlink_to(program(name))
    return str(folder)
