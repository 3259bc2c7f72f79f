"""What a shell knows by name, and `$NAME` and `${…}`: values, and what an operator makes of them.

Source: POSIX.1-2024, Shell Command Language, 2.6.2; bash's manual, 3.5.3.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kthena_components.core.engines.bash import fields
from kthena_components.core.engines.bash.fields import NEXT, NONE, Chunk, Chunks
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import Doubt, Shell
from kthena_components.core.engines.bash.shell_state import (
    ARGUMENTS,
    BLANKS,
    FILE,
    FOLDER,
    MISSING,
    NAME,
    UNSET,
    Array,
    Many,
    Table,
    Value,
    is_known,
)
from kthena_components.core.engines.bash.syntax import Parameter, Word
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.dataclass import dataclass, replace
from kthena_components.core.values.unknown import (
    NameSuffix,
    NotSet,
    OfController,
    OwnName,
    Unknown,
    Varying,
    changed,
)

if TYPE_CHECKING:
    from kthena_components.core.engines.bash.expand import Expander

_SET = """
    BASH BASHOPTS BASHPID BASH_ARGC BASH_ARGV BASH_COMMAND BASH_EXECUTION_STRING BASH_LINENO
    BASH_REMATCH BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO BASH_VERSION DIRSTACK EPOCHREALTIME
    EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD HOSTTYPE LINENO MACHTYPE OLDPWD OPTARG OPTIND OSTYPE
    PIPESTATUS PPID RANDOM REPLY SECONDS SHELLOPTS SHLVL SRANDOM UID _
"""
_OWN = frozenset(_SET.split())
"""Variables that bash sets while it runs."""
_GIVEN = frozenset({"HOME", "PATH", "TERM", "SHELL", "USER", "LOGNAME"})
"""Variables that a container's runtime or its image sets."""
_DYNAMIC = _OWN - {"OPTARG", "OPTIND", "REPLY", "OLDPWD"}
"""Variables of bash that do not keep what a script assigns."""
_DEFAULTS = frozenset({"-", ":-", "=", ":=", "+", ":+", "?", ":?"})
_TRIMS = frozenset({"#", "##", "%", "%%"})
_READ = _DEFAULTS | _TRIMS


def value_of(shell: Shell, name: str) -> Value | None:
    """Return the value of a variable or a parameter; None if nothing sets it."""
    if not name.isidentifier():
        return _parameter(shell, name)
    noted = shell.state.noted(name)
    if name in _DYNAMIC or (noted is MISSING and name in _OWN):
        return _own(shell, name)
    return _usual(shell, name) if noted is MISSING else noted


def _own(shell: Shell, name: str) -> Value:
    """Return a variable that bash sets itself."""
    late: Value = Unknown(f"the shell sets {name} itself")
    if name == "BASH_SOURCE":
        late = shell.state.get(FILE, late)
    return late


def _usual(shell: Shell, name: str) -> Value | None:
    """Return a variable that the script has not touched."""
    if name == "IFS":
        return BLANKS
    if name == "PWD":
        late = Unknown("the image's working directory is unknown")
        folder: Value = shell.state.get(FOLDER, late)
        return folder
    found = shell.state.given(name)
    if found is None and name == "HOSTNAME":
        return OwnName("HOSTNAME is the name of each pod")
    return Unknown(f"{name} is set by the image") if found is None and name in _GIVEN else found


def _parameter(shell: Shell, name: str) -> Value:
    """Return `$0`, `$1`, `$#` or `$?`."""
    arguments = shell.state.get(ARGUMENTS, ())
    unknown = Unknown(f"the shell computes ${name} when the pod runs")
    if name == "?":
        return unknown if isinstance(shell.status, Doubt) else str(shell.status)
    if name == "0":
        zeroth: Value = shell.state.get(NAME, unknown)
        return zeroth
    if not isinstance(arguments, tuple) or not (name == "#" or name.isdecimal()):
        return unknown
    end = len(arguments) if name == "#" else int(name[:9])
    if any(isinstance(word, Many) for word in arguments[:end]):
        return unknown
    if name == "#":
        return str(end)
    return arguments[end - 1] if end <= len(arguments) else UNSET


def words_of(shell: Shell, name: str) -> tuple[str, ...] | Unknown | None:
    """Return all parameters, or all elements of an array; None if nothing sets it."""
    if name in {"@", "*"}:
        found = shell.state.get(ARGUMENTS, ())
        if isinstance(found, tuple):
            return found
        return Unknown(f"the shell computes ${name} when the pod runs")
    value = value_of(shell, name)
    if isinstance(value, Array):
        return value.words
    if isinstance(value, Table):
        return tuple(text for _, text in value.items) if len(value.items) == 1 else _unordered(name)
    if value is UNSET:
        return ()
    return (value,) if isinstance(value, str) else value if isinstance(value, Unknown) else None


def _unordered(name: str) -> Unknown:
    return Unknown(f"the elements of {name} have no order")


def scalar(value: Value | None) -> Value | None:
    """Return what an array stands for where one value is wanted: its first element."""
    if isinstance(value, Array):
        if value.words and isinstance(value.words[0], Many):
            return Unknown("its first element is unknown")
        return value.words[0] if value.words else UNSET
    if isinstance(value, Table):
        return next((text for key, text in value.items if key == "0"), UNSET)
    return value


