"""Several processes give what one gives, and none is left behind."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from bench.workload import servings
from kthena_components.cli.check import files as checking
from kthena_components.cli.check.reports import FORMATS
from kthena_components.cli.check.workers import WorkerError, side_by_side
from kthena_components.cli.main import main
from kthena_components.compiler.compile import compile_serving
from tests.cli.conftest import Command
from tests.toughness.mutate import manifest
from tests.toughness.targets import _written

SEEDS = range(12)
FOREIGN = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\n"
BROKEN = ("a: [", "{{ .Values.x }}: 1\n", "\x00", "kind: Pod\nmetadata: {name: &a b, name: c}\n")


@pytest.mark.parametrize("jobs", [1, 2, 7, 100])
@pytest.mark.parametrize("count", [0, 1, 2, 50, 3000])
def test_results_come_in_order(count: int, jobs: int) -> None:
    assert list(side_by_side(lambda number: (number, "x" * number), count, jobs)) == [
        (number, "x" * number) for number in range(count)
    ]
    assert no_children()


def test_an_error_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda number: 1 // (number - 5), 20, 3))
    assert no_children()


@pytest.mark.parametrize("which", [0, 7, 19])
def test_a_killed_process_is_one_sentence(which: int) -> None:
    def work(number: int) -> int:
        if number == which:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with pytest.raises(WorkerError, match="ended with signal 9, so nothing was checked"):
        list(side_by_side(work, 20, 2))
    assert no_children()


def no_children() -> bool:
    """Tell whether this process waits for no other one."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return True
    return False


def corpus(folder: Path, draw: random.Random) -> None:
    """Write files with right and wrong objects of all kinds, groups of several, and no objects."""
    texts = [_written(draw, [manifest(draw) for _ in range(draw.randrange(1, 4))]).decode(
        errors="replace") for _ in range(8)]  # fmt: skip
    for backend in ("native", "kthena"):
        serving = servings(backend, 1)[0]
        bodies = [made.body for made in compile_serving(serving).manifests]
        text = yaml.safe_dump_all(bodies).replace(*draw.choice((("8", "8"), ("- '8'", "- '4'"))))
        cut = text.find("---", len(text) // 2)
        texts += [text, text] if draw.randrange(3) == 0 else [text[:cut], text[cut:]]
    texts += [FOREIGN, draw.choice(BROKEN), f"{FOREIGN}---\n{draw.choice(BROKEN)}"]
    draw.shuffle(texts)
    for number, text in enumerate(texts):
        path = folder / draw.choice(("a", "b", ".")) / f"{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode(errors="replace"))


@pytest.mark.property
@pytest.mark.parametrize("seed", SEEDS)
def test_several_processes_say_what_one_says(seed: int, run: Command, tmp_path: Path) -> None:
    draw = random.Random(seed)
    corpus(tmp_path, draw)
    form = [*FORMATS][seed % len(FORMATS)]
    options = ["--format", form, *draw.choice(([], ["--whole"], ["--level", "prod"]))]
    one = run("--jobs", "1", *options, ".")
    assert one.err or one.out
    assert [run("--jobs", jobs, *options, ".") for jobs in ("2", "7")] == [one, one]


def test_of_a_killed_process_nothing_is_written(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus(tmp_path, random.Random(1))
    judge = checking.check_safely

    def killed(body, *beside):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN002, ANN202
        if body.get("kind") == "StatefulSet":
            os.kill(os.getpid(), signal.SIGKILL)
        return judge(body, *beside)

    monkeypatch.setattr(checking, "check_safely", killed)
    done = run("--jobs", "2", "--format", "json", ".")
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert done.err.startswith("kthena-components check: one of the processes that check files")


@pytest.mark.parametrize("jobs", ["0", "-1", "x", "1.5", "²"])
def test_a_wrong_number_of_processes_is_refused(run: Command, jobs: str) -> None:
    done = run(f"--jobs={jobs}", ".")
    assert done.status == 2
    assert "is not a number of processes" in done.err


SLOW = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in the background
from kthena_components.cli.check import files as check
from kthena_components.cli.main import main
def slow(number, source, beside):
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(60)
check._file = slow
sys.exit(main(["check", "--jobs", "2", sys.argv[1]]))
"""


def started(folder: Path) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a check whose processes take a minute for a file, and return their numbers."""
    for name in "abcd":
        (folder / f"{name}.yaml").write_text(FOREIGN)
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(folder)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    return process, [int(process.stdout.readline()) for _ in range(2)]


def test_ctrl_c_ends_all_processes_with_one_word(tmp_path: Path) -> None:
    process, workers = started(tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "interrupted\n")
    assert not any(map(runs, workers))


def test_processes_end_after_the_first_one_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SLOW", SLOW.replace("sleep(60)", "sleep(2)"))
    process, workers = started(tmp_path)
    process.kill()
    process.communicate(timeout=60)
    ends = time.monotonic() + 60
    while any(map(runs, workers)) and time.monotonic() < ends:
        time.sleep(0.1)
    assert not any(map(runs, workers))


def runs(process: int) -> bool:
    """Tell whether a process works: what nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_main_function_needs_no_processes_for_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fork costs as much as to check some objects."""
    (tmp_path / "a.yaml").write_text(FOREIGN)
    monkeypatch.setattr(os, "fork", None)
    assert main(["check", str(tmp_path)]) == 0
