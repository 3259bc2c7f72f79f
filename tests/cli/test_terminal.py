"""Colour, progress and completion: on a terminal only.

The command runs in this process, with its output on a pseudo-terminal. One test starts it as a
shell does.
"""

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import TextIO

import pytest
import yaml

from kthena_components.cli import terminal
from kthena_components.cli.main import main
from tests.support.convertible import leader_worker_set
from tests.support.discovery import discovery

COMMAND = (sys.executable, "-m", "kthena_components")
WRONG = """\
apiVersion: v1
kind: Pod
metadata: {name: llama}
spec:
  containers:
  - name: engine
    image: vllm/vllm-openai:v0.33.0
    command: [vllm, serve, meta-llama/Llama-3.1-8B-Instruct, --tensor-parallel-size, "4"]
    resources: {limits: {nvidia.com/gpu: "8"}}
"""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PROGRESS = re.compile(r". checked \d+ objects? \(\d+ s\) *$")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "pod.yaml"
    path.write_text(WRONG)
    return str(path)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")


def shown_by(program: Callable[[TextIO], object]) -> str:
    """Give what a program writes to a terminal."""
    ours, theirs = pty.openpty()
    written: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 4096):
                written.append(part)
        except OSError:  # the end, on Linux
            pass

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(theirs, "w") as stream:
        program(stream)
    reader.join()
    os.close(ours)
    return b"".join(written).decode().replace("\r\n", "\n")


def on_terminal(*arguments: str) -> str:
    """Run the command with both of its outputs on one terminal, and return what it wrote."""

    def program(stream: TextIO) -> None:
        with redirect_stdout(stream), redirect_stderr(stream), suppress(SystemExit):
            main(arguments)

    return shown_by(program)


def redirected(*arguments: str) -> str:
    """Run the command with its outputs in files, and return what it wrote."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        main(arguments)
    return err.getvalue() + out.getvalue()


def lasting(shown: str) -> list[str]:
    """Return the lines that stay on a terminal: on a busy machine there was progress, too."""
    lines = re.split(r"[\r\n]+", ESCAPE.sub("", shown))
    return [line for line in lines if line.strip() and not PROGRESS.match(line)]


def test_a_terminal_shows_the_level_in_colour(manifest: str) -> None:
    command = [*COMMAND, "check", manifest]
    plain = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    shown = shown_by(
        lambda stream: subprocess.run(command, stdout=stream, stderr=stream, check=False, cwd=ROOT)
    )
    assert "\x1b[1;31mmandatory\x1b[0m" in shown
    assert lasting(shown) == (plain.stderr + plain.stdout).splitlines()
    assert "\x1b[1;31mmandatory\x1b[0m" in on_terminal("check", manifest)


def test_redirected_output_has_no_colour_whatever_is_forced(
    manifest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in redirected("check", manifest)
    assert "mandatory: Pod llama" in redirected("check", manifest)


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_terminal_may_be_without_colour(
    manifest: str, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    shown = on_terminal("check", manifest)
    assert "\x1b[1;31m" not in shown
    assert lasting(shown) == redirected("check", manifest).splitlines()


def test_an_empty_no_color_does_not_count(manifest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b[1;31m" in on_terminal("check", manifest)


def test_nothing_is_imported_for_it_where_it_is_not_shown(manifest: str) -> None:
    program = (
        "import sys\nfrom kthena_components.cli.main import main\n"
        f"main(['check', {manifest!r}])\n"
        "print(sorted({'rich', 'argcomplete'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_drawing_has_the_colours_of_its_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream, os.fdopen(ours):
        assert terminal.paint("▒▒", stream, "placed") == "\x1b[1;32m▒▒\x1b[0m"
        assert terminal.paint("░░", stream, "free") == "░░"
        monkeypatch.setenv("NO_COLOR", "1")
        assert terminal.paint("▒▒", stream, "placed") == "▒▒"
    assert terminal.paint("▒▒", StringIO(), "placed") == "▒▒"


def test_without_the_extra_there_is_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal._painter.cache_clear()
    for name in ("rich.color", "rich.console", "rich.style", "rich.status"):
        monkeypatch.setitem(sys.modules, name, None)
    ours, theirs = pty.openpty()
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as stream, os.fdopen(ours):
        assert terminal.paint("mandatory", stream) == "mandatory"
        monkeypatch.setattr(terminal, "AFTER", 0)
        with terminal.Progress(stream, "working") as progress:
            progress._timer.join()
        assert progress._shown is None


def progress(stream: TextIO, *, is_slow: bool) -> None:
    """Write a line while something is done, before or after its progress is shown."""
    with terminal.Progress(stream, "previewing stack dev") as shown:
        if is_slow:
            shown._timer.join()
        with shown.pause():
            print("a line", file=stream, flush=True)
    print("the end", file=stream)


def test_a_slow_command_says_what_it_does_and_removes_the_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(terminal, "AFTER", 0)
    shown = shown_by(lambda stream: progress(stream, is_slow=True))
    assert "previewing stack dev (" in shown
    assert shown.index("previewing stack dev") < shown.index("a line")
    assert "\x1b[2K" in shown, "the line is erased"


def test_a_fast_command_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "AFTER", 60)
    shown = shown_by(lambda stream: progress(stream, is_slow=False))
    assert ESCAPE.sub("", shown) == "a line\nthe end\n"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show progress at once. rich is loaded before, since that can take longer than a command."""
    import_module("rich.status")
    monkeypatch.setattr(terminal, "AFTER", 0.05)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("command", ["doctor", "status", "convert --from-cluster --to lws"])
