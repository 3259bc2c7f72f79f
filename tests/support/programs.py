"""Programs of tests, such as helm and promtool, as the toolchain finds or builds them."""

import os
from functools import cache
from pathlib import Path

import pytest

from toolchain.locate import rendering_programs


@cache
def _programs() -> dict[str, Path]:
    purposes = ("rendering", "alerts", "generators")
    found = (rendering_programs(os.environ, purpose) for purpose in purposes)
    return {name: path for each in found for name, path in each.items()}


def program(name: str) -> str:
    """Give the path of helm, promtool or another one; skip the test where it is not there."""
    found = _programs().get(name)
    if found is None:
        pytest.skip(f"{name} is neither on PATH nor built: run `make rendering languages`")
    return str(found)


def path_with(folder: Path, *names: str) -> str:
    """Give a PATH on which these programs are, and nothing else."""
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).symlink_to(program(name))
    return str(folder)
