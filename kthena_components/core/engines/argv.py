"""Decides which words of an argument list are flags and which are values, and groups them.

argparse's rules: CPython's Lib/argparse.py `_parse_optional` and `_get_nargs_pattern`.
"""

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from kthena_components.core.engines.options import Dialect, Option, understand
from kthena_components.core.engines.placeholders import Scope, has_gap
from kthena_components.core.engines.values import REFUSED, Refused, convert, read_value, stated
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import is_unresolved

_NEGATIVE = regex(r"-[0-9]+|-[0-9]*\.[0-9]+")
_PIECES = regex(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+")
_LATER_FLAG = regex(r"\s--?[A-Za-z]")
_ANY = 1 << 30
_WORDS: Mapping[str, tuple[int, int]] = {"?": (0, 1), "*": (0, _ANY), "+": (1, _ANY)}


def words_of(option: Option) -> tuple[int, int]:
    """Return the smallest and the largest number of values that an option takes."""
    return _counts(option.arity)


@cache
def _counts(arity: str) -> tuple[int, int]:
    return _WORDS.get(arity) or (int(arity), int(arity))


def following(option: Option, items: Sequence[str], at: int) -> list[str]:
    """Return the words after an option that are its values."""
    _, most = words_of(option)
    end = at
    while end < len(items) and end - at < most and not is_flag(items[end]):
        end += 1
    return list(items[at:end])


def is_flag(word: str) -> bool:
    """Tell flags from values as argparse does: `-1` and `-a b` are values."""
    if not word.startswith("-") or len(word) == 1:
        return False
    if word[1] != "-" and _NEGATIVE.fullmatch(word):
        return False
    return " " not in word or " " not in word.partition("=")[0]


def is_line(word: str) -> bool:
    """Tell a line `--a 1 --b 2` in one item from one flag whose value contains blanks."""
    if not word.startswith("-"):
        return False
    first, *rest = word.split(maxsplit=1)
    if not rest:
        return False
    if "=" not in first:
        return True
    return not any(mark in first for mark in "{['\"") and _LATER_FLAG.search(word) is not None


def pieces(line: str) -> list[str]:
    """Split a line of flags as a shell would; an unclosed quote ends with the line."""
    return [_unquoted(piece) for piece in _PIECES.findall(line)]


def _unquoted(piece: str) -> str:
    for mark in "'\"":
        if len(piece) > 1 and piece[0] == piece[-1] == mark:
            return piece[1:-1]
    return piece


def by_flag(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return each flag with the words up to the next one; `--a=b` is the flag --a with one word.

    Words before the first flag count as flags without values.
    """
    found: list[tuple[str, list[str]]] = []
    for word in words:
        flag, equals, value = word.partition("=")
        if word.startswith("-") and not _is_number(word):
            found.append((flag, [value] if equals else []))
        elif found:
            found[-1][1].append(word)
        else:
            found.append((word, []))
    return found


def _is_number(word: str) -> bool:
    return word[1:2].isdecimal() or word[1:3].startswith(".")


# Options without surprises: written in full, with one known value or none.
#
# Most options are like this, and the same ones occur in manifest after manifest, so the results are
# cached: they depend on nothing but the dialect. arguments.py reads all other options.


_LONGEST = 80
"""Characters of the longest word that is cached. Messages show such words in full."""


class WrittenField(NamedTuple):
    """The value of a field on a command line, and the words that state it."""

    head: str
    """The option as written."""
    value: Any
    """The value of the field."""
    written: str
    """The option and its value, as a message shows them."""
    shown: str
    """The value as written; empty for a switch."""


class Plain(NamedTuple):
    """An option and its value."""

    option: Option
    field: str
    """What it sets."""
    taken: int
    """Number of words after it that belong to it."""
    value: Any
    said: WrittenField


def read_plain(dialect: Dialect, word: str, after: str, *, in_shell: bool) -> Plain | None:
    """Read an option; None if arguments.py has to read the word.

    Args:
        dialect: The options that the engine accepts.
        word: The option, perhaps with its value.
        after: The next word; empty if there is none.
        in_shell: Whether a shell has split the words.
    """
    if len(word) > _LONGEST or word[:1] != "-":
        return None
    return _read(dialect, word, after if len(after) <= _LONGEST else "", in_shell)


def _is_plain(word: str) -> bool:
    return word.isascii() and not is_unresolved(word)


@lru_cache(maxsize=4096, typed=True)  # a placeholder is not an equal text
def _read(dialect: Dialect, word: str, after: str, in_shell: bool) -> Plain | None:
    """Read an option whose meaning depends on no other word; None for all others."""
    if not (_is_plain(word) and is_flag(word)) or (is_line(word) and not in_shell):
        return None
    if is_flag(after) or not _is_plain(after):
        after = ""
    head, equals, value = word.partition("=")
    meaning = understand(head, dialect)
    option, attached = meaning.option, value if equals else meaning.value
    if option is None or meaning.candidates or meaning.key:
        return None
    if option.arity == "0" and attached is None and option.type != REFUSED:
        on = not option.off
        return Plain(option, option.field, 0, on, WrittenField(head, on, Scope({}).show(head), ""))
    text = after if attached is None else attached
    if option.arity != "1" or not text or ("$" in text and not in_shell):
        return None
    read = read_value(option, text, text, in_shell=in_shell)
    if isinstance(read, (Refused, dict, list)):  # a value that could be changed is not shared
        return None
    final = stated(option.use, read) if option.use else read
    taken = 1 if attached is None else 0
    written = Scope({}).show(f"{head} {text}" if taken else word)
    return Plain(option, option.field, taken, read, WrittenField(head, final, written, text))


def rejects_rest(dialect: Dialect, word: str) -> bool:
    """Return whether the engine rejects all that stands behind a flag's `=` as its value."""
    head, _, value = word.partition("=")
    option = understand(head, dialect).option
    read = convert(option, "", value, in_shell=True) if option and not has_gap(word) else None
    return option is not None and (option.arity == "0" or isinstance(read, Refused))
