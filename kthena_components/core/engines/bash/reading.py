"""`read` and `mapfile`."""

import re

from kthena_components.core.engines.bash.call import Call
from kthena_components.core.engines.bash.chunks import separators
from kthena_components.core.engines.bash.shell import Doubt, Flow
from kthena_components.core.engines.bash.state import BLANKS, Array, is_known
from kthena_components.core.values.unknown import Unknown

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?", re.DOTALL)


def read(call: Call) -> Flow:
    """Set variables to the fields of a line."""
    flags, names, array = _given(call)
    if not call.known:
        call.shell.state.forget("the script reads a variable with an unknown name")
    line = (
        call.stdin.partition("\n")[0] if call.stdin is not None and is_known(call.stdin) else None
    )
    ifs = call.shell.state.separators
    plain = call.known and (flags <= {"r"} or (flags <= {"r", "a"} and call.shell.bash))
    if line is None or not plain or ifs is None or ("\\" in line and "r" not in flags):
        for name in (*names, *([array] if array else ())):
            call.shell.state.assign(name, Unknown(f"the script reads {name} itself"))
        return call.shell.done(Doubt.OPEN)
    if array:
        call.shell.state.assign(array, Array(tuple(_fields(line, ifs, None))))
        return call.shell.done()
    fields = _fields(line, ifs, len(names))
    for name, text in zip(names, [*fields, *[""] * len(names)], strict=False):
        call.shell.state.assign(name, text)
    return call.shell.done()


def _given(call: Call) -> tuple[set[str], list[str], str]:
    flags, names, array = set[str](), list[str](), ""
    words = list(call.words[1:])
    while words:
        word = words.pop(0)
        if word.startswith("-") and not names and word != "--":
            flags.update(word[1:])
            if word[-1] in "adinNptu" and words:
                value = words.pop(0)
                array = value if word[-1] == "a" else array
        elif match := _TARGET.fullmatch(word):
            names.append(match[1])
            flags.update("[" if match[2] else "")
    return flags, names, array if _NAME.fullmatch(array) else ""


def _fields(line: str, ifs: str, most: int | None) -> list[str]:
    """Split a line; the last of so many fields takes the rest with what separates it."""
    blanks = "".join(char for char in ifs if char in BLANKS)
    separator = separators(ifs)
    rest = line.strip(blanks) if blanks else line
    found: list[str] = []
    while rest and (most is None or len(found) + 1 < most):
        match = separator.search(rest) if separator else None
        if match is None:
            found.append(rest)
            return found
        found.append(rest[: match.start()])
        rest = rest[match.end() :]
    if rest and separator:
        # A single separator at the end separates it from nothing.
        match = separator.search(rest)
        if match and match.end() == len(rest):
            rest = rest[: match.start()]
    return [*found, rest] if rest else found


def mapfile(call: Call) -> Flow:
    """Set an array to lines that are not known."""
    words = [word for word in call.words[1:] if _NAME.fullmatch(word)]
    name = words[-1] if words else "MAPFILE"
    call.shell.state.assign(name, Unknown(f"the script reads {name} itself"))
    if not call.known:
        call.shell.state.forget("the script reads a variable with an unknown name")
    return call.shell.done(Doubt.LIKELY)
