"""Options that are written in full, with one known word or none: each is read once.

Most options of most command lines are such, and the same come up in manifest after manifest. What
one says depends on nothing but the dialect. Whatever else there may be is left to arguments.py.
"""

from functools import lru_cache
from typing import Any, NamedTuple

from kthena_components.core.engines.argv import is_flag
from kthena_components.core.engines.options import Dialect, Option, understand
from kthena_components.core.engines.values import REFUSED, Refused, convert, stated, too_small
from kthena_components.core.values.unknown import is_unresolved

_LONGEST = 80
"""Characters of a word that is remembered, and that messages show as it is."""


class Plain(NamedTuple):
    """What an option says."""

    option: Option
    head: str
    """The option as it is written."""
    taken: int
    """Words behind it that belong to it."""
    value: Any
    told: Any
    """What it states of its field."""
    written: str
    shown: str
    """Its word; empty for a switch."""


def read_plain(dialect: Dialect, word: str, after: str, in_shell: bool) -> Plain | None:
    """Read an option, or leave it alone.

    Args:
        dialect: What the engine accepts.
        word: The option, perhaps with its value.
        after: The word behind it, empty if there is none.
        in_shell: Whether a shell has split them.
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
    read = convert(option, text, text, in_shell=in_shell)
    refused = isinstance(read, Refused) or too_small(option, text, read) is not None
    if refused or isinstance(read, (dict, list)):  # what can be changed is not shared
        return None
    told = stated(option.use, read) if option.use else read
    taken = 1 if attached is None else 0
    return Plain(option, head, taken, read, told, f"{head} {text}" if taken else word, text)
