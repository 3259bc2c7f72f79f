"""The stand-in language host: what it starts, what it passes on, and when it leaves."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pulumi.runtime.proto import language_pb2 as messages

from toolchain.language_host import host
from toolchain.language_host.host import Children, Host, HostError, Interpreter

HOST = Path(host.__file__)
SHIM = HOST.with_name("pulumi-language-python")
ENGINE = "127.0.0.1:1"


class Call:
    """As much of a gRPC call's context as the host uses."""

    def __init__(self) -> None:
        self.at_end: list[Any] = []

    def add_callback(self, callback: Any) -> None:
        self.at_end.append(callback)

    def abort(self, code: Any, details: str) -> None:
        raise RuntimeError(f"{code.name}: {details}")


@pytest.fixture
def call() -> Any:
    return Call()


def info(root: Path, **options: str) -> messages.ProgramInfo:
    found = messages.ProgramInfo(
        root_directory=str(root), program_directory=str(root), entry_point="."
    )
    found.options.update(options)
    return found


def plugin_output(answers: Iterator[Any]) -> tuple[bytes, bytes, int]:
    gathered = list(answers)
    return (
        b"".join(answer.stdout for answer in gathered),
        b"".join(answer.stderr for answer in gathered),
        gathered[-1].exitcode,
    )


@pytest.mark.parametrize(
    ("code", "error", "bail"),
    [
        (0, "", False),
        (32, "", True),
        (3, "The program ended with exit code 3.", False),
        (-9, "The program was ended by SIGKILL.", False),
    ],
    ids=["success", "message-already-shown", "failure", "killed"],
)
def test_the_engine_hears_how_a_program_ended(code: int, error: str, bail: bool) -> None:
    response = host.run_response(code)
    assert (response.error, response.bail) == (error, bail)


