"""Fits texts into columns: their width in cells, and shorter texts for narrow places. Pure."""

import unicodedata

from kthena_components.core.values.safe_text import visible

_WIDE = frozenset("WF")
MORE = "…"


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def fit(text: str, columns: int, more: str = MORE) -> str:
    """Return a text as one visible line, with its middle left out if it is too long.

    Names of nodes and pods differ in their ends.
    """
    text = visible(text)
    if width_of(text) <= columns:
        return text
    room = columns - width_of(more)
    if room <= 0:
        return more[: max(0, columns)]
    tail = room // 2
    return f"{_begin(text, room - tail)}{more}{_end(text, tail)}"


def _begin(text: str, columns: int) -> str:
    taken = 0
    for index, char in enumerate(text):
        taken += _cells(char)
        if taken > columns:
            return text[:index]
    return text


def _end(text: str, columns: int) -> str:
    return _begin(text[::-1], columns)[::-1]


def pad(text: str, columns: int) -> str:
    """Fill a text with spaces up to some columns."""
    return text + " " * (columns - width_of(text))
