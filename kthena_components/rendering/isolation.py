"""Finds a program, and runs it on untrusted files: without secrets and plugins, with limits.

A checkout may contain a program of any name, and a link to any program. If PATH leads there (`.`,
an empty entry, `bin`, a folder of the checkout, a link into it), the author of the checkout would
choose what runs. So each lookup in a folder on PATH is followed as the kernel does it, and a
program is skipped if one step reads an entry below an untrusted folder. The next one on PATH is
taken: a program that the user has installed stays usable, whatever the checkout contains.

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
from kthena_components.core.values.display import visible
from kthena_components.core.values.regex import regex
from kthena_components.reading.files import MOST_BYTES
from kthena_components.rendering.watcher import Watcher, kill_group

_GIT = ".git"
_Identity = tuple[int, int]
"""Device and inode of a folder: a folder may have several spellings, by case or by a bind mount."""


def find_program(names: Iterable[str], untrusted: Iterable[str]) -> str | None:
    """Find a program on PATH: the first one that no untrusted folder decides about.

    Entries of PATH that are empty or relative are skipped, because they depend on the current
    folder.

    Args:
        names: Its possible names, the best first: `("kustomize", "kubectl")`.
        untrusted: Folders with untrusted files; see `checkouts_around`. A folder that does not
            exist is ignored.

    Returns:
        Its absolute path, with links as PATH spells them (some programs depend on their name).
        None if there is none.
    """
    names, roots = list(names), _identities(untrusted)
    found = (file for name in names for file in _on_path(name))
    return next((file for file in found if not _depends_on(file, roots)), None)


def why_missing(names: Iterable[str], untrusted: Iterable[str]) -> str:
    """Explain why `find_program` returned None, as the end of a message."""
    names, roots = list(names), _identities(untrusted)
    found = (file for name in names for file in _on_path(name))
    inside = next((file for file in found if _depends_on(file, roots)), None)
    if inside is None:
        return f"there is no {' or '.join(names)} on PATH"
    name = Path(inside).name
    return (
        f"PATH leads to {inside}, which a checked folder decides about, so it is not started, and "
        f"there is no other {name} on PATH: install {name} outside the checkout"
    )


def checkouts_around(folders: Iterable[str]) -> list[str]:
    """Return the real paths of the checkouts that contain some folders.

    This is the folder itself and the repository around it. A repository whose `.git` is a file, a
    submodule or a worktree, may be part of another one, which then counts, too.
    """
    found: dict[str, None] = {}
    for folder in folders:
        real = Path(os.path.realpath(folder))
        found[str(real)] = None
        for each in (real, *real.parents):
            if (each / _GIT).exists():
                found[str(each)] = None
                if (each / _GIT).is_dir():
                    break
    return list(found)


def _on_path(name: str) -> Iterator[str]:
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        file = Path(folder, name)
        if file.is_absolute() and file.is_file() and os.access(file, os.X_OK):
            yield str(file)


def _identities(folders: Iterable[str]) -> set[_Identity]:
    found = (_identity(Path(folder)) for folder in folders)
    return {each for each in found if each is not None}


def _identity(folder: Path) -> _Identity | None:
    try:
        seen = folder.stat()
    except (OSError, ValueError):
        return None
    return seen.st_dev, seen.st_ino


def _depends_on(file: str, roots: set[_Identity]) -> bool:
    """Return whether the lookup of an absolute path reads an entry below one of some folders."""
    folders = {each for folder in _looked_up_in(file) for each in (folder, *folder.parents)}
    return any(_identity(folder) in roots for folder in folders)


def _looked_up_in(path: str) -> Iterator[Path]:
    """Yield the real path of each folder in which the lookup of an absolute path reads an entry.

    The path must exist. So the number of links on the way is limited: the kernel has followed them.
    """
    waiting, here = _names(Path(path)), Path(os.sep)
    while waiting:
        name = waiting.pop()
        if name == os.pardir:
            here = here.parent  # `here` has no links
            continue
        yield here
        entry = here / name
        if entry.is_symlink():
            target = entry.readlink()
            here = Path(os.sep) if target.is_absolute() else here
            waiting += _names(target)
        else:
            here = entry


def _names(path: Path) -> list[str]:
    """List the names in a path, the last one first."""
    return [name for name in reversed(path.parts) if name != path.anchor]


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
"""A record of Kubernetes' log: a string of several lines is between < and >, another is quoted."""
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
        """Return the environment of a program: an empty home, no proxy, and no cluster."""
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


def _unlogged(output: str) -> str:
    """Return the message in a record of kubectl's log, without its time and process."""
    found = _LOGGED.search(output)
    if found is None:
        return output
    rest = output[found.end() :].strip()
    if found[1]:
        return f"{_ERROR} {rest.removesuffix('>')}"
    with suppress(ValueError):
        rest = str(json.loads(rest))
    return f"{_ERROR} {rest}"


def _reason(errors: Path, status: int) -> str:
    """Return the error message of a program in one line."""
    with errors.open("rb") as file:
        output = _unlogged(file.read(MOST_BYTES).decode(errors="replace"))
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    crash = next((line for line in lines if line.startswith(_CRASHES)), "")
    first = next((n for n, line in enumerate(lines) if line.startswith(_ERROR)), len(lines) - 1)
    reason = crash or " ".join(lines[max(first, 0) :]).removeprefix(_ERROR).strip()
    reason = reason or f"it ended with {status}"
    if "out of memory" in output:
        reason = f"it took more than {MOST_MEMORY // 2**30} GiB of memory"
    return visible(reason)
