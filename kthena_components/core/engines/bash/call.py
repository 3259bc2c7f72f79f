"""One command that a shell runs, its files and program, and strings that it reads as a script."""

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from kthena_components.core.engines.bash.shared_state import BeyondError, Run
from kthena_components.core.engines.bash.shell import FILE as FILE_FRAME
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell
from kthena_components.core.engines.bash.shell_state import (
    ARGUMENTS,
    BLOCKED,
    FILE,
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
from kthena_components.core.engines.bash.syntax import Assignment, Block, Word
from kthena_components.core.engines.facts import Blocked
from kthena_components.core.engines.files import Absent, read_file
from kthena_components.core.engines.placeholders import has_gap
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


_ACTIVATED = ("CONDA_DEFAULT_ENV", "CONDA_PREFIX", "PATH", "PS1", "PYTHONHOME", "VIRTUAL_ENV")
_AT_ANY_TIME = frozenset({"DEBUG", "RETURN"})


def block_of(text: str) -> Block:
    """Parse a script that another one reads."""
    from kthena_components.core.engines.bash.syntax import parse  # noqa: PLC0415 - see there

    block = parse(text)
    if isinstance(block, Unknown):
        raise BeyondError(block.because)
    return block


def _runs_unknown(words: Sequence[str]) -> bool:
    """Return whether it is unknown which command a string begins with."""
    first = words[0] if words else ""
    return isinstance(first, Many) or has_gap(first.split(" ")[0])


def evaluate(call: Call) -> Flow:
    """Run words as a script."""
    shell = call.shell
    text = " ".join(call.words[1:])
    if _runs_unknown(call.words[1:]):
        shown = shell.shared.scope.show(text)
        shell.state.forget(f"the script runs {shown}, which is unknown")
        return shell.done(Doubt.LIKELY)
    shell.shared.enter()
    flow = shell.run(shell, block_of(text)) if text.strip() else shell.done()
    shell.shared.leave()
    return flow


def source(call: Call) -> Flow:
    """Run a file in this shell."""
    if call.words[0] == "source" and not call.shell.bash:
        return call.shell.branch([lambda: _source(call), lambda: call.shell.done(127)])
    return _source(call)


def _source(call: Call) -> Flow:
    """Run the file that `source` names, in this shell."""
    shell = call.shell
    named = call.words[1] if len(call.words) > 1 else ""
    path = path_of(shell, named) if "/" in named else None
    text = shell.shared.file(path)
    if not isinstance(text, str):
        _unknown_file(shell, named)
        return shell.done(Doubt.LIKELY)
    shell.shared.enter()
    state, before = shell.state, shell.state.get(ARGUMENTS, ())
    outside = state.get(FILE, Unknown("the shell sets BASH_SOURCE itself"))
    own = tuple(call.words[2:])
    late = Unknown("whether a file that is read has its own parameters depends on the shell")

    def body() -> Flow:
        if own:
            state.set(ARGUMENTS, own if shell.bash else late)
        state.set(FILE, named)
        return shell.run(shell, block_of(text))

    flow = shell.framed(FILE_FRAME, body)
    if own:
        state.set(ARGUMENTS, before)
    state.set(FILE, outside)
    shell.shared.leave()
    return flow


def _unknown_file(shell: Shell, named: str) -> None:
    shown = shell.shared.scope.show(named)
    if is_known(named) and posixpath.basename(named) in {"activate", "conda.sh"}:
        for name in _ACTIVATED:
            shell.state.assign(name, Unknown(f"{name} may be set by {shown}"))
        return
    shell.state.forget(f"a variable may be set by {shown}, which is unknown")
    shell.state.set(LIBRARY, True)


def trap(call: Call) -> Flow:
    """Record what signals run: variables that it sets are not known from then on."""
    words = list(call.words[1:])
    if words[:1] == ["--"]:
        del words[0]
    late = any(isinstance(word, Many) for word in words) or not all(map(is_known, words[1:]))
    if late or _runs_unknown(words[:1]) or _AT_ANY_TIME.intersection(words[1:]):
        raise BeyondError("its script sets an unknown trap")
    if len(words) < 2 or words[0] in {"-", "", "-p", "-l"}:  # noqa: PLR2004 - what and when
        return call.shell.done()
    at_end = {word.removeprefix("SIG") for word in words[1:]} <= {"EXIT", "0"}
    for key in _changed(call.shell, block_of(words[0])):
        if key.isidentifier() and not at_end:
            call.shell.state.set(key, Unknown(f"{key} may be set by a trap of the script"))
            call.shell.state.set(f"fixed {key}", True)
    return call.shell.done()


def _changed(shell: Shell, block: Block) -> list[str]:
    """Return what a trap changes; it must start nothing that is read here."""
    shared, state = shell.shared, shell.state
    first, outside = len(shared.log), (shell.frames, shell.exits, shell.nested)
    seen = shared.sure, shared.stays
    shell.frames, shell.exits, shell.nested = [], [], True
    state.layers.append({})
    shared.enter()
    shell.run(shell, block)
    shared.leave()
    changed = state.layers.pop()
    shell.frames, shell.exits, shell.nested = outside
    shared.sure, shared.stays = seen
    if len(shared.log) > first:
        raise BeyondError("a trap of its script starts an engine")
    return list(changed)
