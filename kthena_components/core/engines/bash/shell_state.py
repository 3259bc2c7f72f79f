"""What a shell knows at one point of a script, as far as it can be known here.

Everything stands in one map, in layers: a branch writes to its own layer, and what the
branches wrote is then compared. A value on which they differ is not known any more.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from posixpath import commonprefix
from typing import Any

from kthena_components.core.engines.bash.shared_state import BeyondError
from kthena_components.core.engines.placeholders import Variables, has_gap
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import MaybeText, Unknown


class Nothing(Enum):
    """A variable that surely does not exist: the script has removed it, or never passed it on."""

    UNSET = "unset"
    MISSING = "missing"
    """Nothing is noted, so that it is as it was when the shell began."""


UNSET, MISSING = Nothing.UNSET, Nothing.MISSING


class Many(str):
    """A word that stands for an unknown number of words, perhaps for none."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Array:
    """An array whose elements stand without gaps."""

    words: tuple[str, ...]

    @property
    def counted(self) -> bool:
        """Whether it is known where each element stands."""
        return not any(isinstance(word, Many) for word in self.words)


@dataclass(frozen=True, slots=True)
class Table:
    """An array by names."""

    items: tuple[tuple[str, str], ...]


Gap = Callable[[str, Unknown], str]
Value = str | Unknown | Nothing | Array | Table

READONLY = "readonly"
_SOMEWHERE = "in a branch of the script"
BLANKS = " \t\n"
ARGUMENTS, NAME, FOLDER, STATUS, OUTPUT = "@", "0", "/", "?", ">"
WRITTEN = "> files"
"""The text of the files that the script has written, by path; Unknown if they may have changed."""
SLEPT = "sleep %"
"""Seconds for which the shell has slept."""
RUNNING, BLOCKED, LIBRARY, FILE, ANY = "&", "&block", ".", "$0", "*"
"""Whether an engine runs in the background; which `ray start` keeps the script from going on;
whether a file that is not known was read, so that names of commands may be its functions; the file
that is read; why any variable may have changed."""


@dataclass(frozen=True, slots=True)
class EnvCommand:
    """An environment with some variables set or removed, as `env` starts a program."""

    around: Variables
    own: Mapping[str, MaybeText | None]

    def look_up(self, name: str) -> MaybeText | None:
        """Return a variable's value; None if nothing sets it."""
        return self.own[name] if name in self.own else self.around.look_up(name)

    def kept(self, name: str) -> bool:
        """Return whether there is surely no such variable."""
        if name in self.own:
            return self.own[name] is None
        return isinstance(self.around, EnvCommand | Passed) and self.around.kept(name)


@dataclass(frozen=True, slots=True)
class Passed:
    """What a shell passes on to a program: its environment and what it has exported."""

    state: "State"
    assigned: Mapping[str, Value]
    """What stands in front of the program's name."""

    def look_up(self, name: str) -> MaybeText | None:
        """Return a variable's value; None if nothing sets it."""
        value = self.assigned.get(name, MISSING)
        value = self.state.noted(name) if value is MISSING else value
        if value is MISSING:
            return self.state.environment.look_up(name)
        exported = True if name in self.assigned else self.state.exported(name)
        if isinstance(value, Array | Table):
            # No environment holds an array.
            value = Unknown(f"{name} is an array of the script")
        if exported is None:
            return Unknown(f"{name} is exported {_SOMEWHERE}")
        return value if exported and isinstance(value, str | Unknown) else None

    def kept(self, name: str) -> bool:
        """Return whether there is surely no such variable: the shell keeps or has removed it."""
        around = self.state.environment
        known = name in self.assigned or self.state.noted(name) is not MISSING
        return known or (isinstance(around, EnvCommand | Passed) and around.kept(name))


