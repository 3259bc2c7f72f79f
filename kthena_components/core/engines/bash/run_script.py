"""Run a shell's script: what a container starts, or what another script starts."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass

from kthena_components.core.engines.bash.builtins import switch
from kthena_components.core.engines.bash.call import block_of
from kthena_components.core.engines.bash.run_statements import run
from kthena_components.core.engines.bash.shared_state import (
    BeyondError,
    BrokenError,
    Run,
    Script,
    SharedState,
)
from kthena_components.core.engines.bash.shell import Shell
from kthena_components.core.engines.bash.shell_state import (
    ARGUMENTS,
    FILE,
    FOLDER,
    NAME,
    RUNNING,
    Many,
    State,
)
from kthena_components.core.engines.bash.syntax import Block, Simple, Text, parse
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import UNKNOWN_WORD, Unknown

SURELY_BASH = frozenset({"bash"})
_FIRST = "BASH_ENV"
"""Names a file that bash reads before a script."""
_CLOSED = regex(
    r"""(?:[^'"`\\$]|\\.|'[^']*'|"(?:[^"\\]|\\.)*"|\$'(?:[^'\\]|\\.)*'|\$(?!['({])|`[^`]*`)*""",
    re.DOTALL,
)
_UNCLEAR = regex(r"<<|#|\$[({]")
_QUOTES = {
    "'": ("a single quote (')", "'"),
    "$'": ("a single quote (')", "'"),
    '"': ('a double quote (")', '"'),
    "`": ("a back quote (`)", "`"),
}

_STRAY_LINE = regex(r"\n[ \t]*--?[A-Za-z]")
_STRAY_OPTION = regex(r"--?[A-Za-z][A-Za-z0-9_.-]*")


def run_script(shared: SharedState, script: Script, started: Run) -> bool:
    """Follow a script; what it starts is noted in `shared`.

    Args:
        shared: What all shells of one container share.
        started: The shell that runs it.

    Returns:
        Whether an engine may run on in the background when the script has ended.

    Raises:
        BeyondError: The script, or a part of it, is not read.
    """
    if script.shell == "zsh":
        raise BeyondError("zsh has its own rules for splitting words, which are not read")
    block, broken = parse(script.text), None
    if isinstance(block, Unknown):
        broken, closing = _open_end(script.text)
        block = parse(script.text + closing) if broken else block
    if isinstance(block, Unknown):
        raise BeyondError(block.because)
    shared.strays += stray_options(script.text, block)
    state = State(started.environment)
    bash = script.shell in SURELY_BASH and "--posix" not in script.options
    shell = Shell(shared, state, bash=bash, run=run)
    words = tuple(Many(word) if word == UNKNOWN_WORD else word for word in script.words)
    state.set(NAME, words[0] if words else script.shell)
    state.set(ARGUMENTS, words[1:])
    state.set(FOLDER, started.folder)
    state.set(RUNNING, started.running)
    if script.file:
        state.set(FILE, script.file)
    _set_options(shell, script.options)
    shared.enter()
    if bash and started.environment.look_up(_FIRST) is not None:
        shell.run(shell, block_of(f'. "${_FIRST}"'))
    shell.run(shell, block)
    shared.leave()
    if broken:
        raise broken
    return state.get(RUNNING) is not False


def _set_options(shell: Shell, options: Sequence[str]) -> None:
    """Set the options that a shell is started with, such as `-e`, `-ux` or `-o pipefail`."""
    at = 0
    while at < len(options):
        option = options[at]
        at += 1
        if not re.fullmatch(r"[-+][A-Za-z]+", option):
            continue
        for letter in option[1:]:
            if letter == "o" and at < len(options):
                switch(shell, options[at], on=option[0] == "-")
                at += 1
            elif letter in "aefuBknt":
                switch(shell, letter, on=option[0] == "-")


def _open_end(text: str) -> tuple[BrokenError | None, str]:
    """Say what a script leaves open at its end, if that is seen, and what closes it."""
    closed = _CLOSED.match(text)
    rest = text[closed.end() :] if closed else ""
    mark = rest[:2] if rest[:2] in _QUOTES else rest[:1]
    if mark in _QUOTES and not _UNCLEAR.search(text):
        inside, closing = _QUOTES[mark]
        return BrokenError(inside, sure=True), closing
    for bracket, closing in (("(", ")"), ("{", "}")):
        if f"${bracket}" in text and not isinstance(parse(text + closing), Unknown):
            return BrokenError(f"a bracket ({bracket})", sure=False), closing
    return None, ""


def stray_options(text: str, block: Block) -> Iterator[str]:
    """Return options that a script runs as commands, whether or not it gets there.

    A shell ends a command at a line break unless a backslash stands directly in front of it. Behind
    a blank, or at the end of a comment, a backslash continues nothing.
    """
    if not _STRAY_LINE.search(text):
        return
    for command in _commands(block):
        first = command.words[0] if command.words else ()
        piece = first[0] if isinstance(first, tuple) and first else None
        if isinstance(piece, Text) and not piece.quoted:
            option = _STRAY_OPTION.match(piece.text)
            if option:
                yield option[0]


def _commands(block: Block) -> Iterator[Simple]:
    """List all simple commands of a script in the order of their text, at any depth."""
    waiting: list[object] = [block]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Simple):
            yield node
        if isinstance(node, tuple):
            waiting += reversed(node)
        elif is_dataclass(node):
            waiting += (getattr(node, each.name) for each in fields(node))
