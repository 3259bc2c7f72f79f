"""Assignments: texts, arrays and tables."""

from collections.abc import Sequence

from kthena_components.core.engines.bash.arithmetic import forget_changed
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.names import Numbers, scalar, value_of
from kthena_components.core.engines.bash.shell import Shell
from kthena_components.core.engines.bash.shell_state import (
    MISSING,
    UNSET,
    Array,
    Many,
    Table,
    Value,
    is_known,
)
from kthena_components.core.engines.bash.syntax import (
    Assignment,
    Parameter,
    Substitution,
    Text,
    Word,
)
from kthena_components.core.values.unknown import Unknown

_LONG = 4096
"""Characters of a value from which on copies of it are counted."""


def assign(shell: Shell, made: Assignment) -> None:
    """Set a variable as an assignment says."""
    shell.state.assign(made.name, computed(shell, made))


def computed(shell: Shell, made: Assignment) -> Value:
    """Return the value that an assignment gives to its variable."""
    if made.items is not None:
        return _array(shell, made)
    text = Expander(shell).text(made.value, assigns=True)
    if made.index is not None:
        return _with_element(shell, made, text)
    if made.appends:
        if not shell.bash:
            return Unknown(f"only bash supports {made.name}+=, and sh may be another shell")
        return _added(shell, made.name, text)
    found = value_of(shell, made.name)
    if isinstance(found, Array | Table):
        return Unknown(f"{made.name} is an array of the script")
    return _room(shell, text)


def _room(shell: Shell, text: str) -> Value:
    scope = shell.shared.scope
    return text if len(text) < _LONG or scope.fits(text) else scope.no_room


def _added(shell: Shell, name: str, text: str) -> Value:
    found = value_of(shell, name)
    if isinstance(found, Array):
        first = scalar(found)
        head = first if isinstance(first, str) else ""
        if not found.counted:
            return Unknown(f"{name} is an array of the script")
        return Array((head + text, *found.words[1:]))
    if isinstance(found, Table):
        return Unknown(f"{name} is an array of the script")
    if isinstance(found, Unknown):
        return _room(shell, shell.gap(f"${name}", found) + text)
    return _room(shell, (found if isinstance(found, str) else "") + text)


def _array(shell: Shell, made: Assignment) -> Value:
    items = made.items or ()
    found = value_of(shell, made.name) if made.appends else UNSET
    if isinstance(found, Table) or shell.state.get(f"table {made.name}"):
        return _table(shell, made.name, items, found)
    if any(map(_has_index, items)):
        return Unknown(f"{made.name} is an array with explicit indices")
    words = tuple(Expander(shell).fields(items))
    if not shell.shared.scope.fits(*words):
        return shell.shared.scope.no_room
    if isinstance(found, Array):
        return Array((*found.words, *words))
    if isinstance(found, Unknown):
        return Array((Many(shell.gap(f"${{{made.name}[@]}}", found)), *words))
    return Array((found, *words) if isinstance(found, str) else words)


def _has_index(item: Word) -> bool:
    first = item[0] if item else None
    return isinstance(first, Text) and not first.quoted and first.text.startswith("[")


def _table(shell: Shell, name: str, items: Sequence[Word], found: Value | None) -> Value:
    """Read `([key]=value …)`."""
    expander = Expander(shell)
    held = dict(found.items) if isinstance(found, Table) else {}
    for item in items:
        first = item[0] if item else None
        if not isinstance(first, Text) or "]=" not in first.text or not _has_index(item):
            return Unknown(f"{name} is an array with unknown keys")
        key, _, rest = first.text[1:].partition("]=")
        held[key] = expander.text((Text(rest, quoted=False), *item[1:]))
    return Table(tuple(held.items()))


def _with_element(shell: Shell, made: Assignment, text: str) -> Value:
    """Return an array of which one element is set."""
    expander = Expander(shell)
    name, index = made.name, expander.text(made.index or ())
    found = value_of(shell, name)
    unknown = Unknown(f"which element of {name} is set is unknown")
    if isinstance(found, Table):
        held = dict(found.items)
        if not is_known(index) or made.appends:
            return unknown
        return Table(tuple({**held, index: text}.items()))
    place = expander.computed(index)
    if not shell.bash:
        forget_changed(index, Numbers(shell))
        return Unknown(f"only bash sets an element of {name}, and sh may be another shell")
    if isinstance(found, str):
        found = Array((found,))
    elif found is None or found is UNSET or found is MISSING:
        found = Array(())
    if (
        not isinstance(found, Array)
        or not found.counted
        or isinstance(place, Unknown)
        or made.appends
    ):
        return unknown
    if not 0 <= place <= len(found.words):
        return unknown
    return Array((*found.words[:place], text, *found.words[place + 1 :]))


def is_split(word: Word) -> bool:
    """Return whether another shell may split what is assigned by a declaration."""
    return any(isinstance(piece, Parameter | Substitution) and not piece.quoted for piece in word)
