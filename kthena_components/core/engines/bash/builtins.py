"""Commands that a shell runs itself, and what they change.

Source: POSIX.1-2024, Shell Command Language, 2.15; bash's manual, 4.
"""

import re
from collections.abc import Callable, Mapping

from kthena_components.core.engines.bash import conditions, output
from kthena_components.core.engines.bash.arithmetic import forget_changed
from kthena_components.core.engines.bash.call import (
    Call,
    evaluate,
    is_folder,
    path_of,
    replaced,
    source,
    trap,
)
from kthena_components.core.engines.bash.declare import unset
from kthena_components.core.engines.bash.parameters import Numbers
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import (
    FILE,
    FUNCTION,
    LOOP,
    ROUND,
    Doubt,
    Flow,
    Shell,
    Status,
)
from kthena_components.core.engines.bash.shell_state import (
    ARGUMENTS,
    FOLDER,
    RUNNING,
    Many,
    is_known,
)
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

LETTERS = {"allexport": "a", "errexit": "e", "noglob": "f", "nounset": "u", "pipefail": "pipefail"}
_CHANGING_SET = frozenset(
    {"B", "k", "n", "p", "r", "t", "braceexpand", "noexec", "posix", "keyword"}
)
_FOLLOWED = frozenset({"a", "e", "f", "u"})


def set_options(call: Call) -> Flow:
    """Run `set`."""
    words, at = call.words, 1
    while at < len(words) and re.fullmatch(r"[-+][A-Za-z]+", words[at]):
        on, letters = words[at][0] == "-", words[at][1:]
        at += 1
        for letter in letters:
            if letter == "o" and at < len(words):
                switch(call.shell, words[at], on=on)
                at += 1
            else:
                switch(call.shell, letter, on=on)
    rest = words[at:]
    if rest[:1] in (["--"], ["-"]):
        call.shell.state.set(ARGUMENTS, tuple(rest[1:]))
    elif rest and (not is_known(rest[0]) or rest[0][:1] in {"-", "+"}):
        call.shell.state.set(ARGUMENTS, Unknown("the script sets its parameters"))
    elif rest:
        call.shell.state.set(ARGUMENTS, tuple(rest))
    return call.shell.done()


def switch(shell: Shell, name: str, *, on: bool) -> None:
    """Turn an option on or off, by its letter or its name."""
    if name in _CHANGING_SET or not is_known(name):
        raise BeyondError("its script changes how the shell parses it (set)")
    letter = LETTERS.get(name, name)
    if letter in _FOLLOWED or letter == "pipefail":
        shell.state.set(f"-{letter}", on)


_OTHERS = """
    bg bind caller compgen complete dirs disown fc fg hash help history jobs kill logout suspend
    times type ulimit umask unalias
"""
_COUNT = regex(r"[0-9]{1,6}")
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_CHANGING_SHOPT = frozenset(
    {"nocasematch", "lastpipe", "xpg_echo", "compat31", "localvar_inherit", "inherit_errexit"}
)


def _true(call: Call) -> Flow:
    return call.shell.done()


def _false(call: Call) -> Flow:
    return call.shell.done(1)


def _other(call: Call) -> Flow:
    """Run a command that changes nothing which is followed here."""
    call.write(Unknown(f"the output of {call.words[0]} is unknown"))
    return call.shell.done(Doubt.LIKELY)


def _status(call: Call) -> Status:
    """Return the status that `exit` or `return` names: otherwise the status of the last command."""
    if len(call.words) == 1:
        return call.shell.status
    return int(call.words[1]) & 0xFF if _COUNT.fullmatch(call.words[1]) else Doubt.OPEN


def _exit(call: Call) -> Flow:
    return call.shell.leave(_status(call))


def _return(call: Call) -> Flow:
    call.shell.done(_status(call))
    flow = call.shell.jump((FUNCTION, FILE))
    if flow is None and not call.shell.bash:
        return call.shell.leave(_status(call))
    return flow or Flow.GOES


def _jump(call: Call, kind: str) -> Flow:
    """Run `break` or `continue`, out of as many loops as stated but no more than there are."""
    given = call.words[1] if len(call.words) > 1 else "1"
    if not _COUNT.fullmatch(given) or not int(given):
        raise BeyondError(f"its script leaves a number of loops that is unknown ({call.words[0]})")
    call.shell.done()
    loops = sum(frame.kind == LOOP for frame in call.shell.frames)
    flow = call.shell.jump((kind,), min(int(given), max(loops, 1)))
    if flow is None and not call.shell.bash:
        raise BeyondError(f"its script leaves a loop from outside of it ({call.words[0]})")
    return flow or Flow.GOES


