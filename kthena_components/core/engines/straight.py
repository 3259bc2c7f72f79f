"""Tells whether a script runs all of its commands, whatever pod it runs in."""

from collections.abc import Sequence

from kthena_components.core.engines.bash.syntax import Chain, Simple, Statement, Text, Word, parse
from kthena_components.core.engines.programs import SHELLS, base_name, shell_operand
from kthena_components.core.values.unknown import Unknown

_LEAVES = frozenset({".", "source", "eval", "exit", "trap", "return"})
"""Words behind which a script may end before its last command, or do something else."""


def runs_straight(argv: Sequence[object]) -> bool:
    """Return whether a command line is a shell's with a text that has no branch and no exit."""
    words = [word for word in argv if isinstance(word, str)]
    if len(words) < len(argv) or not words or base_name(words[0]) not in SHELLS:
        return False
    at, is_text = shell_operand(words, 1)
    read = parse(words[at]) if is_text and at < len(words) else None
    if read is None or isinstance(read, Unknown):
        return False
    return all(_is_straight(statement) for statement, _ in read.items)


def _is_straight(statement: Statement) -> bool:
    if isinstance(statement, Chain):
        parts = (("&&", statement.first), *statement.rest)
        return all(mark == "&&" and _is_straight(part) for mark, part in parts)
    if not isinstance(statement, Simple):
        return False
    first = statement.words[0] if statement.words else ()
    return not statement.words or _names_program(first)


def _names_program(word: object) -> bool:
    """Return whether the first word of a command is a program's name as it stands, or `export`."""
    pieces: Word = word if isinstance(word, tuple) else ()
    text = "".join(piece.text for piece in pieces if isinstance(piece, Text))
    whole = bool(pieces) and all(isinstance(piece, Text) for piece in pieces)
    return whole and text not in _LEAVES and not text.startswith("[") and text != "test"
