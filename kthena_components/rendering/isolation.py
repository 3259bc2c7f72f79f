"""Runs a program on untrusted files: without secrets and plugins, and with limits.

The program gets no shell and an empty PATH, so it cannot start other programs (Kustomize would
start git, and helm its plugins). It gets an empty home and none of the user's variables. Addresses
that it might fetch are found before it starts (reading/kustomization.py). For others there is a
proxy that does not exist.
"""

import json
import math
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.safe_text import visible
from kthena_components.reading.files import MOST_BYTES
from kthena_components.rendering.watcher import Watcher, kill_group

if sys.platform == "linux":
    import resource

SECONDS, SECONDS_OF_ALL = 60, 600
"""The time limits of one rendering, and of all renderings together."""
MOST_MEMORY = 4 * 2**30
"""Maximum bytes of memory for one program, on Linux only."""
MOST_OUTPUT = 2**30
"""Maximum bytes of all outputs together."""
_MOST_PROCESSOR = 10 * SECONDS
"""Seconds of processor time for one program, in case this process is killed. On Linux only."""
_PAUSE = 0.02
_ERROR = "Error:"
_LOGGED = regex(r"^[EF][0-9]{4} [0-9:.]+ +[0-9]+ [^ ]+\] \"command failed\" err=(<?)", re.MULTILINE)
"""A record of Kubernetes' log: a text of several lines is between < and >, another is quoted."""
_CRASHES = ("panic:", "fatal error:")
_NOWHERE = "http://127.0.0.1:9"
"""A proxy that does not exist: port 9 is the discard protocol."""
_PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")
_FOLDERS = (
    *("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS"),
)


@dataclass(slots=True)
class Cage:
    """An empty folder outside the checked folders, and the limits of the programs in it."""

    folder: Path
    watcher: Watcher
    ends: float = math.inf
    """The monotonic time at which all programs are stopped."""
    printed: int = 0
    """Bytes of all outputs."""

    def new_folder(self) -> Path:
        """Create a folder in it."""
        return Path(mkdtemp(dir=self.folder))

    def exhausted(self) -> str:
        """Explain which limit of all renderings is reached; empty if none."""
        if time.monotonic() > self.ends:
            return f"all renderings together took longer than {SECONDS_OF_ALL} s"
        if self.printed > MOST_OUTPUT:
            return f"all renderings together are larger than {MOST_OUTPUT // 2**20} MiB"
        return ""

    def run(self, command: Sequence[str], output: Path) -> str:
        """Run a program, and write its output to a file.

        Returns:
            The error in one line; empty if the program succeeded.
        """
        errors = output.with_name(f"{output.name}.err")
        if why := self.exhausted():
            return why
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
                self.watcher.started(process.pid)
                stopped = self._wait(process, (output, errors))
            self.printed += output.stat().st_size + errors.stat().st_size
        except OSError as error:
            return f"{Path(command[0]).name} cannot be run: {error.strerror}"
        if stopped or process.returncode:
            return stopped or _reason(errors, process.returncode)
        return ""

    def _wait(self, process: subprocess.Popen[bytes], files: Iterable[Path]) -> str:
        """Wait for a program, and kill what is left of its group. Returns the limit it reached."""
        _limit(process.pid)
        ends = time.monotonic() + SECONDS
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_PAUSE)
                    return ""
                if time.monotonic() > ends:
                    return f"it took longer than {SECONDS} s"
                if why := self.exhausted():
                    return why
                if any(file.stat().st_size > MOST_BYTES for file in files):
                    return f"it is larger than the limit of {MOST_BYTES // 2**20} MiB"
        finally:
            kill_group(process.pid)
            process.wait()
            self.watcher.ended(process.pid)

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
    """Create an empty folder, and delete it at the end, even if this process is killed."""
    name = f"kthena-components-{secrets.token_hex(8)}"
    folder = Path(os.path.realpath(gettempdir()), name)
    with Watcher(folder) as watcher:  # before the folder exists: nothing is left at any time
        for each in (folder, folder / "home", folder / "nothing"):
            each.mkdir(mode=0o700)
        yield Cage(folder, watcher, time.monotonic() + SECONDS_OF_ALL)


def _limit(pid: int) -> None:
    if sys.platform == "linux":
        with suppress(OSError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (MOST_BYTES + 1, MOST_BYTES + 1))
            resource.prlimit(pid, resource.RLIMIT_CPU, (_MOST_PROCESSOR, _MOST_PROCESSOR))
            resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _unlogged(told: str) -> str:
    """Return the message in a record of kubectl's log, without its time and process."""
    found = _LOGGED.search(told)
    if found is None:
        return told
    rest = told[found.end() :].strip()
    if found[1]:
        return f"{_ERROR} {rest.removesuffix('>')}"
    with suppress(ValueError):
        rest = str(json.loads(rest))
    return f"{_ERROR} {rest}"


def _reason(errors: Path, status: int) -> str:
    """Return the error message of a program in one line."""
    with errors.open("rb") as file:
        told = _unlogged(file.read(MOST_BYTES).decode(errors="replace"))
    lines = [line.strip() for line in told.splitlines() if line.strip()]
    crash = next((line for line in lines if line.startswith(_CRASHES)), "")
    first = next((n for n, line in enumerate(lines) if line.startswith(_ERROR)), len(lines) - 1)
    reason = crash or " ".join(lines[max(first, 0) :]).removeprefix(_ERROR).strip()
    reason = reason or f"it ended with {status}"
    if "out of memory" in told:
        reason = f"it took more than {MOST_MEMORY // 2**30} GiB of memory"
    return visible(reason)
