"""Flags of an engine as data, and what a flag on a command line stands for.

A dialect is one engine's list of flags. Nothing here reads values or judges them; `reading.py`
does. argparse's rules are those of CPython's Lib/argparse.py `_parse_optional` and
`_get_option_tuples`, which vLLM and SGLang use as they are.
"""

import difflib
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto

_ATTACHED = re.compile(r"(-[a-z]{2,3})([0-9]+)")
_NEAR = 0.88
"""How alike a misspelt flag must be to the one that was meant (difflib's ratio)."""
MAX_FLAG = 64
"""Characters of the longest flag that is compared with others."""


class Kind(Enum):
    """What a flag takes."""

    SIZE = auto()
    """One integer."""
    LENGTH = auto()
    """One integer, perhaps with a suffix: 8k is 8000, 8K is 8192; `auto` and -1 leave it open."""
    FRACTION = auto()
    """One number."""
    TEXT = auto()
    """One word."""
    MANY = auto()
    """Any number of words."""
    JSON = auto()
    """One JSON object, of which one key matters."""
    SWITCH = auto()
    """Nothing; the flag is the value."""


@dataclass(frozen=True, slots=True)
class Option:
    """One flag of an engine."""

    name: str
    """The spelling to recommend."""
    kind: Kind = Kind.TEXT
    field: str = ""
    """What it states: a field of CommandFacts or a word of the engine's module. Empty: nothing
    that is read here, so that its value is skipped."""
    spellings: tuple[str, ...] = ()
    """Other spellings that the engine accepts."""
    least: int = 1
    """Smallest value of a SIZE."""
    key: str = ""
    """The key of a JSON object that matters."""
    item: Kind = Kind.TEXT
    """What that key holds: SIZE, TEXT or MANY (a list of texts)."""
    counted: bool = False
    """Whether the package states it itself when it writes the command."""
    negatable: bool = False
    """Whether a switch has a `--no-…` that turns it off."""
    off: bool = False
    """Whether this spelling turns a switch off."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """The flags that one engine accepts, and how it accepts them."""

    engine: str
    """The engine's name as its users write it: vLLM."""
    options: Mapping[str, Option]
    """Every spelling to its option."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Spellings of other engines that this one refuses, and what to write."""
    underscores: bool = False
    """Whether `_` may stand for `-` in a flag (vllm/utils/argparse_utils.py)."""
    abbreviates: bool = True
    """Whether a prefix that fits one flag only is accepted (argparse; not Click)."""
    ordered: tuple[str, ...] = ()
    """The spellings in order, so that those with a prefix stand together."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a flag stands for."""

    option: Option | None = None
    candidates: tuple[str, ...] = ()
    """Spellings that an abbreviation fits, when it is one."""
    value: str | None = None
    """A value that hangs on a one-letter flag: the 2 of `-n2`."""
    instead: str = ""
    """What to write, when the engine refuses the flag or does not know it."""
    refused: bool = False
    """Whether the engine surely refuses it. False with `instead`: it is probably misspelt."""


def build_dialect(
    engine: str,
    options: Iterable[Option],
    refused: Mapping[str, str],
    *,
    underscores: bool = False,
    abbreviates: bool = True,
) -> Dialect:
    """Index an engine's options by every spelling, its `--no-…` included."""
    spellings: dict[str, Option] = {}
    for option in options:
        for spelling in (option.name, *option.spellings):
            spellings[spelling] = option
            if option.negatable and spelling.startswith("--"):
                spellings[f"--no-{spelling[2:]}"] = replace(option, off=True)
    return Dialect(
        engine=engine,
        options=spellings,
        refused=refused,
        underscores=underscores,
        abbreviates=abbreviates,
        ordered=tuple(sorted(spellings)),
    )


def understand(flag: str, dialect: Dialect) -> Meaning:
    """Say what a flag stands for. `flag` is the part before any `=`."""
    head, dot, tail = flag.partition(".")
    if dialect.underscores and flag.startswith("--"):
        head = head.replace("_", "-")
    exact = dialect.options.get(head + dot + tail) or _dotted(head, tail, dialect)
    if exact is not None:
        return Meaning(exact)
    refused = _refused(head, dialect)
    if refused is not None:
        return refused
    letter = dialect.options.get(flag[:2])
    if letter is not None and letter.kind is not Kind.SWITCH:
        return Meaning(letter, value=flag[2:])
    candidates = _starting_with(head, dialect) if dialect.abbreviates and not dot else ()
    only = dialect.options[candidates[0]] if len(candidates) == 1 else None
    return Meaning(only, candidates=candidates)


def _refused(flag: str, dialect: Dialect) -> Meaning | None:
    """Find what was meant by a flag that the engine surely refuses."""
    if flag in dialect.refused:
        return Meaning(instead=dialect.refused[flag], refused=True)
    attached = _ATTACHED.fullmatch(flag)
    if attached is not None:
        short = dialect.refused.get(attached[1], attached[1])
        if short in dialect.options:
            return Meaning(value=attached[2], instead=short, refused=True)
    for other in (flag.replace("_", "-"), "--" + flag[2:].replace("-", "_")):
        if flag.startswith("--") and other != flag and other in dialect.options:
            return Meaning(instead=other, refused=True)
    return None


def probably(flag: str, dialect: Dialect) -> Meaning:
    """Find what was meant by a flag that the engine is not known to have."""
    known = [name for name, option in dialect.options.items() if option.field]
    near = difflib.get_close_matches(flag[:MAX_FLAG], known, n=1, cutoff=_NEAR)
    return Meaning(instead="".join(near))


def _dotted(head: str, tail: str, dialect: Dialect) -> Option | None:
    """Read `--speculative-config.num_speculative_tokens` as the JSON object's key."""
    option = dialect.options.get(head)
    if not tail or option is None or option.kind is not Kind.JSON:
        return None
    if tail == option.key and option.item is not Kind.MANY:
        return replace(option, kind=option.item)
    return Option(head)


def _starting_with(prefix: str, dialect: Dialect) -> tuple[str, ...]:
    start = bisect_left(dialect.ordered, prefix)
    end = start
    while end < len(dialect.ordered) and dialect.ordered[end].startswith(prefix):
        end += 1
    return dialect.ordered[start:end]
