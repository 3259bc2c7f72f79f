"""What is left of a rendering whose process ends in any way: nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

CHART = "apiVersion: v2\nname: chat\nversion: 1.0.0\n"
SLOW = """\
import os, signal, sys, time
for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(each, signal.SIG_IGN)
child = os.fork()
open({started!r}, "a").write(str(os.getpid()) + "\\n")
open("written", "w").write("x")
time.sleep(600)
"""
QUICK = """\
import os, time
if os.fork() == 0:
    open({started!r}, "a").write(str(os.getpid()) + "\\n")
    time.sleep(600)
while not os.path.exists({started!r}):
    time.sleep(0.01)
"""
PARENT = """\
import os, signal, sys
# A shell ignores both for what it starts in the background, and so would this.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it
os.environ["PATH"] = {path!r}
from kthena_components.cli.main import main
sys.exit(main(["check", {folder!r}]))
"""
Began = Callable[[str], tuple[subprocess.Popen[bytes], list[int]]]


@pytest.fixture
def began(tmp_path: Path) -> Began:
    """Start `check` with a helm of some lines of Python, and wait for the processes of that."""
    for name in ("programs", "temporary", "m/chat/templates"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "m/chat/Chart.yaml").write_text(CHART)
    started = tmp_path / "started"

    def start(text: str) -> tuple[subprocess.Popen[bytes], list[int]]:
        helm = tmp_path / "programs" / "helm"
        helm.write_text(f"#!{sys.executable} -I\n{text.format(started=str(started))}")
        helm.chmod(0o755)
        parent = PARENT.format(path=str(helm.parent), folder=str(tmp_path / "m"))
        process = subprocess.Popen(
            [sys.executable, "-c", parent],
            env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
            start_new_session=True,
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        wanted = 2 if text is SLOW else 1
        _until(lambda: started.exists() and started.read_text().count("\n") == wanted)
        return process, [int(pid) for pid in started.read_text().split()]

    return start


def _until(test: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30
    while not test():
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.02)


def _is_over(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


linux = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@linux
@pytest.mark.parametrize(
    "number", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGKILL", "SIGSEGV", "SIGUSR1"]
)
def test_a_signal_ends_the_program_and_leaves_no_folder(
    tmp_path: Path, began: Began, number: str
) -> None:
    process, pids = began(SLOW)
    (folder,) = (tmp_path / "temporary").iterdir()
    assert (folder / "written").exists()
    assert not any(map(_is_over, pids))
    os.killpg(process.pid, signal.Signals[number])  # as a terminal and `timeout` do
    _, told = process.communicate(timeout=30)
    expected = 130 if number == "SIGINT" else -signal.Signals[number]
    assert (process.returncode, b"Traceback" in told) == (expected, False)
    _until(lambda: all(map(_is_over, pids)) and not any((tmp_path / "temporary").iterdir()))


@linux
def test_a_second_interruption_while_it_is_cleared_leaves_nothing(
    tmp_path: Path, began: Began
) -> None:
    process, pids = began(SLOW)
    for _ in range(20):
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            time.sleep(0.005)
    process.communicate(timeout=30)
    _until(lambda: all(map(_is_over, pids)) and not any((tmp_path / "temporary").iterdir()))


@linux
def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path, began: Began) -> None:
    process, pids = began(QUICK)
    process.communicate(timeout=30)
    _until(lambda: all(map(_is_over, pids)) and not any((tmp_path / "temporary").iterdir()))


@linux
def test_a_time_limit_ends_all(
    tmp_path: Path, began: Began, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = PARENT.replace(
        "sys.exit", "import kthena_components.rendering.isolation as c; c.SECONDS = 2\nsys.exit"
    )
    monkeypatch.setitem(globals(), "PARENT", limited)
    process, pids = began(SLOW)
    _, told = process.communicate(timeout=30)
    assert told == f"{tmp_path}/m/chat: not rendered: it took longer than 2 s\n".encode()
    _until(lambda: all(map(_is_over, pids)) and not any((tmp_path / "temporary").iterdir()))


@linux
def test_the_watcher_ends_with_the_run(tmp_path: Path, began: Began) -> None:
    process, _ = began(SLOW)
    (folder,) = (tmp_path / "temporary").iterdir()
    assert len(_watchers(folder)) == 1
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    _until(lambda: not _watchers(folder))


def _watchers(folder: Path) -> list[str]:
    found = []
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                words = (each / "cmdline").read_bytes().decode().split("\0")
            except OSError:
                continue
            found += [each.name] if "watcher.py" in " ".join(words) and str(folder) in words else []
    return found
