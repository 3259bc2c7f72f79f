"""One command that a shell runs, the files that it names, and the program that it starts."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from kthena_components.core.engines.bash.shared_state import Run
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell
from kthena_components.core.engines.bash.shell_state import (
    BLOCKED,
    FOLDER,
    LIBRARY,
    OUTPUT,
    RUNNING,
    SLEPT,
    WRITTEN,
    Many,
    Passed,
    Value,
    is_known,
)
from kthena_components.core.engines.bash.syntax import Assignment, Word
from kthena_components.core.engines.facts import Blocked
from kthena_components.core.engines.files import Absent, read_file
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeText, Unknown


@dataclass(frozen=True, slots=True)
class Call:
    """One command."""

    shell: Shell
    words: Sequence[str]
    given: Sequence[Word | Assignment] = ()
    """The words before they were expanded, of a declaration."""
    assigned: Mapping[str, Value] = field(default_factory=dict)
    """What stands in front of its name."""
    stdin: str | None = None
    """What its standard input holds; None if that is not known."""

    @property
    def known(self) -> bool:
        """Whether every word is known."""
        return all(map(is_known, self.words))

    def write(self, text: str | Unknown) -> None:
        """Write to the standard output, where that is wanted."""
        state = self.shell.state
        before = state.get(OUTPUT)
        if before is None:
            return
        if isinstance(before, str) and isinstance(text, str):
            state.set(OUTPUT, before + text)
        else:
            state.set(OUTPUT, Unknown("the output of a command is unknown"))


def path_of(shell: Shell, word: str) -> str | None:
    """Return a path from the root; None if it is unknown."""
    return path_from(word, shell.state.get(FOLDER))


def path_from(word: str, folder: object) -> str | None:
    """Return a path from the root, as it is found in a folder; None if it is unknown."""
    if not is_known(word):
        return None
    if word.startswith("/"):
        return posixpath.normpath(word)
    return posixpath.normpath(f"{folder}/{word}") if isinstance(folder, str) else None


def text_of(shell: Shell, path: str | None) -> MaybeText | Absent | None:
    """Return the text of a file; None if it is unknown what is there."""
    written = shell.state.get(WRITTEN)
    if isinstance(written, Mapping) and path in written:
        found: MaybeText = written[path]
        return found
    return None if path is None else read_file(shell.shared.scope.files, path)


def is_folder(shell: Shell, path: str | None) -> bool:
    """Return whether a path is definitely a mounted folder. A subPath may mount a single file."""
    at = (mount for mount in shell.shared.scope.files if mount.path == path)
    return any(mount.files and all(name for name, _ in mount.files) for mount in at)


_PAUSE = regex(r"([0-9]{1,6})([smhd]?)", re.ASCII)
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_NEVER_END = (("sleep", "infinity"), ("sleep", "inf"), ("tail", "-f", "/dev/null"))


def _seconds(words: Sequence[str]) -> int:
    """Return for how long `sleep` waits at least; 0 if that is not known."""
    parts = [_PAUSE.fullmatch(word) for word in words]
    return sum(int(part[1]) * _UNITS[part[2]] for part in parts if part is not None)


def _note_ray(shell: Shell, words: Sequence[str], first: int) -> None:
    """Record that `ray start` keeps the script from going on.

    Behind a test, a worker's ray start is for other pods than the engine's.
    """
    rays = [found.ray for found in shell.shared.log[first:] if found.ray]
    own = [ray for ray in rays if ray.role == "head" or not shell.guards]
    if "timeout" in words or isinstance(shell.state.get(BLOCKED), Blocked):
        return
    if any(ray.blocks for ray in own):
        shell.state.set(BLOCKED, Blocked.BLOCK)
    elif any(ray.may_block for ray in own):
        shell.state.set(BLOCKED, Unknown("a word of it may be --block"))


def replaced(call: Call) -> Flow:
    """Put a program in place of the shell, which then is left.

    What stands behind `exec ray start` outside of all tests is only read for an engine, which never
    starts.
    """
    shell, log = call.shell, call.shell.shared.log
    first = len(log)
    flow = program(call)
    if flow is not Flow.GOES:
        return flow
    sure = shell.shared.sure and not shell.guards and shell.state.get(BLOCKED) is not Blocked.EXEC
    started = [found for found in log[first:] if found.ray or found.engine]
    if sure and started and all(found.ray and not found.engine for found in started):
        shell.state.set(BLOCKED, Blocked.EXEC)
        for found in started:
            found.replaces = True
        return Flow.GOES
    return shell.leave(Doubt.LIKELY)


def program(call: Call) -> Flow:
    """Start a program, and go on as if it succeeded."""
    shell, shared, words = call.shell, call.shell.shared, call.words
    if tuple(words) in _NEVER_END:
        return shell.leave(Doubt.LIKELY)
    sure, first, slept = shared.sure, len(shared.log), shell.state.get(SLEPT, 0)
    if words[0] == "sleep" and isinstance(slept, int):
        shell.state.set(SLEPT, slept + _seconds(words[1:]))
    if isinstance(words[0], Many):
        # It may be nothing, or a wrapper, or another program.
        shared.sure, words = False, words[1:]
    if words:
        running = shell.state.get(RUNNING, False) is not False
        run = Run(
            words=words,
            environment=Passed(shell.state, call.assigned),
            folder=shell.state.get(FOLDER),
            stdin=call.stdin,
            running=running,
            written=shell.state.get(WRITTEN, {}),
        )
        lasting = shared.start(run)
        for found in shared.log[first:]:
            found.beside = found.beside or (found.engine is not None and running)
            found.slept = max(found.slept, slept if isinstance(slept, int) else 0)
            found.blocked = found.blocked or shell.state.get(BLOCKED)
        _note_ray(shell, words, first)
        if shell.state.get(BLOCKED) is Blocked.EXEC:
            shared.log[first:] = [found for found in shared.log[first:] if found.engine]
        elif lasting:
            shell.state.set(RUNNING, True)
    shared.sure = sure
    if shell.state.get(OUTPUT) is not None:
        shell.state.set(OUTPUT, Unknown("the output of a program is unknown"))
    named = len(shared.log) == first and words and "/" not in words[0]
    if named and shell.state.get(LIBRARY):
        shell.state.forget(f"{words[0]} may be a function of an unknown file")
    return shell.done(Doubt.LIKELY)
