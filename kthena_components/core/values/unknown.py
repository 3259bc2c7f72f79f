"""Values that may not be known before the apply, and sums and products of them.

An unknown value is never an error: a rule that meets one raises NotKnownError, of which
core/findings.py makes the finding that it could not check.
"""

from collections.abc import Iterable
from dataclasses import field
from typing import TypeGuard, TypeVar

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

# A Pulumi Output travels through the pure code as text of this form (resources/_outputs.py writes
# it). The private-use characters cannot occur in a legal Kubernetes name or a sane flag.
OUTPUT_OPEN, OUTPUT_CLOSE = "\ue000", "\ue001"
OUTPUT_TOKEN = regex(f"{OUTPUT_OPEN}([0-9]+){OUTPUT_CLOSE}")
UNKNOWN_WORD = f"{OUTPUT_OPEN}0{OUTPUT_CLOSE}"
"""An unknown word of a command line, as text."""
BLANK_WORD = f"{OUTPUT_OPEN}00{OUTPUT_CLOSE}"
"""A placeholder in a word of a command line."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not known yet, and why."""

    because: str


class Blank(str):
    """A string in a file that is replaced before the apply: `${MODEL}`, `<your name>`.

    Messages show the text. The value is unknown.
    """

    __slots__ = ()


class FilledIn(Unknown):
    """A string that a tool or a person replaces before the apply, as a `Blank`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Varying(Unknown):
    """A value that differs between the pods of a template, such as a pod's name or number."""

    name: str = field(default="", compare=False)
    """The variable of some controller with it; empty if it comes from elsewhere."""
    elsewhere: bool = field(default=False, compare=False)
    """Whether a source that is not read may set the variable as well."""
    in_env: bool = field(default=False, compare=False)
    """Whether another variable in the env of the template refers to it."""


class OwnAddress(Varying):
    """The name or the address of the pod itself, which no other pod has."""

    __slots__ = ()


class OwnName(OwnAddress):
    """The name of the pod itself."""

    __slots__ = ()


class NameSuffix(Varying):
    """What follows the last hyphen of the pod's own name: a StatefulSet's ordinal."""

    __slots__ = ()


class NodeAddress(Varying):
    """The address of the node on which a pod runs."""

    __slots__ = ()


class NotKnownError(Exception):
    """A rule needs a value that is not known yet. Whoever runs the rule reports the place."""

    def __init__(self, gap: Unknown, path: str = "") -> None:
        """Keep the reason, and the path of what cannot be checked."""
        self.gap, self.path = gap, path
        super().__init__(path)


@dataclass(frozen=True, slots=True)
class OfController(Unknown):
    """The value of a variable that no env sets, but some controller may."""

    name: str = ""
    elsewhere: bool = False
    """Whether a source that is not read may set it as well."""
    in_env: bool = field(default=False, compare=False)
    """Whether another variable in the env of the template refers to it."""


@dataclass(frozen=True, slots=True)
class NotSet(Unknown):
    """A reference to a variable that no known source sets: Kubernetes leaves it as it is."""

    name: str = ""
    in_shell: bool = False
    """Whether a shell reads it: it is then empty, unless the image sets the variable."""


class SetLater(NotSet):
    """A reference in an env to a variable that follows it there: Kubernetes leaves it as it is."""

    __slots__ = ()


class CommandSubstitution(NotSet):
    """`$(NAME)` in a script, where the shell runs a command NAME, and no such command exists."""

    __slots__ = ()


def changed(value: Unknown) -> Unknown:
    """Return what is known of a value that was computed from another one."""
    return Varying(value.because) if isinstance(value, OwnAddress | NodeAddress) else value


# Placeholders for values that are not known during a preview, one for each type. Source:
# sdk/go/common/resource/plugin/rpc.go in the Pulumi repository.
_PREVIEW_UNKNOWNS = frozenset(
    {
        "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",
        "3eeb2bf0-c639-47a8-9e75-3b44932eb421",
        "04da6b54-80e4-46f7-96ec-b56ff0331ba9",
        "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",
        "030794c1-ac77-496b-92df-f27374a8bd58",
        "e48ece36-62e2-4504-bad9-02848725956a",
        "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",
    }
)
PREVIEW_LENGTH = 36
"""Length of each of them: an ASCII text of another length is known."""
KNOWN_TYPES = frozenset({bool, dict, float, int, list, tuple, type(None)})
"""Types of values that are known as such. Most are of these, and it is quicker to tell than others.
"""

T = TypeVar("T")

MaybeInt = int | Unknown
MaybeText = str | Unknown
MaybeBool = bool | Unknown


def is_known(value: T | Unknown) -> TypeGuard[T]:
    """Return whether a value can be checked."""
    return not isinstance(value, Unknown)


def known(value: T | Unknown, path: str = "") -> T:
    """Return a value that is known; otherwise stop checking this path."""
    if isinstance(value, Unknown):
        raise NotKnownError(value, path)
    return value


def may_be(value: object, *wanted: object) -> bool:
    """Return whether a value is one of some values, or is unknown and may be one of them.

    A comparison with `!=`, `not in` or `is not None` is true for an Unknown. This one is not
    wrong for it.
    """
    return isinstance(value, Unknown) or value in wanted


def is_unresolved(value: object) -> bool:
    """Return whether a value, or a part of a string, is not known before the apply."""
    if type(value) is str and value.isascii():  # most values, and quicker to tell
        return len(value) == PREVIEW_LENGTH and value in _PREVIEW_UNKNOWNS
    if type(value) in KNOWN_TYPES:
        return False
    if not isinstance(value, str):
        return isinstance(value, Unknown)
    if isinstance(value, Blank) or value in _PREVIEW_UNKNOWNS:
        return True
    return OUTPUT_OPEN in value and OUTPUT_TOKEN.search(value) is not None


def show_tokens(text: str) -> str:
    """Replace the characters that stand for unknown values, for a message."""
    return OUTPUT_TOKEN.sub("<output>", text.replace(BLANK_WORD, "<placeholder>"))


def known_sizes(*sizes: MaybeInt) -> list[int]:
    """Return sizes as numbers; stop if one of them is not known."""
    return [known(size) for size in sizes]


def all_known(*sizes: MaybeInt) -> list[int] | Unknown:
    """Return sizes as numbers, or the first unknown one."""
    known: list[int] = []
    for size in sizes:
        if isinstance(size, Unknown):
            return size
        known.append(size)
    return known


# Sums and products of numbers that may be unknown.


def product(*numbers: MaybeInt) -> MaybeInt:
    """Multiply numbers. Zero times anything is zero; otherwise the first unknown is the result."""
    if 0 in numbers:
        return 0
    result = 1
    for number in numbers:
        if isinstance(number, Unknown):
            return number
        result *= number
    return result


def total(numbers: Iterable[MaybeInt]) -> MaybeInt:
    """Add numbers; the first unknown one is the result."""
    result = 0
    for number in numbers:
        if isinstance(number, Unknown):
            return number
        result += number
    return result


def known_product(number: object, size: object) -> int:
    """Multiply two numbers; 0 unless both are known."""
    return number * size if isinstance(number, int) and isinstance(size, int) else 0
