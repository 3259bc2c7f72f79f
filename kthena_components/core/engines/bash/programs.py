"""Programs that a shell starts."""

from kthena_components.core.engines.bash.call import Call
from kthena_components.core.engines.bash.session import Run
from kthena_components.core.engines.bash.shell import Doubt, Flow
from kthena_components.core.engines.bash.state import (
    BLOCKED,
    FOLDER,
    LIBRARY,
    OUTPUT,
    RUNNING,
    Many,
    Passed,
)
from kthena_components.core.values.unknown import Unknown

_NEVER_END = (("sleep", "infinity"), ("sleep", "inf"), ("tail", "-f", "/dev/null"))


def program(call: Call) -> Flow:
    """Start a program, and go on as if it succeeded."""
    shell, session, words = call.shell, call.shell.session, call.words
    if tuple(words) in _NEVER_END:
        return shell.leave(Doubt.LIKELY)
    sure, first = session.sure, len(session.log)
    if isinstance(words[0], Many):
        # It may be nothing, or a wrapper, or another program.
        session.sure, words = False, words[1:]
    if words:
        running = shell.state.get(RUNNING, False) is not False
        run = Run(
            words=words,
            environment=Passed(shell.state, call.assigned),
            folder=shell.state.get(FOLDER),
            stdin=call.stdin,
            running=running,
        )
        lasting = session.start(run)
        for found in session.log[first:]:
            found.beside = found.beside or (found.engine is not None and running)
            found.blocked = found.blocked or shell.state.get(BLOCKED) is True
        if any(found.ray and found.ray.blocks for found in session.log[first:]):
            shell.state.set(BLOCKED, True)
        if lasting:
            shell.state.set(RUNNING, True)
    session.sure = sure
    if shell.state.get(OUTPUT) is not None:
        shell.state.set(OUTPUT, Unknown("the output of a program is unknown"))
    named = len(session.log) == first and words and "/" not in words[0]
    if named and shell.state.get(LIBRARY):
        shell.state.forget(f"{words[0]} may be a function of an unknown file")
    return shell.done(Doubt.LIKELY)