def _break(call: Call) -> Flow:
    return _jump(call, LOOP)


def _continue(call: Call) -> Flow:
    return _jump(call, ROUND)


def _exec(call: Call) -> Flow:
    """Put a program in place of the shell; without one, redirections last."""
    words = list(call.words[1:])
    while words and re.fullmatch(r"-[cl]+|-[cl]*a|--", words[0]):
        del words[: 2 if words[0].endswith("a") else 1]
    if not words:
        return call.shell.done()
    return replaced(Call(call.shell, words, (), call.assigned, call.stdin))


def _shift(call: Call) -> Flow:
    """Run `shift`; a shift of more parameters than there are ends some shells but not bash."""
    given = call.words[1] if len(call.words) > 1 else "1"
    found = call.shell.state.get(ARGUMENTS, ())
    count = int(given) if _COUNT.fullmatch(given) else None
    unclear = not isinstance(found, tuple) or count is None
    if unclear or any(isinstance(word, Many) for word in found[:count]):
        call.shell.state.set(ARGUMENTS, Unknown("the script shifts its parameters"))
        return call.shell.done(Doubt.OPEN)
    if count is not None and count > len(found):
        shell = call.shell
        # Some shells end there.
        return (
            shell.done(1)
            if shell.bash
            else shell.branch([lambda: shell.done(1), lambda: shell.leave(2)])
        )
    call.shell.state.set(ARGUMENTS, found[count:])
    return call.shell.done()


def _cd(call: Call) -> Flow:
    """Change the folder. It is taken to be there."""
    state = call.shell.state
    words = [word for word in call.words[1:] if word not in {"-L", "-P", "--", "-e"}]
    home = state.variable("HOME")
    word = words[0] if words else home if isinstance(home, str) else ""
    path = None if word in {"-", ""} else path_of(call.shell, word)
    late = Unknown("the directory that the script changes to is unknown")
    state.set(FOLDER, late if path is None or len(words) > 1 else path)
    state.set("PWD", late if path is None else path)
    return call.shell.done(0 if is_folder(call.shell, path) else Doubt.LIKELY)


def _leave_folder(call: Call) -> Flow:
    late = Unknown("the directory that the script changes to is unknown")
    call.shell.state.set(FOLDER, late)
    call.shell.state.set("PWD", late)
    return _other(call)


def _let(call: Call) -> Flow:
    """Forget what `let` may set."""
    if not call.known:
        call.shell.state.forget("the script computes an unknown expression")
    for word in call.words[1:]:
        forget_changed(word, Numbers(call.shell))
    return call.shell.done(Doubt.OPEN)


def _wait(call: Call) -> Flow:
    if len(call.words) == 1:
        call.shell.state.set(RUNNING, False)
    return call.shell.done(Doubt.LIKELY)


def _getopts(call: Call) -> Flow:
    for name in (*call.words[2:3], "OPTARG", "OPTIND"):
        if _NAME.fullmatch(name):
            call.shell.state.assign(name, Unknown(f"the script reads {name} from its options"))
    return call.shell.done(Doubt.OPEN)


def _alias(call: Call) -> Flow:
    if any("=" in word for word in call.words[1:]) or not call.known:
        raise BeyondError("its script defines an alias")
    return _other(call)


def _shopt(call: Call) -> Flow:
    if not call.known or _CHANGING_SHOPT.intersection(call.words):
        raise BeyondError("its script changes how bash parses it (shopt)")
    return _other(call)


def _enable(call: Call) -> Flow:
    raise BeyondError(f"its script enables or disables builtins ({call.words[0]})")


BUILTINS: Mapping[str, Callable[[Call], Flow]] = {
    ".": source,
    ":": _true,
    "[": conditions.test,
    "alias": _alias,
    "break": _break,
    "cd": _cd,
    "continue": _continue,
    "echo": output.echo,
    "enable": _enable,
    "eval": evaluate,
    "exec": _exec,
    "exit": _exit,
    "false": _false,
    "getopts": _getopts,
    "let": _let,
    "mapfile": output.mapfile,
    "popd": _leave_folder,
    "printf": output.printf,
    "pushd": _leave_folder,
    "pwd": output.pwd,
    "read": output.read,
    "readarray": output.mapfile,
    "return": _return,
    "set": set_options,
    "shift": _shift,
    "shopt": _shopt,
    "source": source,
    "test": conditions.test,
    "trap": trap,
    "true": _true,
    "unset": unset,
    "wait": _wait,
    **dict.fromkeys(_OTHERS.split(), _other),
}
