"""What commands write wherever they run, what `read` makes of it, and files written by `>`.

What written files hold is known only as long as no program runs that is not read here: it may
change them.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from kthena_components.core.engines.bash.call import Call, path_of, text_of
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.fields import is_plain, separators, unescaped
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell, Way
from kthena_components.core.engines.bash.shell_state import (
    BLANKS,
    FOLDER,
    OUTPUT,
    WRITTEN,
    Array,
    Many,
    is_known,
)
from kthena_components.core.engines.bash.syntax import Parameter, Redirect, Text, Word
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import MaybeText, Unknown

_PERCENT = "\0"
"""Stands for `%%`: no word holds it."""
_INTEGER = regex(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_TARGET = regex(r"([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?", re.DOTALL)
_LATE = Unknown("the output of a command is unknown")
_MOST_NUMBERS = 1000


def echo(call: Call) -> Flow:
    """Write words between blanks."""
    words, end, escapes = list(call.words[1:]), "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        if not call.shell.bash and words[0] != "-n":
            call.write(_LATE)
            return call.shell.done()
        end = "" if "n" in words[0] else end
        escapes = (
            (words[0].rfind("e") > words[0].rfind("E")) if re.search("[eE]", words[0]) else escapes
        )
        del words[0]
    text = " ".join(words)
    if any(isinstance(word, Many) for word in words) or ("\\" in text and not call.shell.bash):
        call.write(_LATE)
    elif escapes and "\\" in text:
        made = unescaped(text) if is_plain(text) and not has_gap(text) else None
        call.write(_LATE if made is None else made + end)
    else:
        call.write(text + end)
    return call.shell.done()


def printf(call: Call) -> Flow:
    """Write words in a format; what is written to a variable (`-v`) is not read."""
    words = list(call.words[1:])
    if words and re.match("-v", words[0]):
        target = words[0][2:] or (words[1] if len(words) > 1 else "")
        if _NAME.fullmatch(target):
            call.shell.state.assign(target, Unknown(f"printf sets {target} to an unknown value"))
        else:
            call.shell.state.forget("printf sets a variable with an unknown name")
        return call.shell.done(Doubt.LIKELY)
    text = formatted(words[1:] if words[:1] == ["--"] else words)
    call.write(_LATE if text is None else text)
    return call.shell.done(Doubt.LIKELY if text is None else 0)


def formatted(words: Sequence[str]) -> str | None:
    """Write words in a format of `%s` and `%%`; None if the result is not known."""
    if not words or not is_known(words[0]) or any(isinstance(word, Many) for word in words):
        return None
    texts = words[0].replace("%%", _PERCENT).split("%s")
    if any("%" in text for text in texts) or not is_plain(words[0]):
        return None
    first, *others = [(unescaped(text) or "").replace(_PERCENT, "%") for text in texts]
    made, rest = "", list(words[1:])
    while True:
        made += first
        for other in others:
            made += (rest.pop(0) if rest else "") + other
        if not rest or not others:
            return made


def pwd(call: Call) -> Flow:
    """Write the folder."""
    folder = call.shell.state.get(FOLDER)
    call.write(folder + "\n" if isinstance(folder, str) else _LATE)
    return call.shell.done()


def _cat(call: Call) -> str | None:
    if len(call.words) == 1:
        return call.stdin
    texts = [text_of(call.shell, path_of(call.shell, word)) for word in call.words[1:]]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if len(known) == len(texts) else None


def _dirname(call: Call) -> str | None:
    if len(call.words) != 2 or call.words[1].startswith("-"):  # noqa: PLR2004 - one path
        return None
    path = call.words[1].rstrip("/")
    head = path.rpartition("/")[0].rstrip("/")
    return (head or ("/" if call.words[1].startswith("/") else ".")) + "\n"


def _seq(call: Call) -> str | None:
    """Return the output of `seq FIRST STEP LAST`; None for options and long sequences."""
    numbers = call.words[1:]
    if not 1 <= len(numbers) <= 3 or not all(map(_INTEGER.fullmatch, numbers)):  # noqa: PLR2004
        return None
    first, last = (1 if len(numbers) == 1 else int(numbers[0])), int(numbers[-1])
    step = int(numbers[1]) if len(numbers) == 3 else 1  # noqa: PLR2004 - first, step, last
    if not step or abs(last - first) // abs(step) > _MOST_NUMBERS:
        return None
    return "".join(f"{n}\n" for n in range(first, last + (1 if step > 0 else -1), step))


def read(call: Call) -> Flow:
    """Set variables to the fields of a line."""
    flags, names, array = _read_arguments(call)
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


def _read_arguments(call: Call) -> tuple[set[str], list[str], str]:
    """Read the words of `read`: the letters of its flags, its variables, and the array of -a."""
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


PROGRAMS: Mapping[str, Callable[[Call], str | None]] = {
    "cat": _cat,
    "dirname": _dirname,
    "seq": _seq,
}
"""Programs whose output is known where their words are."""


_NEW, _MORE = frozenset({">", ">|"}), ">>"
_LOST = Unknown("a program may have changed what the script wrote")
_GAP = Unknown("the script writes a value into it that is not known")


def discards(redirects: Iterable[Redirect]) -> bool:
    """Return whether a command's output goes elsewhere."""
    return any(r.descriptor in {1, -1} and r.mark != "<" for r in redirects)


def with_output(shell: Shell, redirects: Iterable[Redirect], body: Way) -> Flow:
    """Run something whose output goes elsewhere, and note what a file holds then."""
    state = shell.state
    wanted = state.get(OUTPUT)
    outputs = [r for r in redirects if r.descriptor in {1, -1} and r.mark != "<"]
    target = outputs[0] if len(outputs) == 1 and wanted is None else None
    is_file = target is not None and target.descriptor == 1 and target.mark in {*_NEW, _MORE}
    path = _path(shell, target.target) if target is not None and is_file else None
    # Inside of `$(…)`, a path that leaves it would take the file's text for the output.
    state.set(OUTPUT, "" if is_file else None)
    flow = body()
    text = state.get(OUTPUT)
    state.set(OUTPUT, wanted)
    if target is not None and path is not None:
        _note(shell, path, text, adds=target.mark == _MORE)
    elif any(r.mark not in {">&", "<&"} for r in outputs):
        state.set(WRITTEN, _LOST)
    return flow


def _path(shell: Shell, target: Word) -> str | None:
    """Return the path of a file that is written; None if it is not known."""
    plain = all(
        isinstance(p, Text) or (isinstance(p, Parameter) and not p.operator) for p in target
    )
    return path_of(shell, Expander(shell).text(target)) if plain else None


def _note(shell: Shell, path: str, text: object, *, adds: bool) -> None:
    written = shell.state.get(WRITTEN, {})
    if isinstance(written, Unknown):
        return
    before = written.get(path) if adds else ""
    known = isinstance(text, str) and isinstance(before, str) and not has_gap(text)
    made: MaybeText = f"{before}{text}" if known else _GAP
    shell.state.set(WRITTEN, {**written, path: made})
