"""A script as a tree of statements and words, checked and small enough to be kept.

`tree.py` and `words.py` make it from the grammar's own tree; everything else only reads it.
Plain words are parsed here: the grammar takes 25 ms to load, and most containers run one command
without any syntax.
"""

from collections.abc import Callable, Mapping
from operator import eq, ge, gt, le, lt, ne

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": eq,
    "-ne": ne,
    "-lt": lt,
    "-le": le,
    "-gt": gt,
    "-ge": ge,
}
"""The operators between two numbers, in `test` and `[[ … ]]`."""


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """Characters that stand for themselves."""

    text: str
    quoted: bool
    bash: bool = False
    """Whether only bash reads it so (`$'…'`)."""


@dataclass(frozen=True, slots=True, eq=False)
class Parameter:
    """`$NAME` or `${…}`."""

    name: str
    quoted: bool
    written: str
    prefix: str = ""
    """`#` for a length, `!` for an indirection."""
    index: "Word | None" = None
    operator: str = ""
    operand: "Word" = ()
    """What stands behind an operator that is read: a default, or a pattern that is taken off."""


@dataclass(frozen=True, slots=True, eq=False)
class Substitution:
    """`$(…)`, or a command in back quotes."""

    body: "Block"
    quoted: bool
    written: str


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """`$((…))`."""

    inside: "Word"
    quoted: bool
    written: str


@dataclass(frozen=True, slots=True, eq=False)
class Opaque:
    """A part of a word that is not read."""

    quoted: bool
    written: str


Piece = Text | Parameter | Substitution | Arithmetic | Opaque
Word = tuple[Piece, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """`NAME=…`, `NAME+=…`, `NAME[…]=…` or `NAME=(…)`."""

    name: str
    value: Word
    index: Word | None = None
    appends: bool = False
    items: tuple[Word, ...] | None = None
    """The words of an array; None for one string."""


@dataclass(frozen=True, slots=True, eq=False)
class Redirect:
    """What one file descriptor is connected with."""

    mark: str
    descriptor: int
    """-1 for both outputs (`&>`)."""
    target: Word
    """A here-document's whole text for `<<`."""
    followed: bool = False
    """Whether words of the command follow it."""


@dataclass(frozen=True, slots=True, eq=False)
class Simple:
    """Assignments, words and redirections. A declaration has assignments among its words."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word | Assignment, ...]
    redirects: tuple[Redirect, ...] = ()
    plain: tuple[str, ...] = ()
    """The words, where all of them stand for themselves."""


@dataclass(frozen=True, slots=True, eq=False)
class Redirected:
    """A compound command with redirections."""

    body: "Statement"
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Pipeline:
    """Commands that run at the same time, each in its own process if there are several."""

    parts: tuple["Statement", ...]
    negated: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """Statements joined by `&&` and `||`, which bind alike and from the left."""

    first: "Statement"
    rest: tuple[tuple[str, "Statement"], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Statements in a row, and whether each runs in the background."""

    items: tuple[tuple["Statement", bool], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Subshell:
    """`( … )`."""

    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class If:
    """Conditions, each with what runs where it holds."""

    branches: tuple[tuple[Block, Block], ...]
    otherwise: Block


@dataclass(frozen=True, slots=True, eq=False)
class While:
    """A loop over a condition."""

    condition: Block
    body: Block
    until: bool


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """A loop over words, or over the parameters."""

    name: str
    words: tuple[Word, ...] | None
    body: Block
    asks: bool
    """Whether it is `select`, which reads its choice."""


@dataclass(frozen=True, slots=True, eq=False)
class Counting:
    """`for ((first; condition; step))`."""

    first: Word
    condition: Word
    step: Word
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Patterns, what runs for each, and how it ends: `;;`, `;&` or `;;&`."""

    subject: Word
    items: tuple[tuple[tuple[Word, ...], Block, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """The definition of a function."""

    name: str
    body: "Statement"
    bash: bool = False
    """Whether it is written as only bash takes it, with the word `function`."""


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """`((…))`."""

    inside: Word


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """`[[ … ]]`: its operators as text, its operands as words."""

    tokens: tuple[str | Word, ...]


Statement = (
    Simple
    | Redirected
    | Pipeline
    | Chain
    | Block
    | Subshell
    | If
    | While
    | For
    | Counting
    | Case
    | Function
    | Evaluation
    | Condition
)


_PLAIN = regex("(?:[A-Za-z0-9_./:@%+,= \ue000-\ue003;\n-]|&&)+")
_LATE = regex("[\ue000-\ue003]")
_WORDS = """
    - case coproc declare do done elif else esac export fi for function if in local readonly select
    then time typeset unset until while
"""
_NOT_PLAIN = frozenset(_WORDS.split())
LONGEST = 1 << 15
"""Characters of the longest script that is read."""


def parse(text: str) -> Block | Unknown:
    """Return a script's statements, or why they are not read."""
    if len(text) > LONGEST:
        return Unknown(f"its script has {len(text)} characters, of which {LONGEST} are read")
    plain = parse_plain(text)
    if plain is not None:
        return plain
    from kthena_components.core.engines.bash.tree import parse_all  # noqa: PLC0415 - it is slow

    return parse_all(text)


def parse_plain(text: str) -> Block | None:
    """Parse commands of plain words with `&&`, `;` and new lines between them; else None."""
    if not _PLAIN.fullmatch(text):
        return None
    found: list[tuple[Statement, bool]] = []
    for line in text.split("\n"):
        parts = line.split(";")
        if not parts[-1].strip(" "):
            parts.pop()  # an empty line, or a separator at the end of one
        for part in parts:
            chain = _chain(part)
            if chain is None:
                return None
            found.append((chain, False))
    return Block(tuple(found)) if found else None


def _chain(text: str) -> Statement | None:
    """Read a list of plain commands joined by `&&` without the grammar; None for anything else."""
    commands: list[Statement] = []
    for part in text.split("&&"):
        words = part.split()
        if not words or "=" in words[0] or words[0] in _NOT_PLAIN:
            return None
        plain = () if _LATE.search(part) else tuple(words)
        commands.append(Simple((), tuple((Text(w, quoted=False),) for w in words), (), plain))
    first, *rest = commands
    return Chain(first, tuple(("&&", one) for one in rest)) if rest else first
