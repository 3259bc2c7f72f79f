"""Assignments, and `export`, `readonly`, `local`, `declare`, `typeset` and `unset`."""

import re
from collections.abc import Sequence

from kthena_components.core.engines.bash.arithmetic import forget_changed
from kthena_components.core.engines.bash.call import Call
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.fields import has_braces, has_glob
from kthena_components.core.engines.bash.parameters import Numbers, scalar, value_of
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell, Status
from kthena_components.core.engines.bash.shell_state import (
    MISSING,
    READONLY,
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
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

# Assignments: strings, arrays and tables.


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
    """Append a string to a variable (`NAME+=text`); for an array, to its first word."""
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
    """Make an array of `NAME=(…)` or `NAME+=(…)`; a scalar becomes the first word."""
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
    """Return the array of a variable with one element set."""
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


_NAME = regex(r"([A-Za-z_][A-Za-z0-9_]*)(?:(\+?=)(.*))?", re.DOTALL)
_ELEMENT = regex(r"([A-Za-z_][A-Za-z0-9_]*)\[")
_TYPES = frozenset("ilucn")


def declare(call: Call) -> Flow:
    """Run a declaration, whose assignments are never split by bash."""
    made = _Declaration(call)
    return made.run()


class _Declaration:
    """One declaration that runs."""

    def __init__(self, call: Call) -> None:
        self.shell: Shell = call.shell
        self.name = call.words[0]
        self.given = call.given
        self.flags: set[str] = set()
        self.off: set[str] = set()
        only_bash = self.name in {"declare", "typeset"} and not self.shell.bash
        self.status: Status = Doubt.LIKELY if only_bash else 0

    def run(self) -> Flow:
        """Expand all of its words, and only then declare what they name."""
        options, found = True, list[tuple[str, Value | None, Assignment | None]]()
        for word in self.given[1:]:
            if isinstance(word, Assignment):
                found.append((word.name, self.assigned(word), word))
                continue
            for field in Expander(self.shell).fields([word]):
                if options and field[:1] in {"-", "+"} and len(field) > 1:
                    (self.flags if field[0] == "-" else self.off).update(field[1:])
                    continue
                options = False
                found.append((field, None, None))
        for name, value, made in found:
            if made is None:
                self.written(name)
            else:
                self.declared(name, value, made)
        return self.shell.done(self.status)

    def assigned(self, made: Assignment) -> Value:
        """Return the value of an assignment among its words."""
        value = computed(self.shell, made)
        if not has_braces(made.value):
            return value
        self.status = Doubt.OPEN
        return Unknown(f"{made.name} is declared with braces")

    def written(self, field: str) -> None:
        """Declare a name that is written as a word: `NAME` or `NAME=value`."""
        match = _NAME.fullmatch(field)
        if match is None or self.flags & {"f", "F", "p"}:
            self.status = Doubt.OPEN
        if self.name == "export" and "f" in self.flags:
            raise BeyondError(f"its script exports a function ({field})")
        if self.flags & {"f", "F", "p"}:
            return
        if match is not None:
            name, sign, text = match.groups()
            value: Value | None = None if sign is None else text
            if sign == "+=" and not isinstance(value_of(self.shell, name), str | None):
                value = Unknown(f"{name} is set by `{self.name}`")
            elif sign == "+=":
                value = str(value_of(self.shell, name) or "") + text
            self.declared(name, value, None)
        elif element := _ELEMENT.match(field):
            late = Unknown(f"a part of {element[1]} is set by `{self.name}`")
            self.declared(element[1], late, None)
        elif has_gap(field):
            shown = self.shell.shared.scope.show(field)
            self.shell.state.forget(f"the script sets the variables that {shown} names")

    def declared(self, name: str, value: Value | None, made: Assignment | None) -> None:
        """Declare a name, and set it where there is a value."""
        shell, state = self.shell, self.shell.state
        if "n" in self.flags and self.name != "export":
            raise BeyondError(f"its script makes {name} a reference to another variable")
        found = value_of(shell, name)
        value = self._scoped(name, value)
        if "A" in self.flags and isinstance(found, Array | str):
            raise BeyondError(
                f"its script declares {name} as an associative array (declare -A), but it is an "
                "indexed one"
            )
        if "A" in self.flags:
            state.set(f"table {name}", True)
            value = Table(()) if value is None or value is UNSET else value
            value = self._table(name, made) or value
        if self.flags & _TYPES and self.name != "export":
            state.set(f"typed {name}", True)
        if not shell.bash and (self.name in {"declare", "typeset"} or self._splits(made, value)):
            value = Unknown(f"how {self.name} sets {name} depends on the shell")
        if value is not None:
            state.assign(name, value)
        if self.name == "export" or "x" in self.flags | self.off:
            off = "n" in self.flags or "x" in self.off
            state.set(f"export {name}", not off)
        if self.name == "readonly" or "r" in self.flags:
            state.set(f"fixed {name}", READONLY)

    def _scoped(self, name: str, value: Value | None) -> Value | None:
        """Make a name local where a declaration does so; return what it is then."""
        if "g" in self.flags:
            return Unknown(f"{name} is set outside the function")
        if self.name in {"declare", "local", "typeset"} and self.shell.make_local(name):
            return self._fresh(name) if value is None else value
        if self.name == "local":
            self.status = Doubt.OPEN
            return Unknown(f"the script declares {name} local outside a function")
        return value

    def _fresh(self, name: str) -> Value:
        """Return what a local variable is before it is set."""
        if not self.shell.bash:
            return Unknown(f"what {name} is before it is set depends on the shell")
        return Array(()) if "a" in self.flags else UNSET

    def _table(self, name: str, made: Assignment | None) -> Value | None:
        """Read the elements again, now that they are known to have names."""
        if made is None or made.items is None:
            return None
        self.shell.state.set(name, Table(()))
        return computed(self.shell, made)

    def _splits(self, made: Assignment | None, value: Value | None) -> bool:
        if made is None or not isinstance(value, str) or not is_split(made.value):
            return False
        return len(value.split()) != 1 or has_glob(value) or has_gap(value)


def unset(call: Call) -> Flow:
    """Remove variables or functions."""
    state = call.shell.state
    functions = "-f" in call.words
    for field in call.words[1:]:
        if field.startswith("-"):
            continue
        match = re.fullmatch(r"([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?", field, re.DOTALL)
        if match is None and has_gap(field):
            state.forget("the script unsets a variable with an unknown name")
        elif match is None:
            continue
        elif functions or (
            state.get(f"{field}()") and value_of(call.shell, field) in (None, UNSET)
        ):
            state.set(f"{field}()", None)
        elif match[2]:
            state.set(match[1], Unknown(f"a part of {match[1]} is removed"))
        else:
            state.assign(field, UNSET)
            state.set(f"export {field}", False)
    return call.shell.done()
