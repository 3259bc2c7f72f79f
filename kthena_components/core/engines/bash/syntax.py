"""A script as a tree of statements and words, checked and small enough to be kept.

`tree.py` and `words.py` make it from the grammar's own tree; everything else only reads it.
"""

from kthena_components.core.values.dataclass import dataclass


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
    """The words of an array; None for one text."""


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
