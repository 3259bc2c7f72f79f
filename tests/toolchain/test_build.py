"""Building: real `go build` runs on a program of one line."""

import fcntl
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from toolchain import build
from toolchain.build import ensure_built, require_go
from toolchain.programs import Program, ToolchainError

needs_go = pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go on PATH")


def unexpected(line: str) -> None:
    pytest.fail(f"nothing should be reported, but: {line}")


@needs_go
def test_a_built_program_knows_its_version_and_has_its_companions(
    small_program: Program, cache: Path
) -> None:
    said: list[str] = []
    entry = ensure_built(small_program, cache, said.append)
    shown = subprocess.run([entry / "bin" / "small"], check=True, capture_output=True, text=True)
    assert shown.stderr == "1.2.3"
    assert os.access(entry / "bin" / "companion", os.X_OK)
    assert said[0] == (
        f"building small 1.2.3 from Go modules into {cache}: about 1 minute on 2 cores, "
        "and 1 GiB of memory"
    )
    assert said[-1].startswith("built small 1.2.3 in ")


@needs_go
def test_a_finished_build_is_taken_as_it_is(small_program: Program, cache: Path) -> None:
    first = ensure_built(small_program, cache, lambda _: None)
    assert ensure_built(small_program, cache, unexpected) == first


@needs_go
def test_a_changed_source_is_built_anew(small_program: Program, cache: Path) -> None:
    first = ensure_built(small_program, cache, lambda _: None)
    (small_program.folder / "main.go").write_text('package main\n\nfunc main() { print("new") }\n')
    second = ensure_built(small_program, cache, lambda _: None)
    shown = subprocess.run([second / "bin" / "small"], check=True, capture_output=True, text=True)
    assert (shown.stderr, first.is_dir()) == ("new", True)


@needs_go
def test_a_build_has_the_files_of_its_tags(small_program: Program, cache: Path) -> None:
    loud = '//go:build loud\n\npackage main\n\nfunc init() { version = "loud" }\n'
    (small_program.folder / "loud.go").write_text(loud)
    said = []
    for program in (small_program, replace(small_program, tags=("loud", "other"))):
        entry = ensure_built(program, cache, lambda _: None)
        shown = subprocess.run(
            [entry / "bin" / "small"], check=True, capture_output=True, text=True
        )
        said.append(shown.stderr)
    assert said == ["1.2.3", "loud"]


@needs_go
def test_a_failed_build_shows_the_end_of_its_log_and_leaves_no_entry(
    small_program: Program, cache: Path
) -> None:
    (small_program.folder / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(ToolchainError) as failure:
        ensure_built(small_program, cache, lambda _: None)
    log = next(cache.glob("*.log"))
    assert str(failure.value).startswith(f"small 1.2.3 could not be built. The end of {log}:\n")
    assert "main.go:3:15: undefined: undefined" in str(failure.value)
    assert [path for path in cache.iterdir() if path.is_dir()] == []


def test_only_the_last_lines_of_a_long_log_are_shown(
    small_program: Program,
    cache: Path,
    pretend: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = '[ "$1" = version ] && echo go version go1.26.0 && exit\nseq 1 100\nexit 1'
    monkeypatch.setenv("PATH", f"{pretend('go', script)}:{os.environ['PATH']}")
    with pytest.raises(ToolchainError) as failure:
        ensure_built(small_program, cache, lambda _: None)
    assert str(failure.value).split()[-15:] == [str(number) for number in range(86, 101)]
    assert " 85\n" not in str(failure.value)


def test_a_long_build_tells_that_it_still_runs(
    small_program: Program,
    cache: Path,
    pretend: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = '[ "$1" = version ] && echo go version go1.26.0 && exit\nsleep 0.3\nexit 1'
    monkeypatch.setenv("PATH", f"{pretend('go', script)}:{os.environ['PATH']}")
    monkeypatch.setattr(build, "PROGRESS_SECONDS", 0.1)
    said: list[str] = []
    with pytest.raises(ToolchainError):
        ensure_built(small_program, cache, said.append)
    assert "still building small 1.2.3: 0 s" in said


@needs_go
def test_what_a_killed_build_left_is_cleared_away(small_program: Program, cache: Path) -> None:
    left_over = Path(f"{small_program.entry(cache)}.partial-1")
    (left_over / "bin").mkdir(parents=True)
    (left_over / "bin" / "small").write_text("half a program")
    entry = ensure_built(small_program, cache, lambda _: None)
    assert [path for path in cache.iterdir() if path.is_dir()] == [entry]


@needs_go
def test_the_second_of_two_builders_takes_what_the_first_has_built(
    small_program: Program, cache: Path
) -> None:
    entry = small_program.entry(cache)
    cache.mkdir()
    waiting = threading.Event()
    said: list[str] = []

    def report(line: str) -> None:
        said.append(line)
        waiting.set()

    second = threading.Thread(target=ensure_built, args=(small_program, cache, report))
    with Path(f"{entry}.lock").open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        second.start()
        assert waiting.wait(timeout=120)
        entry.mkdir()
    second.join(timeout=120)
    assert said == ["waiting for another build of small 1.2.3 to finish"]


def test_without_go_one_sentence_says_what_is_missing(
    small_program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolchainError) as refusal:
        require_go(small_program)
    assert str(refusal.value) == (
        "small 1.2.3 is not installed and cannot be built: `go` is not on PATH. Install "
        "Pulumi 3.238 or later (3.x), or Go 1.26 or later to build it, and run this again."
    )


@pytest.mark.parametrize("version", ["go1.9.7", "go1.25.12", "devel"])
def test_a_go_that_is_too_old_is_named(
    version: str,
    small_program: Program,
    pretend: Callable[[str, str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(pretend("go", f"echo go version {version} linux/amd64")))
    with pytest.raises(
        ToolchainError, match=f"`go version` prints 'go version {version} linux/amd64'"
    ):
        require_go(small_program)
