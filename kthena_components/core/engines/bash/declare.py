"""`export`, `readonly`, `local`, `declare`, `typeset` and `unset`."""

import re

from kthena_components.core.engines.bash.assign import computed, is_split
from kthena_components.core.engines.bash.braces import has_braces
from kthena_components.core.engines.bash.call import Call
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.names import value_of
from kthena_components.core.engines.bash.patterns import has_glob
from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell, Status
from kthena_components.core.engines.bash.shell_state import READONLY, UNSET, Array, Table, Value
from kthena_components.core.engines.bash.syntax import Assignment
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

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
            raise BeyondError(f"its script makes {name} an array by names, but it is another one")
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
