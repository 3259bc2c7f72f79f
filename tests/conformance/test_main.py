"""How parts are run: nothing that breaks or cannot run is taken for a success."""

import importlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from conformance import __main__ as program
from conformance.__main__ import Context, main, run, run_beside
from conformance.report import Part, passed, render
from toolchain.programs import ROOT, ToolchainError, known_programs


@pytest.fixture(autouse=True)
def folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let parts have their folders below the test's own: one that is killed leaves its behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("parts")))


def part(monkeypatch: pytest.MonkeyPatch, name: str, what: object) -> None:
    """Make a part of a function."""
    monkeypatch.setitem(program.PARTS, name, name)
    monkeypatch.setitem(sys.modules, f"conformance.{name}", SimpleNamespace(run=what))


def test_each_part_is_a_module_that_runs() -> None:
    for name, module in program.PARTS.items():
        assert callable(importlib.import_module(f"conformance.{module}").run), name


def test_a_part_that_breaks_fails_and_its_folder_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    folders: list[Path] = []

    def broken(context: Context) -> None:
        folders.append(context.folder)
        context.part.check("the first", holds=True)
        raise RuntimeError("in the middle")

    part(monkeypatch, "broken", broken)
    found = run("broken", 1, 1)
    assert (found.checks, len(found.failures)) == (1, 1)
    assert "RuntimeError: in the middle" in found.failures[0]
    assert not folders[0].exists()
    assert not passed([found])


def test_what_a_machine_cannot_run_is_listed_and_no_success(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacking(_: Context) -> None:
        raise ToolchainError("Go 1.26 is needed")

    part(monkeypatch, "lacking", lacking)
    found = run("lacking", 1, 1)
    assert found.not_run == ["the whole part: Go 1.26 is needed"]
    assert not passed([found])
    assert "not run:\n  lacking: the whole part: Go 1.26 is needed\n" in render([found])


def test_a_part_whose_own_programs_are_not_built_is_left_out_unless_it_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KTHENA_COMPONENTS_CACHE", str(tmp_path))
    monkeypatch.setattr(program, "PARTS", {"plain": "plain", "kaito": "kaito"})
    monkeypatch.setattr(program, "OWN_NETWORK", frozenset[str]())
    asked: list[str] = []

    def ensure(_environ: object, _say: object, purpose: str = "sandbox") -> None:
        asked.append(purpose)

    monkeypatch.setattr(program, "ensure_sandbox", ensure)
    for name in program.PARTS:
        part(monkeypatch, name, lambda context: context.part.check("it holds", holds=True))
    assert main([]) == 0
    said = capsys.readouterr().out
    assert said.endswith(
        "not run: none\nleft out:\n  kaito: kaito 0.11.0, which only this part needs, is not "
        "built: `make conformance ARGS=kaito` builds it in about 4 minutes\n"
    )
    assert asked == ["sandbox"]
    assert main(["kaito"]) == 0
    assert "left out: none" in capsys.readouterr().out
    assert asked == ["sandbox", "sandbox", "kaito"]
    known_programs("kaito")["kaito"].entry(tmp_path).mkdir()
    assert main([]) == 0
    assert "left out: none" in capsys.readouterr().out


def test_a_part_that_would_begin_too_late_is_left_out_and_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "PARTS", {"one": "one", "two": "two", "load": "load"})
    monkeypatch.setattr(program, "ensure_sandbox", lambda *_: None)

    def slow(context: Context) -> None:
        time.sleep(0.5)
        context.part.check("it holds", holds=True)

    for name in program.PARTS:
        part(monkeypatch, name, slow)
    assert main(["--jobs", "1", "--minutes", "0.005", "--turn", "0x4"]) == 0
    said = capsys.readouterr().out
    ran = [line.split()[0] for line in said.splitlines() if re.search(r" 1 s +[0-9]+ s$", line)]
    assert ran == ["two"]
    for name in ("one", "load"):
        assert f"  {name}: the time was up: `make conformance ARGS={name}` runs it\n" in said


