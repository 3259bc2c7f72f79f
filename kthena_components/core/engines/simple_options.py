"""Options without surprises: written in full, with one known value or none.

Most options are like this, and the same ones occur in manifest after manifest, so the results are
cached: they depend on nothing but the dialect. arguments.py reads all other options.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from kthena_components.core.engines.argv import is_flag
from kthena_components.core.engines.options import Dialect, Option, understand
from kthena_components.core.engines.placeholders import has_gap
from kthena_components.core.engines.values import REFUSED, Refused, convert, read_value, stated
from kthena_components.core.values.unknown import is_unresolved

_LONGEST = 80
"""Characters of the longest word that is cached. Messages show such words in full."""


class Plain(NamedTuple):
    """An option and its value."""

    option: Option
    head: str
    """The option as written."""
    taken: int
    """Number of words after it that belong to it."""
    value: Any
    told: Any
    """The value of its field."""
    written: str
    shown: str
    """The value as written; empty for a switch."""


def read_plain(dialect: Dialect, word: str, after: str, *, in_shell: bool) -> Plain | None:
    """Read an option; None if arguments.py has to read it.

    Args:
        dialect: The options that the engine accepts.
        word: The option, perhaps with its value.
        after: The next word; empty if there is none.
        in_shell: Whether a shell has split the words.
    """
    if is_flag(after) or not _is_plain(after):
        after = ""
    return _read(dialect, word, after, in_shell) if _is_plain(word) else None


def _is_plain(word: str) -> bool:
    return len(word) <= _LONGEST and word.isascii() and not is_unresolved(word)


@lru_cache(maxsize=4096)
def _read(dialect: Dialect, word: str, after: str, in_shell: bool) -> Plain | None:
    head, equals, value = word.partition("=")
    meaning = understand(head, dialect)
    option, attached = meaning.option, value if equals else meaning.value
    if option is None or meaning.candidates or meaning.key:
        return None
    if option.arity == "0" and attached is None and option.type != REFUSED:
        return Plain(option, head, 0, not option.off, not option.off, head, "")
    text = after if attached is None else attached
    if option.arity != "1" or not text:
        return None
    read = read_value(option, text, text, in_shell=in_shell)
    if isinstance(read, (Refused, dict, list)):  # a value that could be changed is not shared
        return None
    told = stated(option.use, read) if option.use else read
    taken = 1 if attached is None else 0
    return Plain(option, head, taken, read, told, f"{head} {text}" if taken else word, text)


def rejects_rest(dialect: Dialect, word: str) -> bool:
    """Return whether the engine rejects all that stands behind a flag's `=` as its value."""
    head, _, value = word.partition("=")
    option = understand(head, dialect).option
    read = convert(option, "", value, in_shell=True) if option and not has_gap(word) else None
    return option is not None and (option.arity == "0" or isinstance(read, Refused))