@dataclass(slots=True)
class State:
    """Variables, functions, parameters, options and the folder of one shell."""

    environment: Variables
    layers: list[dict[str, Any]] = field(default_factory=lambda: [{}])

    def get(self, key: str, usual: Any = None) -> Any:
        """Return what is noted under a key that is not a variable's."""
        for layer in reversed(self.layers):
            if key in layer:
                return layer[key]
        return usual

    def set(self, key: str, value: Any) -> None:
        """Record something, in the layer of the branch that runs."""
        self.layers[-1][key] = value

    @property
    def separators(self) -> str | None:
        """What splits words (IFS); None if that is not known."""
        found = self.get("IFS", UNSET)
        return found if isinstance(found, str) else BLANKS if found is UNSET else None

    def noted(self, name: str) -> Value:
        """Return what the script has made of a variable, MISSING where it has not touched it."""
        for layer in reversed(self.layers):
            if name in layer or ANY in layer:
                found: Value = layer[name] if name in layer else layer[ANY]
                return found
        return MISSING

    def variable(self, name: str) -> Value | None:
        """Return a variable's value; None if nothing sets it."""
        noted = self.noted(name)
        return self.given(name) if noted is MISSING else noted

    def present(self, key: str) -> Any:
        """Return what is noted under any key."""
        return self.noted(key) if key.isidentifier() else self.get(key, MISSING)

    def given(self, name: str) -> Value | None:
        """Return what the shell was started with; UNSET for what another shell kept to itself."""
        around = self.environment
        found = around.look_up(name)
        kept = found is None and isinstance(around, EnvCommand | Passed) and around.kept(name)
        return UNSET if kept else found

    def exported(self, name: str) -> bool | None:
        """Return whether programs see a variable; None if that is not known."""
        stated = self.get(f"export {name}", MISSING)
        if stated is MISSING and self.get(ANY) is not None:
            return None
        if stated is MISSING:
            return self.environment.look_up(name) is not None
        return stated if isinstance(stated, bool) else None

    def assign(self, name: str, value: Value) -> None:
        """Set a variable."""
        fixed = self.get(f"fixed {name}")
        if fixed is READONLY or isinstance(fixed, Unknown):
            raise BeyondError(f"its script sets {name}, which it has made readonly")
        if fixed:
            value = Unknown(f"{name} may be set by a trap of the script")
        elif self.get(f"typed {name}"):
            value = Unknown(f"the type of {name} changes what is written to it")
        self.layers[-1][name] = value
        if self.get("-a"):
            self.set(f"export {name}", True if self.get("-a") is True else None)

    def forget(self, because: str) -> None:
        """Record that every variable may have been changed, but what splits words."""
        layer = self.layers[-1]
        for name in [key for key in layer if key.isidentifier() and key != "IFS"]:
            del layer[name]
        layer[ANY] = Unknown(because)

    def written(self, depth: int) -> dict[str, Any]:
        """Put together what the layers from a depth on hold."""
        whole: dict[str, Any] = {}
        for layer in self.layers[depth:]:
            if ANY in layer:
                whole = {key: value for key, value in whole.items() if not key.isidentifier()}
            whole.update(layer)
        return whole

    def join(self, ends: Sequence[Mapping[str, Any]], where: str, gap: Gap) -> None:
        """Read how the script's paths may have ended.

        Args:
            ends: What each path has written since it left the others.
            where: What to say of a value on which they differ: "in a branch of the script".
            gap: Leaves a gap for a string that is not known.
        """
        if len(ends) > 1:
            ends = [_joined(self, ends, where, gap)]
        for end in ends:
            if ANY in end:
                self.forget("")
            self.layers[-1].update(end)


def _joined(
    state: State, ends: Sequence[Mapping[str, Any]], where: str, gap: Gap
) -> dict[str, Any]:
    """Join the states at the ends of several paths: a name with different values is unknown."""
    late = next((end[ANY] for end in ends if ANY in end), None)
    whole: dict[str, Any] = {} if late is None else {ANY: late}
    for name in dict.fromkeys(name for end in ends for name in end if name != ANY):
        values = [_value(state, end, name) for end in ends]
        same = all(value is values[0] or value == values[0] for value in values)
        late = Unknown(f"{name} is set {where}")
        whole[name] = values[0] if same else _common(name, values, late, gap)
    return whole


def _common(name: str, values: Sequence[Any], late: Unknown, gap: Gap) -> Any:
    """Keep what a value begins with on every path: branches often add words to a list.

    A flag at the end is left out, since what follows is not only its value.
    """
    if all(isinstance(value, Array) for value in values):
        words = _without_flags(commonprefix([value.words for value in values]))
        return Array((*words, Many(gap(f"${{{name}[@]}}", late)))) if words else late
    if name == ARGUMENTS and all(isinstance(value, tuple) for value in values):
        return (*_without_flags(commonprefix(values)), Many(gap("$@", late)))
    if name.isidentifier() and name != "IFS" and all(isinstance(value, str) for value in values):
        text = commonprefix(values)
        words = _without_flags(text[: text.rfind(" ") + 1].split(" ")[:-1])
        return " ".join((*words, gap(f"${name}", late))) if any(words) else late
    return late


def _without_flags(words: Sequence[str]) -> Sequence[str]:
    while words and (words[-1].startswith("-") or not words[-1]):
        words = words[:-1]
    return words


def _value(state: State, end: Mapping[str, Any], name: str) -> Any:
    if name in end:
        return end[name]
    if not name.isidentifier():
        return state.get(name)
    return end[ANY] if ANY in end else state.variable(name)


def is_known(text: object) -> bool:
    """Return whether all of a string is known."""
    return isinstance(text, str) and not isinstance(text, Many) and not has_gap(text)
