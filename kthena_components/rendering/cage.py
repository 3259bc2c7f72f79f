"""Where a program runs on files of a stranger: without a network, secrets, plugins or much time.

It gets no shell, no PATH, so that it starts no other program (Kustomize would start git, and helm
its plugins), a home of its own, and none of the variables of whoever runs this. Addresses that it
might fetch are looked for before (reading/kustomization.py); a proxy that is not there refuses the
others.
"""

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from kthena_components.core.values.visible import visible
from kthena_components.reading.files import MOST_BYTES

if sys.platform == "linux":
    import resource

SECONDS, SECONDS_OF_ALL = 60, 600
"""How long one rendering may take, and all of them together."""
MOST_MEMORY = 4 * 2**30
"""Bytes that one program may use; on Linux alone."""
_PAUSE = 0.02
_ERROR = "Error:"
_NOWHERE = "http://127.0.0.1:9"
"""A proxy that answers nobody: the port is that of the discard protocol."""
_PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")
_FOLDERS = (
    *("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS"),
)


@dataclass(frozen=True, slots=True)
class Cage:
    """An empty folder outside of what is checked, and what programs may do there."""

    folder: Path
    ends: float = math.inf
    """The monotonic time after which nothing is run."""

    def new_folder(self) -> Path:
        """Make a folder in it."""
        return Path(mkdtemp(dir=self.folder))

    def run(self, command: Sequence[str], output: Path) -> str:
        """Run a program, and write what it prints to a file.

        Returns:
            Why that failed, in one line; nothing if it did not.
        """
        errors = output.with_name(f"{output.name}.err")
        if time.monotonic() > self.ends:
            return f"all renderings together took longer than {SECONDS_OF_ALL} s"
        try:
            with output.open("wb") as out, errors.open("wb") as err:
                process = subprocess.Popen(
                    command,
                    cwd=self.folder,
                    env=self._environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                )
                stopped = self._wait(process, (output, errors))
        except OSError as error:
            return f"{Path(command[0]).name} cannot be run: {error.strerror}"
        if stopped or process.returncode:
            return stopped or _reason(errors, process.returncode)
        return ""

    def _wait(self, process: subprocess.Popen[bytes], files: Iterable[Path]) -> str:
        """Wait for the end of a program, or end it, with all that it started, and say why."""
        _limit(process.pid)
        ends = time.monotonic() + SECONDS
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PAUSE)
                    return ""
                if time.monotonic() > ends:
                    return f"it took longer than {SECONDS} s"
                if any(file.stat().st_size > MOST_BYTES for file in files):
                    return f"it is larger than the limit of {MOST_BYTES // 2**20} MiB"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _environment(self) -> dict[str, str]:
        nothing = str(self.folder / "nothing")
        return {
            **dict.fromkeys(_FOLDERS, str(self.folder / "home")),
            **dict.fromkeys(_PROXIES, _NOWHERE),
            "PATH": nothing,
            "KUBECONFIG": nothing,
            "KUBERC": "off",
            "LC_ALL": "C.UTF-8",
        }


@contextmanager
def cage() -> Iterator[Cage]:
    """Make an empty folder, and remove it with all that is in it."""
    with TemporaryDirectory(prefix="kthena-components-") as name:
        folder = Path(os.path.realpath(name))
        for inner in ("home", "nothing"):
            (folder / inner).mkdir()
        yield Cage(folder, time.monotonic() + SECONDS_OF_ALL)


def find_program(names: Iterable[str], untrusted: Iterable[str]) -> str | None:
    """Find a program on PATH, that no folder which is checked holds.

    Args:
        names: What it may be called, the best first.
        untrusted: Real paths of folders that strangers wrote.
    """
    strangers = tuple(untrusted)
    for name in names:
        found = shutil.which(name)
        if found is not None and Path(found).is_absolute():
            folder = os.path.realpath(Path(found).parent)  # a stranger's link may name any program
            places = (Path(folder), Path(os.path.realpath(found)))
            if not any(place.is_relative_to(each) for place in places for each in strangers):
                return found
    return None


def _limit(pid: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (MOST_BYTES + 1, MOST_BYTES + 1))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _reason(errors: Path, status: int) -> str:
    """Say in one line what a program complained of."""
    with errors.open("rb") as file:
        told = file.read(MOST_BYTES).decode(errors="replace")
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    first = next((n for n, line in enumerate(lines) if line.startswith(_ERROR)), len(lines) - 1)
    reason = " ".join(lines[max(first, 0) :]).removeprefix(_ERROR).strip()
    reason = reason or f"it ended with {status}"
    if "out of memory" in told:
        reason = f"it took more than {MOST_MEMORY // 2**30} GiB of memory"
    return visible(reason)
