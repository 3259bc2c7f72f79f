"""Simple commands: assignments, functions, commands of the shell, and programs.

Source: POSIX.1-2024, Shell Command Language, 2.9.1.
"""

from collections.abc import Iterable, Sequence

from kthena_components.core.engines.bash.arithmetic import forget_changed
from kthena_components.core.engines.bash.builtins import BUILTINS
from kthena_components.core.engines.bash.call import Call, program
from kthena_components.core.engines.bash.declare import assign, computed, declare
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.fields import plain_text
from kthena_components.core.engines.bash.output import PROGRAMS, discards, with_output
from kthena_components.core.engines.bash.parameters import Numbers
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import FUNCTION, Doubt, Flow, Shell, Way
from kthena_components.core.engines.bash.shell_state import (
    ARGUMENTS,
    MISSING,
    OUTPUT,
    WRITTEN,
    Many,
    Value,
    is_known,
)
from kthena_components.core.engines.bash.syntax import (
    Arithmetic,
    Assignment,
    Function,
    Opaque,
    Parameter,
    Redirect,
    Simple,
    Substitution,
    Word,
)
from kthena_components.core.values.unknown import Unknown

_DECLARERS = frozenset({"declare", "export", "local", "readonly", "typeset"})
_SPECIAL = frozenset({".", ":", "eval", "exec", "export", "readonly", "set", "shift", "unset"})
_BOTH = frozenset({"&>", "&>>"})
_LAST_SURE = 9
"""The last file descriptor that each shell takes in front of a redirection."""
_STAY = frozenset({"break", "continue", "exit", "return"})


def simple(shell: Shell, node: Simple, stdin: str | None = None) -> Flow:
    """Run a simple command."""
    return redirected(shell, node.redirects, lambda: _simple(shell, node, stdin))


def redirected(shell: Shell, redirects: Sequence[Redirect], body: Way) -> Flow:
    """Run a command whose redirections shells may read differently.

    dash takes `22>` for a word and a redirection, and `&>` for the end of a command that it runs
    in the background. Source: POSIX.1-2024, 2.7: descriptors of more than one digit are optional.
    """
    if shell.bash or not redirects:
        return body()
    if any(redirect.descriptor > _LAST_SURE for redirect in redirects):
        raise BeyondError("sh may take a file descriptor of two digits for a word")
    both = [redirect for redirect in redirects if redirect.mark in _BOTH]
    if any(redirect.followed for redirect in both):
        raise BeyondError("sh may take the words behind &> for another command")
    return shell.branch([body, shell.done], Doubt.LIKELY) if both else body()


def _simple(shell: Shell, node: Simple, stdin: str | None) -> Flow:
    """Run one command with its redirections; after `exec >file`, later output is not known."""
    forget_set(shell, node.redirects)
    given = redirected_input(shell, node.redirects)
    body = _Command(shell, node, stdin if given is None else given)
    if not discards(node.redirects):
        return body.run()
    flow = with_output(shell, node.redirects, body.run)
    if body.words == ["exec"]:
        late = Unknown("the output goes elsewhere")
        shell.state.set(WRITTEN, late)
        if shell.state.get(OUTPUT) is not None:
            shell.state.set(OUTPUT, late)
    return flow


def redirected_input(shell: Shell, redirects: Iterable[Redirect]) -> str | None:
    """Return what a command's standard input holds, where its redirections say it."""
    found: str | None = None
    for redirect in redirects:
        if redirect.descriptor or not redirect.mark.startswith("<"):
            continue
        if redirect.mark not in {"<<", "<<<"}:
            found = None
            continue
        text = Expander(shell).text(redirect.target)
        found = text + "\n" if redirect.mark == "<<<" else text
    return found


def forget_set(shell: Shell, redirects: Iterable[Redirect]) -> None:
    """Forget what the names of files may set: here, or in a process of the command's own."""
    for piece in (piece for redirect in redirects for piece in redirect.target):
        if isinstance(piece, Arithmetic):
            forget_changed(Expander(shell).text(piece.inside), Numbers(shell))
        elif isinstance(piece, Parameter) and piece.operator in {"=", ":="}:
            late = Unknown(f"{piece.name} is set in the name of a file")
            shell.state.assign(piece.name, late)


