"""What a shell knows by name: its parameters, its variables and those that it sets itself."""

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
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.unknown import OwnAddress, Unknown

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
        return OwnAddress("HOSTNAME is the name of each pod")
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
