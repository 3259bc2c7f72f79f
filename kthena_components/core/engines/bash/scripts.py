"""`eval`, `source` and `trap`: texts that a shell reads as a script."""

import posixpath
from collections.abc import Sequence

from kthena_components.core.engines.bash.call import Call, path_of
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import FILE as FILE_FRAME
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell
from kthena_components.core.engines.bash.shell_state import ARGUMENTS, FILE, LIBRARY, Many, is_known
from kthena_components.core.engines.bash.syntax import Block
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.unknown import Unknown

_ACTIVATED = ("CONDA_DEFAULT_ENV", "CONDA_PREFIX", "PATH", "PS1", "PYTHONHOME", "VIRTUAL_ENV")
_AT_ANY_TIME = frozenset({"DEBUG", "RETURN"})


def block_of(text: str) -> Block:
    """Parse a script that another one reads."""
    from kthena_components.core.engines.bash.parse import parse  # noqa: PLC0415 - see there

    block = parse(text)
    if isinstance(block, Unknown):
        raise BeyondError(block.because)
    return block


def _runs_unknown(words: Sequence[str]) -> bool:
    """Return whether it is unknown which command a text begins with."""
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
