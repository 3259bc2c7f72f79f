"""The Python of the other tests: it runs a program as a fresh interpreter would."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.engine import STATE_VARIABLES, Stack, environment
from tests.support.for_each import for_each
from tests.support.forked_python import environment_folder

EXEC = "pulumi-language-python-exec"
LOADED = "kthena_components.compiler"
TELL = f"""\
import json, os, sys
seen = [__name__, __file__, sys.argv, os.getcwd(), os.environ.get("WORD"), sys.path[0]]
print(json.dumps([{LOADED!r} in sys.modules, *seen]))
sys.exit(7)
"""


@pytest.fixture(scope="module")
def variables() -> dict[str, str]:
    return {**environment(), **STATE_VARIABLES}


@pytest.fixture(scope="module")
def python(variables: dict[str, str]) -> Path:
    return environment_folder(variables) / "bin" / "python"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """Write what stands for Pulumi's script, which tells what it sees."""
    path = tmp_path / "bin" / EXEC
    path.parent.mkdir()
    path.write_text(TELL)
    return path


def program(tmp_path: Path) -> Path:
    folder = tmp_path / "program"
    folder.mkdir(exist_ok=True)
    return folder


def test_a_program_sees_what_it_sees_in_a_fresh_interpreter(
    python: Path, script: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    words, seen = ["-u", str(script), "--pwd", "", f"{program(tmp_path)}/.", "last"], []
    for executable in (python, sys.executable):
        ran = subprocess.run(
            [executable, *words], cwd=tmp_path, env={**variables, "WORD": "a"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (ran.returncode, ran.stderr) == (7, "")
        seen.append(json.loads(ran.stdout))
    (forked, *same), (fresh, *expected) = seen
    assert (forked, fresh) == (True, False)
    assert same == expected


@pytest.mark.parametrize(
    "kept", ["other-variables", "read-when-loaded", "shadows", "other-command", "other-script"]
)
def test_the_real_interpreter_runs_what_differs(
    kept: str, python: Path, script: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    words = ["-u", str(script), f"{program(tmp_path)}/."]
    if kept == "other-variables":
        variables = {**variables, "PYTHONHASHSEED": "1"}
    elif kept == "read-when-loaded":
        variables = {**variables, "PSUTIL_DEBUG": "1"}
    elif kept == "shadows":
        (program(tmp_path) / "yaml.py").touch()
    elif kept == "other-command":
        words = ["-c", TELL.replace("__file__", "None")]
    else:
        words[1] = str(script.rename(script.with_name("another")))
    ran = subprocess.run(
        [python, *words], env=variables, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (7, "")
    assert json.loads(ran.stdout)[0] is False


def started(
    python: Path, script: Path, variables: dict[str, str], folder: Path
) -> tuple[subprocess.Popen[str], int]:
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    client = subprocess.Popen(
        [python, "-u", script, f"{program(folder)}/."],
        env=variables, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert client.stdout is not None
    return client, int(client.stdout.readline())


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_ends_with_its_client(
    sent: signal.Signals, python: Path, script: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    client, process = started(python, script, variables, tmp_path)
    with client:
        assert client.pid != process
        client.send_signal(sent)
        assert client.wait() == -sent
    while Path(f"/proc/{process}").exists():
        time.sleep(0.01)


def test_a_client_ends_as_its_program_does(
    python: Path, script: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    client, process = started(python, script, variables, tmp_path)
    with client:
        os.kill(process, signal.SIGUSR1)
        assert client.wait() == -signal.SIGUSR1


def test_a_client_that_is_ended_after_its_program_ends_as_that_did(
    python: Path, script: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    client, process = started(python, script, variables, tmp_path)
    with client:
        client.send_signal(signal.SIGSTOP)
        os.kill(process, signal.SIGUSR1)
        while Path(f"/proc/{process}").exists():
            time.sleep(0.01)
        for sent in (signal.SIGTERM, signal.SIGCONT):
            client.send_signal(sent)
        assert client.wait() == -signal.SIGUSR1


AGAIN = f"""\
import sys
forked = {LOADED!r} in sys.modules
import json, os, tempfile
import kubernetes.config.kube_config as read
from pulumi import export
export("seen", json.dumps([forked, read.KUBE_CONFIG_DEFAULT_LOCATION, tempfile.gettempdir()]))
"""


@pytest.mark.programs
def test_a_stack_is_forked_and_reads_its_own_variables_again(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "Pulumi.yaml").write_text("name: again\nruntime: python\n")
    (source / "__main__.py").write_text(AGAIN)
    for forked in (True, False):
        folder = tmp_path / str(forked)
        stack = Stack.make(source, "again", folder, forked=forked)
        stack.up().require()
        own = [str(folder / "no-kubeconfig"), str(folder / "temporary")]
        assert json.loads(stack.outputs["seen"]) == [forked, *own]


@for_each(
    "ends",
    [
        "print('said'); raise ValueError('wrong')",
        "print('said'); sys.exit('wrong')",
        "print('said', end=''); sys.exit(None)",
        "sys.exit(300)",
        "atexit.register(print, 'at the end')",
        "threading.Thread(target=lambda: print(time.sleep(0.2))).start()",
        "signal.raise_signal(signal.SIGINT)",
    ],
)
def test_a_program_ends_as_in_a_fresh_interpreter(
    ends: str, python: Path, script: Path, variables: dict[str, str], tmp_path: Path
) -> None:
    script.write_text(f"import atexit, signal, sys, threading, time\n{ends}\n")
    words = ["-u", str(script), f"{program(tmp_path)}/."]
    forked, fresh = (
        subprocess.run(
            [executable, *words], env=variables, capture_output=True, text=True, check=False
        )
        for executable in (python, sys.executable)
    )
    assert (forked.returncode, forked.stdout) == (fresh.returncode, fresh.stdout)
    assert forked.stderr.splitlines()[-1:] == fresh.stderr.splitlines()[-1:]


@pytest.mark.programs
@for_each("forked", [True, False])
def test_a_program_that_is_written_again_within_a_second_runs_as_written(
    forked: bool, tmp_path: Path
) -> None:
    folder = tmp_path / str(forked)
    source = folder / "source"
    source.mkdir(parents=True)
    (source / "Pulumi.yaml").write_text("name: again\nruntime: python\n")
    stack = Stack.make(source, "again", folder, forked=forked)
    main, second = stack.project / "__main__.py", int(time.time()) + 60
    for value in (1, 2):
        main.write_text(f"import pulumi\n\npulumi.export('value', {value})\n")
        os.utime(main, (second, second))
        stack.up().require()
        assert stack.outputs["value"] == value
