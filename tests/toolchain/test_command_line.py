"""`python -m toolchain` as the Makefile runs it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from toolchain.__main__ import main
from toolchain.programs import ROOT, known_programs

SLOW_GO = """
[ "$1" = version ] && echo go version go1.26.0 && exit
echo $$ > "$GO_PID_FILE"
exec sleep 60
"""


@pytest.fixture(autouse=True)
def signals_as_in_a_terminal() -> object:
    """Leave no handler behind, and begin with none ignored, as a job in the background does."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def start(environ: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "toolchain", "ensure"],
        cwd=ROOT,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_missing_go_ends_in_one_sentence_and_code_1(tmp_path: Path, cache: Path) -> None:
    with start({"PATH": str(tmp_path), "KTHENA_COMPONENTS_CACHE": str(cache)}) as command:
        out, err = command.communicate()
    assert (command.returncode, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("error: pulumi ")
    assert "`go` is not on PATH" in err


def test_env_prints_nothing_but_a_sentence_while_nothing_is_built(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("KTHENA_COMPONENTS_CACHE", str(cache))
    assert main(["env"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.endswith("is neither installed nor built yet. Run `make toolchain`.\n")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)], ids=["term", "int"]
)
def test_a_stopped_build_ends_go_and_leaves_nothing_behind(
    number: int, code: int, tmp_path: Path, cache: Path, pretend: Callable[[str, str], Path]
) -> None:
    pid_file = tmp_path / "pid"
    environ = {
        "PATH": f"{pretend('go', SLOW_GO)}:/usr/bin:/bin",
        "KTHENA_COMPONENTS_CACHE": str(cache),
        "GO_PID_FILE": str(pid_file),
    }
    with start(environ) as command:
        wait_until(lambda: pid_file.exists() and pid_file.read_text().strip() != "")
        command.send_signal(number)
        _, err = command.communicate(timeout=120)
    assert (command.returncode, "Traceback" in err) == (code, False)
    wait_until(lambda: not alive(int(pid_file.read_text())))
    assert [path for path in cache.iterdir() if path.is_dir()] == []


def test_a_build_is_announced_with_its_minutes(
    cache: Path, pretend: Callable[[str, str], Path]
) -> None:
    failing = '[ "$1" = version ] && echo go version go1.26.0 && exit\necho broken\nexit 1'
    environ = {
        "PATH": f"{pretend('go', failing)}:/usr/bin:/bin",
        "KTHENA_COMPONENTS_CACHE": str(cache),
    }
    with start(environ) as command:
        _, err = command.communicate()
    announced, failed, shown = err.splitlines()
    assert announced.startswith(f"building {known_programs()['pulumi'].title} from Go modules ")
    assert announced.endswith(": about 4 minutes on 2 cores, and 2 GiB of memory")
    assert (command.returncode, failed.startswith("error: pulumi "), shown) == (1, True, "  broken")


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120  # far beyond any load; it only ends a test that hangs
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("before", "after"), [("/usr/bin", "/usr/bin:{own}"), ("{own}:/usr/bin", "{own}:/usr/bin")]
)
def test_env_adds_the_commands_of_the_checkout_where_they_hide_nothing(
    before: str, after: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = str(ROOT / ".venv" / "bin")
    monkeypatch.setattr("toolchain.__main__.exports", lambda _, __: {})
    monkeypatch.setenv("PATH", before.format(own=own))
    assert main(["env"]) == 0
    assert capsys.readouterr().out == f"export PATH={after.format(own=own)}\n"
