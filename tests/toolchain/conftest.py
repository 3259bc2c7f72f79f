"""A small Go program to build, and programs that only pretend."""

from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain.programs import Program

WORKING = 'package main\n\nvar version = "unstamped"\n\nfunc main() { print(version) }\n'


@pytest.fixture
def small_program(tmp_path: Path) -> Program:
    """A program that prints its version, without a single dependency."""
    folder = tmp_path / "small"
    folder.mkdir()
    (folder / "go.mod").write_text("module small\n\ngo 1.21\n")
    (folder / "main.go").write_text(WORKING)
    companion = tmp_path / "companion"
    companion.write_text("#!/bin/sh\n")
    return Program(
        name="small",
        version="1.2.3",
        folder=folder,
        package=".",
        purpose="pulumi",
        stamps=("main.version=1.2.3",),
        minutes=1,
        memory_gib=1,
        beside=(companion,),
    )


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def environ(cache: Path, tmp_path: Path) -> dict[str, str]:
    """A machine without Pulumi."""
    return {
        "PATH": str(tmp_path / "empty"),
        "KTHENA_COMPONENTS_CACHE": str(cache),
        "PULUMI_HOME": str(tmp_path / "pulumi-home"),
    }


@pytest.fixture
def pretend(tmp_path: Path) -> Callable[[str, str], Path]:
    """Write a shell script of the given name and return its folder, for use on PATH."""

    def write(name: str, script: str) -> Path:
        folder = tmp_path / f"bin-{name}"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
        return folder

    return write
