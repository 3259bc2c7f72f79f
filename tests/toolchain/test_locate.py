"""The search: installed programs first, then the cache, then a build."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain.locate import ensure_rendering, exports, installed_pulumi, needed, rendering_programs
from toolchain.programs import CLI, PROVIDER, ROOT, Program, ToolchainError, known_programs

Pretend = Callable[[str, str], Path]
NO_DOWNLOADS = {"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true"}


@pytest.fixture
def built(cache: Path) -> dict[str, Path]:
    """Programs in the cache, as if built."""
    binaries = {name: program.binary(cache) for name, program in known_programs().items()}
    for binary in binaries.values():
        binary.parent.mkdir(parents=True)
        binary.write_text("#!/bin/sh\necho v3.259.0\n")
        binary.chmod(0o755)
    return binaries


def with_pulumi(environ: dict[str, str], pretend: Pretend, version: str) -> dict[str, str]:
    folder = pretend("pulumi", f"echo {version}")
    return {**environ, "PATH": f"{folder}:{environ['PATH']}"}


def names(environ: dict[str, str]) -> list[str]:
    return [program.name for program in needed(environ, lambda _: None)]


def test_a_machine_without_pulumi_needs_both_programs(environ: dict[str, str]) -> None:
    assert names(environ) == [CLI, PROVIDER]


@pytest.mark.parametrize("version", ["v3.238.0", "v3.259.0", "v3.300.1"])
def test_an_installed_pulumi_is_preferred(
    version: str, environ: dict[str, str], pretend: Pretend, built: dict[str, Path]
) -> None:
    assert all(binary.exists() for binary in built.values())
    installed = with_pulumi(environ, pretend, version)
    assert installed_pulumi(installed, lambda _: None) == pretend("pulumi", f"echo {version}") / CLI
    assert names(installed) == []
    assert exports(installed, lambda _: None) == {}


@pytest.mark.parametrize(
    "version", ["v3.237.9", "v2.25.0", "v4.0.0", "nonsense"], ids=["older", "2", "4", "unreadable"]
)
def test_a_pulumi_of_another_age_is_not_used_and_named(
    version: str, environ: dict[str, str], pretend: Pretend
) -> None:
    said: list[str] = []
    machine = with_pulumi(environ, pretend, version)
    assert installed_pulumi(machine, said.append) is None
    (line,) = said
    assert line.endswith("is not used: Pulumi 3.238 or later (3.x) is required")
    assert names(machine) == [CLI, PROVIDER]


def test_a_pulumi_that_does_not_start_is_not_used(
    environ: dict[str, str], pretend: Pretend
) -> None:
    folder = pretend("pulumi", "")
    (folder / "pulumi").write_text("neither a script nor a program")
    machine = {**environ, "PATH": str(folder)}
    assert installed_pulumi(machine, lambda _: None) is None


def test_our_own_build_on_path_is_not_mistaken_for_an_installation(
    environ: dict[str, str], built: dict[str, Path]
) -> None:
    again = {**environ, "PATH": f"{built[CLI].parent}:{environ['PATH']}"}
    assert installed_pulumi(again, lambda _: None) is None
    assert exports(again, lambda _: None)["PATH"] == again["PATH"]


def test_an_installed_pulumi_that_may_not_download_needs_our_provider(
    environ: dict[str, str], pretend: Pretend, built: dict[str, Path], cache: Path
) -> None:
    offline = with_pulumi(environ, pretend, "v3.259.0") | NO_DOWNLOADS
    assert names(offline) == [PROVIDER]
    assert exports(offline, lambda _: None) == {"PULUMI_HOME": str(cache / "home")}
    assert built[PROVIDER].exists()


def test_an_installed_plugin_is_left_alone(environ: dict[str, str], pretend: Pretend) -> None:
    offline = with_pulumi(environ, pretend, "v3.259.0") | NO_DOWNLOADS
    version = known_programs()[PROVIDER].version
    plugin = Path(environ["PULUMI_HOME"], "plugins", f"resource-kubernetes-v{version}", PROVIDER)
    plugin.parent.mkdir(parents=True)
    plugin.touch()
    assert names(offline) == []


def test_programs_that_are_not_there_yet_are_asked_for(environ: dict[str, str]) -> None:
    with pytest.raises(ToolchainError) as refusal:
        exports(environ, lambda _: None)
    assert str(refusal.value) == (
        f"pulumi {known_programs()[CLI].version} is neither installed nor built yet. "
        "Run `make toolchain`."
    )


def test_the_built_programs_come_first_and_leave_the_users_home_alone(
    environ: dict[str, str], built: dict[str, Path], cache: Path, tmp_path: Path
) -> None:
    variables = exports(environ, lambda _: None)
    assert variables["PATH"] == f"{built[CLI].parent}:{environ['PATH']}"
    assert variables["PULUMI_HOME"] == str(cache / "home")
    assert not (tmp_path / "pulumi-home").exists()


def test_the_plugin_folder_is_real_and_its_program_current(
    environ: dict[str, str], built: dict[str, Path], cache: Path
) -> None:
    version = known_programs()[PROVIDER].version
    folder = cache / "home" / "plugins" / f"resource-kubernetes-v{version}"
    folder.mkdir(parents=True)
    (folder / PROVIDER).symlink_to("/an/older/build")
    exports(environ, lambda _: None)
    exports(environ, lambda _: None)
    assert not folder.is_symlink()
    assert [(path.name, path.readlink()) for path in folder.iterdir()] == [
        (PROVIDER, built[PROVIDER])
    ]


def test_the_language_host_finds_the_checkouts_interpreter(
    environ: dict[str, str], built: dict[str, Path]
) -> None:
    assert built[CLI].exists()
    interpreter = ROOT / ".venv" / "bin" / "python"
    if not interpreter.exists():
        pytest.skip("the tests run from another environment")
    stale = {**environ, "PULUMI_PYTHON_CMD": "/a/removed/checkout/.venv/bin/python"}
    assert exports(stale, lambda _: None)["PULUMI_PYTHON_CMD"] == str(interpreter)


def test_a_shell_can_evaluate_what_env_prints(
    environ: dict[str, str], built: dict[str, Path], tmp_path: Path
) -> None:
    odd = tmp_path / "a folder; with $signs"
    odd.mkdir()
    machine = {**environ, "PATH": str(odd)}
    script = f'eval "$("{sys.executable}" -m toolchain env)"; command -v pulumi; echo "$PATH"'
    shown = subprocess.run(
        ["/bin/sh", "-c", script], cwd=ROOT, env=machine, check=True, capture_output=True, text=True
    )
    pulumi, path = shown.stdout.splitlines()
    assert pulumi == str(built[CLI])
    assert str(odd) in path.split(":")


def test_what_renders_is_taken_from_path_and_else_from_the_cache(
    environ: dict[str, str], cache: Path, pretend: Pretend, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def build(program: Program, folder: Path, _: object) -> None:
        built.append(program.name)
        program.binary(folder).parent.mkdir(parents=True)
        program.binary(folder).write_text("")

    monkeypatch.setattr("toolchain.locate.ensure_built", build)
    assert rendering_programs(environ) == {}
    with_helm = {**environ, "PATH": f"{pretend('helm', 'echo v3')}:{environ['PATH']}"}
    helm, kustomize = (known_programs("rendering")[name] for name in ("helm", "kustomize"))
    wanted = {"helm": pretend("helm", "echo v3") / "helm", "kustomize": kustomize.binary(cache)}
    assert ensure_rendering(with_helm, lambda _: None) == wanted
    assert built == ["kustomize"]
    assert ensure_rendering(environ, lambda _: None)["helm"] == helm.binary(cache)
    assert built == ["kustomize", "helm"]


def test_what_renders_is_built_from_modules_that_fit_together() -> None:
    modules = (known_programs("rendering")["helm"].folder / "go.mod").read_text()
    for name in ("helm", "kustomize"):
        assert f" v{known_programs('rendering')[name].version}\n" in modules