@dataclass(slots=True)
class Numbers:
    """The variables of a shell, as its arithmetic sees them."""

    shell: Shell
    because: Unknown | None = None
    """Why one of them is not known."""

    def number_of(self, name: str) -> str | None:
        """Return a variable's text, empty where it is not set; None if it is unknown."""
        value = scalar(value_of(self.shell, name))
        if value is UNSET:
            return ""
        if not isinstance(value, str) or not is_known(value):
            reason = self.shell.shared.scope.read(value) if isinstance(value, str) else value
            late = Unknown(f"{name} has no literal value in this container's env")
            self.because = reason if isinstance(reason, Unknown) else late
            return None
        # Other shells take no expression for a number.
        return value if self.shell.bash or value.strip().lstrip("+-").isalnum() else None

    def forget(self) -> None:
        """Record that any variable may have been set."""
        self.shell.state.forget("the script computes an expression that is not read")

    def set_number(self, name: str, text: str | None) -> None:
        """Set a variable; None if its value is unknown."""
        changed = Unknown(f"{name} is computed by the script")
        found = value_of(self.shell, name)
        whole = isinstance(found, Array | Table)
        self.shell.state.assign(name, changed if text is None or whole else text)


def expand(words: "Expander", piece: Parameter) -> Iterator[Chunks]:
    """Return what stands in place of a parameter."""
    name = piece.name
    if piece.operator and piece.operator not in _READ:
        words.unread(piece.written)
    if piece.prefix == "!":
        target = scalar(value_of(words.shell, name))
        if not isinstance(target, str) or not is_known(target) or not target.isidentifier():
            why = f"its script reads a variable whose name is not known ({piece.written})"
            raise BeyondError(why)
        if piece.index is not None or piece.operator:
            yield words.late(piece)
            return
        name = target
    if not words.shell.bash and _is_bash_only(piece):
        yield words.late(piece, "only bash expands it, and sh may be another shell", many=True)
        return
    index = None if piece.index is None else words.text(piece.index)
    if name in {"@", "*"} or index in {"@", "*"}:
        yield from _several(words, piece, name, joined="*" in {name, index})
        return
    value = (
        _element(words, name, index) if index is not None else scalar(value_of(words.shell, name))
    )
    yield from _one(words, piece, name, value)


def _is_bash_only(piece: Parameter) -> bool:
    """Return whether other shells refuse it, in a subshell perhaps that they alone give up."""
    changes = bool(piece.operator) and piece.operator not in _READ
    return piece.prefix == "!" or piece.index is not None or changes


def _element(words: "Expander", name: str, index: str) -> Value | None:
    """Return one element of an array."""
    value = value_of(words.shell, name)
    if isinstance(value, Table):
        if not is_known(index):
            return Unknown(f"which element of {name} is meant is unknown")
        return next((text for key, text in value.items if key == index), UNSET)
    place = words.computed(index)
    if isinstance(value, Unknown) or value in (None, UNSET):
        return value
    elements = value.words if isinstance(value, Array) else (value,)
    if isinstance(place, Unknown) or any(isinstance(word, Many) for word in elements):
        return Unknown(f"which element of {name} is meant is unknown")
    return elements[place] if -len(elements) <= place < len(elements) else UNSET


def _one(words: "Expander", piece: Parameter, name: str, value: Value | None) -> Iterator[Chunks]:
    """Return what one value becomes."""
    if piece.prefix == "#":
        yield words.late(piece)
    elif piece.operator in _DEFAULTS:
        yield from _with_default(words, piece, name, value)
    elif value is UNSET:
        yield Chunk("", piece.quoted, splits=True)
    elif value is None:
        text = f"{name} has no literal value in this container's env"
        yield words.late(piece, NotSet(text, name, in_shell=True))
    elif isinstance(value, Unknown):
        yield words.late(piece, _cut(words, piece, value))
    elif isinstance(value, str):
        made = value if not piece.operator else _changed(words, piece, value)
        reason = words.shell.shared.scope.read(value)
        late = _cut(words, piece, reason) if isinstance(reason, Unknown) else ""
        yield words.late(piece, late) if made is None else words.inserted(piece, made)


def _with_default(
    words: "Expander", piece: Parameter, name: str, value: Value | None
) -> Iterator[Chunks]:
    """Expand `${NAME:-word}` and the other operators `-`, `+`, `=` and `?`, with or without `:`."""
    many = _spreads(piece.operand)
    late = {":+", ":-"} if many else {":+"}
    if isinstance(value, Unknown):
        state = words.shell.state
        if piece.operator[-1] in "-=" and isinstance(value, OfController | Varying):
            value = replace(value, elsewhere=True)  # where no controller sets it, it has the word
        if piece.operator[-1] == "=" and state.get("-a") and not state.exported(name):
            state.set(f"export {name}", None)  # whether it is set here is unknown
        yield words.late(piece, "" if piece.operator[-1] == "+" else value, many=many)
    elif isinstance(value, str) and has_gap(value) and piece.operator in late:
        yield words.late(piece, many=many)
    else:
        yield from _decided(words, piece, name, value)


