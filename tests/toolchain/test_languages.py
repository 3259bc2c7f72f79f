"""The language hosts: built only where Pulumi is built, too."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain.locate import ensure, ensure_languages, exports, language_folders
from toolchain.programs import CLI, Program, known_programs

HOSTS = {f"pulumi-language-{name}" for name in ("yaml", "nodejs", "go")}


def test_hosts_are_built_where_pulumi_is_not_installed(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(program: Program, folder: Path, _: object) -> None:
        program.binary(folder).parent.mkdir(parents=True)
        program.binary(folder).write_text("")

    monkeypatch.setattr("toolchain.locate.ensure_built", build)
    assert language_folders(environ) == []
    ensure_languages(environ, lambda _: None)
    assert {host for folder in language_folders(environ) for host in HOSTS & {
        path.name for path in folder.iterdir()}} == HOSTS  # fmt: skip

    ensure(environ, lambda _: None)
    path = exports(environ, lambda _: None)["PATH"].split(os.pathsep)
    assert set(map(str, language_folders(environ))) <= set(path)


def test_an_installed_pulumi_has_its_own_hosts(
    environ: dict[str, str], pretend: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolchain.locate.ensure_built", lambda *_: pytest.fail("built"))
    path = f"{pretend('pulumi', 'echo v3.259.0')}:{environ['PATH']}"
    ensure_languages({**environ, "PATH": path}, lambda _: None)


def test_hosts_are_of_the_version_of_the_engine() -> None:
    engine = known_programs()[CLI]
    modules = (known_programs("languages")["pulumi-language-go"].folder / "go.mod").read_text()
    assert f"github.com/pulumi/pulumi/pkg/v3 v{engine.version}\n" in modules
    assert f"github.com/pulumi/pulumi/sdk/v3 v{engine.version}\n" in modules
    hosts = known_programs("languages")
    yaml = hosts.pop("pulumi-language-yaml")
    assert f"github.com/pulumi/pulumi-yaml v{yaml.version} " in modules
    assert {host.version for host in hosts.values()} == {engine.version}
