"""`$NAME` and `${…}`: values, and what an operator makes of them.

Source: POSIX.1-2024, Shell Command Language, 2.6.2; bash's manual, 3.5.3.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kthena_components.core.engines.bash import fields
from kthena_components.core.engines.bash.fields import NEXT, NONE, Chunk, Chunks
from kthena_components.core.engines.bash.names import scalar, value_of, words_of
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell_state import (
    BLANKS,
    UNSET,
    Array,
    Many,
    Table,
    Value,
    is_known,
)
from kthena_components.core.engines.bash.syntax import Parameter, Word
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.unknown import NotSet, Unknown, changed

if TYPE_CHECKING:
    from kthena_components.core.engines.bash.expand import Expander

_DEFAULTS = frozenset({"-", ":-", "=", ":=", "+", ":+", "?", ":?"})
_TRIMS = frozenset({"#", "##", "%", "%%"})
_READ = _DEFAULTS | _TRIMS


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
        yield words.late(piece, changed(value) if piece.operator else value)
    elif isinstance(value, str):
        made = value if not piece.operator else _changed(words, piece, value)
        reason = words.shell.shared.scope.read(value)
        late = changed(reason) if isinstance(reason, Unknown) else ""
        yield words.late(piece, late) if made is None else words.inserted(piece, made)


def _with_default(
    words: "Expander", piece: Parameter, name: str, value: Value | None
) -> Iterator[Chunks]:
    """Expand `${NAME:-word}` and the other operators `-`, `+`, `=` and `?`, with or without `:`."""
    many = _spreads(piece.operand)
    late = {":+", ":-"} if many else {":+"}
    if isinstance(value, Unknown):
        state = words.shell.state
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
    """Return what `${A[@]:+…}` makes of an empty array, or of one with an empty text (joined)."""
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