def test_a_program_runs_under_the_exec_script_with_the_engines_settings(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = tmp_path / "recorder.py"
    recorder.write_text(
        "import json, os, pathlib, sys\n"
        "names = ('PULUMI_CONFIG', 'PULUMI_CONFIG_SECRET_KEYS')\n"
        "seen = [sys.argv[1:], os.getcwd(), [json.loads(os.environ[name]) for name in names]]\n"
        "pathlib.Path('seen.json').write_text(json.dumps(seen))\n"
    )
    monkeypatch.setattr(host, "EXEC", recorder)
    monkeypatch.setenv("PULUMI_PYTHON_CMD", sys.executable)
    request = messages.RunRequest(
        project="p",
        stack="s",
        pwd=str(tmp_path),
        parallel=4,
        monitor_address="127.0.0.1:2",
        organization="o",
        dryRun=True,
        info=info(tmp_path),
        config={"p:a": "1"},
        configSecretKeys=["p:b"],
        args=["more"],
    )
    assert Host(ENGINE, Children()).Run(request, call).error == ""
    arguments, folder, config = json.loads((tmp_path / "seen.json").read_text())
    flags = dict(zip(arguments[:-2:2], arguments[1:-2:2], strict=True))
    assert flags == {
        "--monitor": "127.0.0.1:2",
        "--engine": ENGINE,
        "--project": "p",
        "--root_directory": str(tmp_path),
        "--stack": "s",
        "--pwd": str(tmp_path),
        "--parallel": "4",
        "--organization": "o",
        "--dry_run": "true",
    }
    assert arguments[-2:] == [f"{tmp_path}/.", "more"]
    assert (folder, config) == (str(tmp_path), [{"p:a": "1"}, ["p:b"]])


def test_a_policy_pack_gets_its_folder_last_and_another_plugin_first() -> None:
    request = messages.RunPluginRequest(args=["a", "b"], info=info(Path("/pack")))
    assert host.plugin_arguments(request) == ["/pack", "a", "b"]
    request.kind = "analyzer"
    assert host.plugin_arguments(request) == ["-m", "pulumi.policy", "a", "b", "/pack"]


def test_both_outputs_and_the_code_of_a_plugin_are_passed_on(call: Any, tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text(
        "import os, sys\n"
        "print(os.environ['WORD'], sys.argv[1])\n"
        "print('e' * 200_000, file=sys.stderr)\n"
        "sys.exit(7)\n"
    )
    request = messages.RunPluginRequest(
        pwd=str(tmp_path), args=["first"], env=["WORD=a=b"], info=info(tmp_path)
    )
    answers = Host(ENGINE, Children()).RunPlugin(request, call)
    assert plugin_output(answers) == (b"a=b first\n", b"e" * 200_000 + b"\n", 7)


def test_a_plugin_ends_when_the_engine_drops_the_call(call: Any, tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_text(
        "import sys, time\nsys.stdout.write('up')\ntime.sleep(60)\n"
    )
    request = messages.RunPluginRequest(pwd=str(tmp_path), info=info(tmp_path))
    answers = Host(ENGINE, Children()).RunPlugin(request, call)
    assert next(answers).stdout == b"up"
    for callback in call.at_end:
        callback()
    assert plugin_output(answers)[2] == -signal.SIGTERM


def test_a_program_ends_when_the_engine_drops_the_call(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(host, "EXEC", sleeper)

    def drop() -> None:
        while not call.at_end:
            time.sleep(0.01)
        call.at_end[0]()

    threading.Thread(target=drop).start()
    request = messages.RunRequest(pwd=str(tmp_path), info=info(tmp_path))
    assert Host(ENGINE, Children()).Run(request, call).error == "The program was ended by SIGTERM."


def test_a_virtual_environment_is_found_from_the_projects_root(tmp_path: Path) -> None:
    executable = tmp_path / "venv" / "bin" / "python"
    executable.parent.mkdir(parents=True)
    executable.touch()
    pack = tmp_path / "policies"
    pack.mkdir()
    found = Interpreter.of(info(pack, virtualenv="../venv"))
    assert Path(found.executable).resolve() == executable
    environ = found.environment({"MORE": "1"})
    assert environ["PATH"].startswith(f"{pack}/../venv/bin:")
    assert (environ["VIRTUAL_ENV"], environ["MORE"]) == (f"{pack}/../venv", "1")


def test_a_missing_virtual_environment_is_named_with_its_remedy(call: Any, tmp_path: Path) -> None:
    with pytest.raises(HostError) as refusal:
        Interpreter.of(info(tmp_path, virtualenv=".venv"))
    assert str(refusal.value) == (
        f"The virtual environment '.venv' of {tmp_path} has no bin/python. "
        f"Make it first: `python3 -m venv {tmp_path}/.venv`, and install its requirements there. "
        "`make venv` makes the one of a checkout only."
    )
    request = messages.GetRequiredPackagesRequest(info=info(tmp_path, virtualenv=".venv"))
    with pytest.raises(RuntimeError, match="FAILED_PRECONDITION: The virtual environment"):
        Host(ENGINE, Children()).GetRequiredPackages(request, call)


@pytest.mark.parametrize(
    ("chosen", "expected"), [("/chosen", "/chosen"), ("", sys.executable)], ids=["chosen", "own"]
)
def test_without_a_virtual_environment_the_chosen_interpreter_runs(
    chosen: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_PYTHON_CMD", chosen)
    assert Interpreter.of(info(tmp_path)) == Interpreter(expected)


def test_the_installed_provider_package_names_its_plugin(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_PYTHON_CMD", sys.executable)
    request = messages.GetRequiredPackagesRequest(info=info(tmp_path))
    (found,) = Host(ENGINE, Children()).GetRequiredPackages(request, call).packages
    assert (found.name, found.kind, found.version) == ("kubernetes", "resource", "v4.25.0")


def test_packages_without_a_provider_and_without_a_version_are_understood() -> None:
    found = b'[{"resource": false, "name": "x"}, {"resource": true, "name": "y", "server": "s"}]'
    (plugin,) = host.required_plugins(found)
    assert (plugin.name, plugin.version, plugin.server) == ("y", "", "s")


def test_an_interrupted_host_leaves_at_once() -> None:
    with start_host() as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=120) == 0


def test_a_host_leaves_when_its_engine_is_gone() -> None:
    engine_script = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
    with subprocess.Popen(
        [sys.executable, "-c", engine_script, str(SHIM), ENGINE],
        env={**os.environ, "PULUMI_PYTHON_CMD": sys.executable},
        stdout=subprocess.PIPE,
        text=True,
    ) as engine:
        assert engine.stdout is not None
        assert int(engine.stdout.readline()) > 0
        engine.kill()
        # The host has inherited this pipe, so its end is the host's end.
        rest, _ = engine.communicate(timeout=120)
        assert rest == ""


def test_an_interpreter_without_pulumi_gets_one_sentence() -> None:
    shown = subprocess.run(
        [sys.executable, "-I", "-S", str(HOST), ENGINE], check=False, capture_output=True, text=True
    )
    assert (shown.returncode, shown.stdout, shown.stderr.count("\n")) == (1, "", 1)
    assert "Set PULUMI_PYTHON_CMD to an interpreter that has the pulumi package" in shown.stderr


def test_a_host_loads_the_messages_and_not_the_sdk() -> None:
    with subprocess.Popen(
        [sys.executable, "-X", "importtime", str(HOST), ENGINE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) > 0
        process.send_signal(signal.SIGINT)
        _, shown = process.communicate(timeout=120)
    loaded = {line.rpartition("|")[2].strip() for line in shown.splitlines()}
    assert "pulumi.runtime.proto.language_pb2_grpc" in loaded
    others = {name for name in loaded if name.startswith("pulumi.")}
    assert {name for name in others if not name.startswith("pulumi.runtime.proto")} == set()


def start_host() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, str(HOST), ENGINE], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert int(process.stdout.readline()) > 0
    return process