def test_each_command_that_reads_a_cluster_says_so(command: str, tmp_path: Path) -> None:
    with discovery(seconds=0.25) as config:
        path = tmp_path / "kubeconfig"
        path.write_text(config)
        shown = on_terminal(*command.split(), "--kubeconfig", str(path))
    assert "connecting to the cluster (" in ESCAPE.sub("", shown)
    assert re.search(r"reading (the cluster|http://127.0.0.1:\d+) \(", ESCAPE.sub("", shown))


@pytest.mark.usefixtures("impatient")
def test_a_conversion_of_files_says_what_it_does(tmp_path: Path) -> None:
    many = [{**leader_worker_set(), "metadata": {"name": f"set-{n}"}} for n in range(40)]
    path = tmp_path / "many.yaml"
    path.write_text(yaml.safe_dump_all(many))
    shown = on_terminal("convert", "--to", "kthena", str(path))
    assert "converting (" in ESCAPE.sub("", shown)


def test_a_redirected_command_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, manifest: str
) -> None:
    monkeypatch.setattr(terminal, "AFTER", 0)
    assert main(["check", manifest]) == 1
    assert capsys.readouterr().err == ""


COMPLETIONS = {
    "kthena-components che": {"check "},
    "kthena-components check --for": {"--format "},
    "kthena-components check --format j": {"json "},
    "kthena-components doc": {"doctor "},
}
ASK = """\
import os, sys
from kthena_components.cli.main import main
for number, line in enumerate(sys.argv[1:]):
    if not os.fork():
        os.environ |= {"COMP_LINE": line, "COMP_POINT": str(len(line))}
        os.environ["_ARGCOMPLETE_STDOUT_FILENAME"] = f"{number}"
        main([])
    os.wait()
"""
"""argcomplete ends the process that it answers in."""


def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    """As a shell asks: argcomplete's protocol, without a shell."""
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", ASK, *COMPLETIONS],
        env={**os.environ, **asked}, capture_output=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.stdout == b""
    found = [set((tmp_path / str(n)).read_text().split("\n")) for n in range(len(COMPLETIONS))]
    assert found == [*COMPLETIONS.values()]
