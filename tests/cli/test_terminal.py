"""Colour, progress and completion: on a terminal only."""

import os
import pty
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

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
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "pod.yaml"
    path.write_text(WRONG)
    return path


def on_terminal(
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    command: tuple[str, ...] = COMMAND,
) -> str:
    """Run the command with both of its outputs on one terminal, and return what it wrote."""
    ours, theirs = pty.openpty()
    environ = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR"}}
    environ |= {"TERM": "xterm-256color", "COLUMNS": "80", **(variables or {})}
    with subprocess.Popen(
        [*command, *arguments], env=environ, stdout=theirs, stderr=theirs, cwd=ROOT
    ) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the end, on Linux
                break
            if not part:
                break
            written += part
        process.wait()
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


def lasting(shown: str) -> list[str]:
    """Return the lines that stay on a terminal: on a busy machine there was progress, too."""
    lines = re.split(r"[\r\n]+", ESCAPE.sub("", shown))
    return [line for line in lines if line.strip() and not PROGRESS.match(line)]


def redirected(*arguments: str) -> str:
    environ = {**os.environ, "TERM": "xterm-256color", "FORCE_COLOR": "1"}
    done = subprocess.run(
        [*COMMAND, *arguments], env=environ, capture_output=True, text=True, check=False, cwd=ROOT
    )
    return done.stderr + done.stdout


def test_a_terminal_shows_the_level_in_colour(manifest: Path) -> None:
    plain, shown = redirected("check", str(manifest)), on_terminal("check", str(manifest))
    assert "\x1b[1;31mmandatory\x1b[0m" in shown
    assert lasting(shown) == plain.splitlines()


def test_redirected_output_has_no_colour_whatever_is_forced(manifest: Path) -> None:
    assert "\x1b" not in redirected("check", str(manifest))
    assert "mandatory: Pod llama" in redirected("check", str(manifest))


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_may_be_without_colour(manifest: Path, variables: dict[str, str]) -> None:
    shown = on_terminal("check", str(manifest), variables=variables)
    assert "\x1b[1;31m" not in shown
    assert lasting(shown) == redirected("check", str(manifest)).splitlines()


def test_an_empty_no_color_does_not_count(manifest: Path) -> None:
    assert "\x1b[1;31m" in on_terminal("check", str(manifest), variables={"NO_COLOR": ""})


def test_nothing_is_imported_for_it_where_it_is_not_shown(manifest: Path) -> None:
    program = (
        "import sys\nfrom kthena_components.cli.main import main\n"
        f"main(['check', {str(manifest)!r}])\n"
        "print(sorted({'rich', 'argcomplete'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.splitlines()[-1] == "[]"


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


def slow(seconds: float) -> str:
    """Show progress on a terminal while something takes some seconds, and writes a line."""
    program = (
        "import sys, time\nfrom kthena_components.cli import terminal\nterminal.AFTER = 0.1\n"
        "with terminal.Progress(sys.stderr, 'previewing stack dev') as progress:\n"
        f"    time.sleep({seconds})\n"
        "    with progress.pause():\n        print('a line', flush=True)\n"
        f"    time.sleep({seconds})\nprint('the end')"
    )
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm-256color"}
    environ.pop("NO_COLOR", None)
    done: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 4096):
                done.append(part)
        except OSError:
            pass

    reader = threading.Thread(target=read)
    reader.start()
    command = [sys.executable, "-c", program]
    subprocess.run(command, env=environ, stdout=theirs, stderr=theirs, check=True, cwd=ROOT)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return b"".join(done).decode()


def test_a_slow_command_says_what_it_does_and_removes_the_line() -> None:
    shown = slow(3)
    assert "previewing stack dev (" in shown
    assert shown.index("previewing stack dev") < shown.index("a line")
    assert "\x1b[2K" in shown, "the line is erased"


IMPATIENT = (
    # rich is loaded before, since that can take longer than the command.
    "import sys\nimport rich.console, rich.status\n"
    "from kthena_components.cli import terminal\nterminal.AFTER = 0.05\n"
    "from kthena_components.cli.main import main\nsys.exit(main(sys.argv[1:]))"
)


@pytest.mark.parametrize(
    "command",
    ["doctor", "status", "convert --from-cluster --to lws"],
)
def test_each_command_that_reads_a_cluster_says_so(command: str, tmp_path: Path) -> None:
    with discovery(seconds=0.25) as config:
        path = tmp_path / "kubeconfig"
        path.write_text(config)
        words = (*command.split(), "--kubeconfig", str(path))
        shown = on_terminal(*words, command=(sys.executable, "-c", IMPATIENT))
    assert "connecting to the cluster (" in ESCAPE.sub("", shown)
    assert re.search(r"reading (the cluster|http://127.0.0.1:\d+) \(", ESCAPE.sub("", shown))


def test_a_conversion_of_files_says_what_it_does(tmp_path: Path) -> None:
    many = [{**leader_worker_set(), "metadata": {"name": f"set-{n}"}} for n in range(40)]
    path = tmp_path / "many.yaml"
    path.write_text(yaml.safe_dump_all(many))
    words = ("convert", "--to", "kthena", str(path))
    shown = on_terminal(*words, command=(sys.executable, "-c", IMPATIENT))
    assert "converting (" in ESCAPE.sub("", shown)


def test_a_fast_command_shows_nothing() -> None:
    assert ESCAPE.sub("", slow(0)).replace("\r\n", "\n") == "a line\nthe end\n"


def test_a_redirected_command_says_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, manifest: Path
) -> None:
    monkeypatch.setattr(terminal, "AFTER", 0)
    assert main(["check", str(manifest)]) == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kthena-components che", {"check "}),
        ("kthena-components check --for", {"--format "}),
        ("kthena-components check --format j", {"json "}),
        ("kthena-components doc", {"doctor "}),
    ],
)
def test_a_shell_completes_commands_and_options(line: str, words: set[str], tmp_path: Path) -> None:
    """As a shell asks: argcomplete's protocol, without a shell."""
    answer = tmp_path / "answer"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    done = subprocess.run(
        [*COMMAND], env={**os.environ, **asked}, capture_output=True, check=False, cwd=ROOT
    )
    assert done.stdout == b""
    assert set(answer.read_text().split("\n")) == words