def _spreads(word: Word) -> bool:
    """Return whether a word in quotes may make several fields, or none."""
    return any(
        isinstance(piece, Parameter) and (piece.name == "@" or piece.index or piece.operand)
        for piece in word
    )


def _decided(
    words: "Expander", piece: Parameter, name: str, value: Value | None
) -> Iterator[Chunks]:
    """Expand it where it is known whether there is a value."""
    unset = value in (None, UNSET) or (value == "" and piece.operator.startswith(":"))
    mark = piece.operator[-1]
    yield Chunk("", piece.quoted, splits=True)
    if mark == "?" and unset:
        # The script ends if it has no value, so that it has one that is not known here.
        yield words.late(piece, f"{name} has no literal value in this container's env")
    elif unset == (mark == "+"):
        if mark != "+" and isinstance(value, str):
            yield words.inserted(piece, value)
    elif mark == "=":
        text = words.text(piece.operand)
        words.shell.state.assign(name, text)
        yield words.inserted(piece, text)
    else:
        yield from words.chunks(piece.operand, operand=True)


def _cut(words: "Expander", piece: Parameter, value: Unknown) -> Unknown:
    """Return what is known of an unknown value, of which an operator takes something off."""
    if piece.operator == "##" and isinstance(value, OwnName):
        return NameSuffix(value.because) if words.pattern(piece.operand) == "*-" else changed(value)
    return changed(value) if piece.operator else value


def _changed(words: "Expander", piece: Parameter, value: str) -> str | None:
    """Return a value without what an operator takes off; None if the result is not known."""
    if piece.operator not in _TRIMS or not is_known(value):
        return None
    pattern = words.pattern(piece.operand)
    return None if pattern is None else fields.trimmed(value, pattern, piece.operator)


def _several(words: "Expander", piece: Parameter, name: str, *, joined: bool) -> Iterator[Chunks]:
    """Expand `$@`, `$*`, `${A[@]}` and `${A[*]}`."""
    found = words_of(words.shell, name)
    if found is None or isinstance(found, Unknown):
        yield from _missing(words, piece, found, name, joined=joined)
        return
    if piece.prefix == "#":
        many = any(isinstance(word, Many) for word in found)
        yield words.late(piece) if many else Chunk(str(len(found)), piece.quoted, splits=True)
        return
    if piece.operator in {"-", ":-", "+", ":+"} and piece.prefix == "":
        surely = tuple(word for word in found if not isinstance(word, Many))
        empty = not surely or (piece.operator.startswith(":") and surely == ("",))
        if empty and len(surely) < len(found):
            yield words.late(piece, many=True)
            return
        if empty != (piece.operator[-1] == "+"):
            yield from _operand(words, piece)
            return
        if empty:
            yield from _nothing(words, piece, joined=joined or bool(found))
            return
    elif piece.operator:
        yield words.late(piece, many=True)
        return
    yield from _listed(words, piece, found, joined=joined)


def _operand(words: "Expander", piece: Parameter) -> Iterator[Chunks]:
    """Expand what stands behind an operator; in quotes it is a word even if it is empty."""
    yield Chunk("", piece.quoted, splits=True)
    yield from words.chunks(piece.operand, operand=True)


def _nothing(words: "Expander", piece: Parameter, *, joined: bool) -> Iterator[Chunks]:
    """Return what `${A[@]:+…}` makes of an empty array, or of one with an empty string (joined)."""
    if not piece.quoted:
        return
    if joined:
        yield Chunk("", quoted=True)
    elif words.shell.bash:
        yield NONE
    else:
        yield words.late(piece, "shells differ in what it makes", many=True)


def _missing(
    words: "Expander", piece: Parameter, found: Unknown | None, name: str, *, joined: bool
) -> Iterator[Chunks]:
    """Expand a parameter that is not set, or not known, by its operator, such as `:-`."""
    if found is None and piece.operator in {"-", ":-"}:
        yield from _operand(words, piece)
    elif found is None and piece.operator in {"+", ":+"}:
        yield from _nothing(words, piece, joined=joined)
    else:
        late = found or f"{name} has no literal value in this container's env"
        yield words.late(piece, late, many=True)


def _listed(
    words: "Expander", piece: Parameter, found: Sequence[str], *, joined: bool
) -> Iterator[Chunks]:
    """Expand `$@`, `$*` or an array: its words, or one joined word."""
    if joined and piece.quoted:
        ifs = words.shell.state.separators
        if ifs is None or any(isinstance(word, Many) for word in found):
            yield words.late(piece)
        else:
            yield Chunk(ifs[:1].join(found), quoted=True)
        return
    if not piece.quoted and words.shell.state.separators != BLANKS and found:
        yield words.late(piece, many=True)  # shells differ in what becomes of empty ones
        return
    if piece.quoted and not found:
        yield NONE
    for index, word in enumerate(found):
        if index:
            yield NEXT
        if isinstance(word, Many):
            yield Chunk(word, quoted=False)
        else:
            yield words.inserted(piece, word)
