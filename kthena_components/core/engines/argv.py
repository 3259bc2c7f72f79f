"""Decides which words of an argument list are flags and which are values, and groups them.

argparse's rules: CPython's Lib/argparse.py `_parse_optional` and `_get_nargs_pattern`.
"""

from collections.abc import Mapping, Sequence
from functools import cache

from kthena_components.core.engines.options import Option
from kthena_components.core.values.regex import regex

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