def test_parts_beside_one_another_are_given_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def fine(context: Context) -> None:
        context.part.check("it holds", holds=context.many(10) == 5)

    names = ["one", "answers", "two", "fuzz", "three"]
    for name in names:
        part(monkeypatch, name, fine)
    found = run_beside(names, 1, 0.5, jobs=2)
    assert [(each.name, each.checks, each.failures) for each in found] == [
        (name, 1, []) for name in names
    ]
    assert passed(found)


def test_a_signal_ends_every_part_in_order_and_begins_no_other(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        import signal, sys, time
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from pathlib import Path
        from types import SimpleNamespace
        from conformance.__main__ import main
        import conformance.__main__ as program

        def part(name):
            def run(context):
                try:
                    Path({str(tmp_path)!r}, name + "-began").touch()
                    time.sleep(60)
                finally:
                    time.sleep(0.5)
                    Path({str(tmp_path)!r}, name + "-ended").touch()
            return SimpleNamespace(run=run)

        program.PARTS = {{name: name for name in ("one", "two", "three", "four", "five")}}
        program.ensure_sandbox = lambda *_: None
        sys.modules |= {{f"conformance.{{name}}": part(name) for name in program.PARTS}}
        main(["--jobs", "2"])
    """)
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen(
            [sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.PIPE,
            start_new_session=True,
        ) as command:  # fmt: skip
            wait_until(lambda: len(list(tmp_path.glob("*-began"))) == 2)
            os.killpg(command.pid, number)
            command.communicate(timeout=60)
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "one-began", "one-ended", "two-began", "two-ended",
        ]  # fmt: skip
        for path in tmp_path.iterdir():
            path.unlink()


def test_a_part_without_a_cluster_runs_behind_the_others_and_ends_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    script = textwrap.dedent(f"""
        import os, subprocess, sys, time
        from pathlib import Path
        from types import SimpleNamespace
        import conformance.__main__ as program

        def part(name):
            def run(context):
                if name == "fuzz":
                    child = subprocess.Popen(["sleep", "60"])
                    Path({str(tmp_path)!r}, "child").write_text(str(child.pid))
                Path({str(tmp_path)!r}, name).write_text(str(os.nice(0)))
                time.sleep(60)
            return SimpleNamespace(run=run)

        program.PARTS = {{name: name for name in ("fuzz", "one", "load")}}
        program.ensure_sandbox = lambda *_: None
        sys.modules |= {{f"conformance.{{name}}": part(name) for name in program.PARTS}}
        program.main(["--jobs", "1"])
    """)
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True
    ) as command:
        names = ("child", "fuzz", "one")
        wait_until(lambda: all((tmp_path / name).exists() for name in names))
        wait_until(lambda: all((tmp_path / name).read_text() for name in names))
        os.killpg(command.pid, signal.SIGTERM)
        command.communicate(timeout=60)
    assert (tmp_path / "fuzz").read_text() == str(os.nice(0) + 10)
    assert (tmp_path / "one").read_text() == str(os.nice(0))
    assert not (tmp_path / "load").exists()
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not psutil.pid_exists(child) or _is_zombie(child))


def _is_zombie(process: int) -> bool:
    return psutil.Process(process).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("name", ["one", "fuzz"])
def test_a_part_whose_process_is_killed_fails_and_the_others_are_told(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part(monkeypatch, "fine", lambda _: None)
    part(monkeypatch, name, lambda _: os.kill(os.getpid(), signal.SIGKILL))
    *_, found = run_beside(["fine"] * (name == "fuzz") + [name], 1, 1, jobs=1)
    assert found.failures == ["its process was killed, perhaps because memory ran out"]


@pytest.mark.parametrize("jobs", ["0", "-1", "many"])
def test_a_number_of_jobs_that_cannot_be_is_told(
    jobs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--jobs", jobs])
    assert ended.value.code == 2
    assert "--jobs" in capsys.readouterr().err


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60  # far beyond any load; it only ends a test that hangs
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_last_lines_name_each_failure_whatever_its_length() -> None:
    first, second = Part("a"), Part("b")
    first.check("the first update ends well", holds=False, seen="line\n" * 1000)
    second.check("nothing is left", holds=False)
    ends = render([first, second]).splitlines()[-2:]
    assert ends[0].startswith("FAILED a: the first update ends well: line line")
    assert (len(ends[0]) < 200, ends[1]) == (True, "FAILED b: nothing is left")
