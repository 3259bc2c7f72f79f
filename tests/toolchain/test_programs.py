"""Versions that must agree, and keys that must change."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from kthena_components.resources._access import REQUIREMENT, TESTED
from toolchain.programs import CLI, HERE, PROVIDER, ROOT, Program, cache_root, known_programs


@pytest.mark.parametrize(
    ("program", "package"), [(CLI, "pulumi"), (PROVIDER, "pulumi-kubernetes")], ids=[CLI, PROVIDER]
)
def test_a_program_and_its_python_package_have_one_version(program: str, package: str) -> None:
    pinned = (ROOT / "requirements.in").read_text().splitlines()
    assert f"{package}=={known_programs()[program].version}" in pinned


def test_the_wheel_asks_for_the_provider_that_is_built_and_tested() -> None:
    major, minor, _ = known_programs()[PROVIDER].version.split(".")
    assert f"{major}.{minor}" == TESTED
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"pulumi-kubernetes=={TESTED}.*" == REQUIREMENT
    assert f"pulumi-kubernetes>={TESTED},<{int(major) + 1}" in declared


@pytest.mark.parametrize(
    ("program", "module"),
    [
        (CLI, "github.com/pulumi/pulumi/pkg/v3 v{}"),
        (CLI, "github.com/pulumi/pulumi/sdk/v3 v{}"),
        (PROVIDER, "github.com/pulumi/pulumi-kubernetes/sdk/v4 v{}"),
    ],
    ids=["cli", "cli-sdk", "provider-sdk"],
)
def test_a_program_is_built_from_the_modules_of_its_version(program: str, module: str) -> None:
    wanted = known_programs()[program]
    assert module.format(wanted.version) in (wanted.folder / "go.mod").read_text()
    assert wanted.version in wanted.stamps[0]


def test_every_file_beside_a_program_exists() -> None:
    assert [file for file in known_programs()[CLI].beside if not file.is_file()] == []
    assert known_programs()[CLI].beside[0].is_relative_to(HERE)


@pytest.mark.parametrize("name", ["go.mod", "go.sum", "main.go", "extra.go"])
def test_the_key_follows_the_content_of(name: str, small_program: Program) -> None:
    before = small_program.key()
    file = small_program.folder / name
    file.write_text("// changed\n")
    changed = small_program.key()
    file.write_text("// changed again\n")
    assert len({before, changed, small_program.key()}) == 3


def test_the_key_follows_the_files_beside_the_program(small_program: Program) -> None:
    before = small_program.key()
    small_program.beside[0].write_text("#!/bin/sh\nexit 1\n")
    assert small_program.key() != before


def test_the_key_follows_the_tags(small_program: Program) -> None:
    assert replace(small_program, tags=("a",)).key() != small_program.key()


def test_promtool_is_built_from_the_modules_of_its_version_without_clouds() -> None:
    program = known_programs("alerts")["promtool"]
    major, minor, patch = program.version.split(".")
    module = f"github.com/prometheus/prometheus v0.{major}{minor}.{patch}"
    assert module in (program.folder / "go.mod").read_text()
    assert program.tags == ("remove_all_sd",)


def test_the_key_ignores_what_the_user_is_merely_told(small_program: Program) -> None:
    assert replace(small_program, minutes=99, memory_gib=99).key() == small_program.key()


def test_the_key_ignores_other_files_and_the_place_of_the_checkout(
    small_program: Program, tmp_path: Path
) -> None:
    before = small_program.key()
    (small_program.folder / "notes.txt").write_text("not a source")
    elsewhere = small_program.folder.rename(tmp_path / "elsewhere")
    assert replace(small_program, folder=elsewhere).key() == before


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"KTHENA_COMPONENTS_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, Path("/c")),
        ({"XDG_CACHE_HOME": "/x"}, Path("/x/kthena-components")),
        ({}, Path.home() / ".cache" / "kthena-components"),
        ({"KTHENA_COMPONENTS_CACHE": "", "XDG_CACHE_HOME": "/x"}, Path("/x/kthena-components")),
    ],
    ids=["chosen", "xdg", "home", "empty-is-unset"],
)
def test_the_cache_is_where_the_environment_says(environ: dict[str, str], expected: Path) -> None:
    assert cache_root(environ) == expected
