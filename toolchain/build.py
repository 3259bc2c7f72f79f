"""Builds one program from Go modules into its cache entry.

A build uses a separate folder and renames it at the end, so a killed build leaves no incomplete
entry. A lock makes a second build of the same program wait for the first.
"""

import fcntl
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from toolchain.programs import VERSIONS, Program, ToolchainError, minutes_of

Report = Callable[[str], None]
PROGRESS_SECONDS = 30
LOG_LINES_SHOWN = 15


def ensure_built(program: Program, cache: Path, report: Report) -> Path:
    """Return the program's cache entry, and build it first if it does not exist."""
    entry = program.entry(cache)
    if entry.is_dir():
        return entry
    require_go(program)
    cache.mkdir(parents=True, exist_ok=True)
    with _only_builder_of(entry, program, report):
        if not entry.is_dir():
            _build(program, cache, report)
    return entry


def require_go(program: Program) -> None:
    """Raise a ToolchainError if no Go on PATH can build the program."""
    if problem := _problem_with_go():
        pulumi = f"Pulumi {VERSIONS['oldest_pulumi']} or later (3.x), or "
        raise ToolchainError(
            f"{program.title} is not installed and cannot be built: {problem}. "
            f"Install {pulumi if program.purpose == 'pulumi' else ''}Go {VERSIONS['go']} "
            "or later to build it, and run this again."
        )


def _problem_with_go() -> str | None:
    if shutil.which("go") is None:
        return "`go` is not on PATH"
    answer = _go("version").stdout.strip()
    found = re.search(r"\bgo(\d+)\.(\d+)", answer)
    oldest = tuple(int(part) for part in VERSIONS["go"].split("."))
    if found is None or tuple(int(part) for part in found.groups()) < oldest:
        return f"`go version` prints {answer!r}"
    return None


def _build(program: Program, cache: Path, report: Report) -> None:
    entry = program.entry(cache)
    log = entry.with_name(f"{entry.name}.log")
    # With our process id: an orphaned `go build` of a killed run must not write into our folder.
    partial = entry.with_name(f"{entry.name}.partial-{os.getpid()}")
    for left_over in cache.glob(f"{entry.name}.partial-*"):
        shutil.rmtree(left_over)
    report(
        f"building {program.title} from Go modules into {cache}: about "
        f"{minutes_of(program.minutes)} on 2 cores, and {program.memory_gib} GiB of memory"
    )
    started = time.monotonic()
    try:
        _compile(program, partial / "bin" / program.name, log, report)
        _add_files_beside(program, partial / "bin")
        _add_data(program, partial / "data")
        partial.rename(entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    report(f"built {program.title} in {_span(time.monotonic() - started)}")


def _compile(program: Program, target: Path, log: Path, report: Report) -> None:
    """Run `go build` with its output in a log, and report progress every half minute."""
    command = [
        *("go", "build", "-trimpath", "-mod=readonly", "-buildvcs=false"),
        *("-ldflags", " ".join(["-s", "-w", *(f"-X {stamp}" for stamp in program.stamps)])),
        *(("-tags", ",".join(program.tags)) if program.tags else ()),
        *("-o", str(target), program.package),
    ]
    started = time.monotonic()
    with log.open("wb") as words:
        child = subprocess.Popen(
            command, cwd=program.folder, env=_go_environment(), stdout=words, stderr=words
        )
        try:
            while not _ended(child):
                elapsed = _span(time.monotonic() - started)
                report(f"still building {program.title}: {elapsed}")
        finally:
            child.terminate()
            child.wait()
    if child.returncode:
        raise ToolchainError(_failure(program, log))


def _ended(child: subprocess.Popen[bytes]) -> bool:
    try:
        child.wait(PROGRESS_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _failure(program: Program, log: Path) -> str:
    last = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    shown = "\n".join(f"  {line}" for line in last)
    return f"{program.title} could not be built. The end of {log}:\n{shown}"


def _add_files_beside(program: Program, folder: Path) -> None:
    """Copy the files that the program expects in its own folder.

    Files in Go's module cache are read-only and not executable, so this sets the mode.
    """
    files = list(program.beside)
    for module, path in program.beside_from_modules.items():
        files.append(_module_folder(program, module) / path)
    for file in files:
        shutil.copyfile(file, folder / file.name).chmod(0o755)


def _add_data(program: Program, folder: Path) -> None:
    """Copy the data files of the program. Raise if a pattern matches no file."""
    for module, patterns in program.data_from_modules.items():
        place = _module_folder(program, module)
        for pattern in patterns:
            found = sorted(place.glob(pattern))
            if not found:
                raise ToolchainError(
                    f"{program.title} needs {pattern}, but {module} has no such file"
                )
            folder.mkdir(exist_ok=True)
            for file in found:
                shutil.copyfile(file, folder / "-".join(file.relative_to(place).parts))


def _module_folder(program: Program, module: str) -> Path:
    found = _go("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module, cwd=program.folder)
    return Path(found.stdout.strip())


def _go(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["go", *arguments],
        cwd=cwd,
        env=_go_environment(),
        check=True,
        capture_output=True,
        text=True,
    )


def _go_environment() -> dict[str, str]:
    """Return variables that make Go use the installed version and our own go.mod."""
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off"}


@contextmanager
def _only_builder_of(entry: Path, program: Program, report: Report) -> Iterator[None]:
    """Hold the entry's lock. The system releases it if the process dies."""
    with entry.with_name(f"{entry.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another build of {program.title} to finish")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