class _Command:
    """One simple command that runs."""

    def __init__(self, shell: Shell, node: Simple, stdin: str | None) -> None:
        self.shell, self.node, self.stdin = shell, node, stdin
        self.words: list[str] = []

    def run(self) -> Flow:
        """Expand its words, and run what they name."""
        node = self.node
        if node.plain and node.plain[0] not in _DECLARERS:
            self.words = list(node.plain)
            return self.prefixed() if node.assignments else self.call({})
        first = node.words[0] if node.words else ()
        name = None if isinstance(first, Assignment) else plain_text(first)
        if name in _DECLARERS:
            self.words = [str(name)]
        else:
            words = [word for word in node.words if not isinstance(word, Assignment)]
            if len(words) < len(node.words):
                raise BeyondError("its script has a declaration that is not read")
            self.words = Expander(self.shell).fields(words)
        if not self.words:
            return self.assign()
        return self.prefixed() if node.assignments else self.call({})

    def assign(self) -> Flow:
        """Set variables; the status comes from the last command substitution."""
        for made in self.node.assignments:
            assign(self.shell, made)
        words = [word for word in self.node.words if not isinstance(word, Assignment)]
        runs = any(map(_substitutes, self.node.assignments)) or any(map(_runs, words))
        return self.shell.done(self.shell.substituted if runs else 0)

    def prefixed(self) -> Flow:
        """Run a command with its own variables."""
        shell, state = self.shell, self.shell.state
        name = self.words[0]
        own = name in BUILTINS or name in _DECLARERS or state.get(f"{name}()")
        assigned: dict[str, Value] = {}
        before: dict[str, Value] = {}
        for made in self.node.assignments:
            # A later one sees an earlier one.
            before.setdefault(made.name, state.noted(made.name))
            before.setdefault(f"export {made.name}", state.get(f"export {made.name}", MISSING))
            state.assign(made.name, computed(shell, made))
            assigned[made.name] = state.noted(made.name)
            state.set(f"export {made.name}", True)
        if not own or name == "exec":
            self.restore(before, ())
        flow = self.call(assigned)
        if own and flow is Flow.GOES:
            self.restore(before, assigned if name in _SPECIAL and not shell.bash else ())
        return flow

    def restore(self, before: dict[str, Value], doubtful: Iterable[str]) -> None:
        """Set variables back; in some shells a few commands keep them."""
        state = self.shell.state
        for key, value in before.items():
            if value is not MISSING:
                state.set(key, value)
            elif all(key not in layer for layer in state.layers[:-1]):
                state.layers[-1].pop(key, None)
        for name in doubtful:
            state.set(name, Unknown(f"whether {name} stays set depends on the shell"))

    def call(self, assigned: dict[str, Value]) -> Flow:
        """Run what the words name."""
        shell, words = self.shell, self.words
        name = words[0]
        if name in _DECLARERS:
            given = self.node.words
            return declare(Call(shell, words, given, assigned, self.stdin))
        call = Call(shell, words, (), assigned, self.stdin)
        if isinstance(name, Many) or not is_known(name):
            shell.shared.follow()
            return program(call)
        function = shell.state.get(f"{name}()")
        if isinstance(function, Unknown):
            raise BeyondError(f"its script calls {name}, which not every path defines")
        if isinstance(function, Function):
            return run_function(shell, function, words)
        return dispatch(call)


def dispatch(call: Call) -> Flow:
    """Run a command of the shell, or a program."""
    name, log = call.words[0], call.shell.shared.log
    is_brief = _is_brief(call.words)
    call.shell.shared.traps |= name == "trap"
    if not is_brief:
        call.shell.shared.follow()
    if name in {"builtin", "command", "time", "nohup!"}:
        return _behind(call)
    if name in BUILTINS:
        return BUILTINS[name](call)
    if name in PROGRAMS and call.known:
        text = PROGRAMS[name](call)
        if text is not None:
            call.write(text)
            return call.shell.done()
    first = len(log)
    flow = program(call)
    if not is_brief and len(log) == first:
        call.shell.state.set(WRITTEN, Unknown(f"{name} may change what the script wrote"))
    return flow


_BRIEF = frozenset(
    [
        *(":", "[", "break", "cd", "continue", "echo", "exit", "false", "printf", "pwd", "return"),
        *("set", "shift", "shopt", "test", "true", "ulimit", "umask", "unset"),
        *("chmod", "date", "env", "hostname", "id", "ls", "mkdir", "nvidia-smi", "whoami"),
    ]
)
_BRIEF_OF_RAY = frozenset({"--version", "list", "status", "summary"})
_LONGEST_PAUSE, _TWO = 600, 2


def _is_brief(words: Sequence[str]) -> bool:
    """Return whether a command surely ends soon, so that what follows it in a script runs."""
    name, argument = words[0], words[1] if len(words) > 1 else ""
    if name == "ray":
        return argument in _BRIEF_OF_RAY
    if name == "sleep":
        return argument.isdecimal() and len(words) == _TWO and int(argument[:9]) <= _LONGEST_PAUSE
    return name in _BRIEF and (name != "env" or len(words) == 1)


def _behind(call: Call) -> Flow:
    """Run the command behind `command`, `builtin` or `time`, which is not a function."""
    rest = list(call.words[1:])
    while rest and rest[0] in {"-p", "--"}:
        del rest[0]
    if not rest:
        return call.shell.done()
    if rest[0] in {"-v", "-V"}:
        call.write(Unknown("the path of a program is unknown"))
        return call.shell.done(Doubt.OPEN)
    inner = Call(call.shell, rest, (), call.assigned, call.stdin)
    if rest[0] in _DECLARERS:
        raise BeyondError("its script has a declaration that is not read")
    function = call.shell.state.get(f"{rest[0]}()")
    if call.words[0] == "time" and isinstance(function, Function):
        return run_function(call.shell, function, rest)
    return dispatch(inner)


def run_function(shell: Shell, function: Function, words: Sequence[str]) -> Flow:
    """Run a function with its own parameters."""
    state, shared = shell.state, shell.shared
    outside = state.get(ARGUMENTS, ())
    shared.enter()

    def body() -> Flow:
        state.set(ARGUMENTS, tuple(words[1:]))
        return shell.run(shell, function.body)

    flow = shell.framed(FUNCTION, body)
    shared.leave()
    state.set(ARGUMENTS, outside)
    return flow


def _substitutes(made: Assignment) -> bool:
    return any(map(_runs, (made.value, *(made.items or ()))))


def _runs(word: Word) -> bool:
    """Return whether a command runs for a part of a word."""
    return any(
        isinstance(piece, Opaque | Substitution)
        or (isinstance(piece, Arithmetic) and _runs(piece.inside))
        or any(_runs(inner) for inner in _operands(piece))
        for piece in word
    )


def _operands(piece: object) -> Iterable[Word]:
    for name in ("operand", "second", "index"):
        inner = getattr(piece, name, None)
        if inner:
            yield inner
