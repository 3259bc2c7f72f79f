"""`set`: options of the shell, and its parameters."""

import re

from kthena_components.core.engines.bash.call import Call
from kthena_components.core.engines.bash.session import BeyondError
from kthena_components.core.engines.bash.shell import Flow, Shell
from kthena_components.core.engines.bash.state import ARGUMENTS, is_known
from kthena_components.core.values.unknown import Unknown

LETTERS = {"allexport": "a", "errexit": "e", "noglob": "f", "nounset": "u", "pipefail": "pipefail"}
_CHANGING = frozenset({"B", "k", "n", "p", "r", "t", "braceexpand", "noexec", "posix", "keyword"})
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
    if name in _CHANGING or not is_known(name):
        raise BeyondError("its script changes how the shell parses it (set)")
    letter = LETTERS.get(name, name)
    if letter in _FOLLOWED or letter == "pipefail":
        shell.state.set(f"-{letter}", on)
