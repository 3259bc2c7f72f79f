"""Reads what a YAML document is from its first lines, without parsing it.

A folder may contain hundreds of megabytes of irrelevant definitions. Parsing them would take nearly
all of the time.
"""

import re
from collections.abc import Callable

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.reading.loader import STR, resolve

Wanted = Callable[[object, object, str], bool]
"""Whether an object of some apiVersion and kind, written in a text, is worth reading as a whole."""

_BREAKS = ("\r", "\x85", "\u2028", "\u2029")
"""Line ends of YAML 1.1 besides the line feed: with them, keys may follow where no line seems to
start.
"""
_PASSED = r"(?>(?:[ ]*+(?:#[^\n]*+)?\n)*)"
"""Empty lines and comments. An atomic group: a possessive one matches too much in Python 3.11.2."""
_END = r"[ ]*+(?:(?<=[ ])#[^\n]*+)?(?:\n|\Z)"


def _stated(key: str, value: str) -> str:
    """Match a line that states a key, with or without quotes around the value."""
    quote = f"quote_of_{key}"
    return rf"{key}:[ ]++(?P<{quote}>[\"']?)(?P<{key}>{value})(?P={quote}){_END}"


_VERSION = _stated("apiVersion", r"[A-Za-z0-9][A-Za-z0-9./-]*+")
_KIND = _stated("kind", r"[A-Za-z][A-Za-z0-9]*+")
_HEADS = tuple(
    regex(rf"{_PASSED}(?:---{_END}{_PASSED})?(?P<first>){one}{_PASSED}{other}{_PASSED}")
    for one, other in ((_VERSION, _KIND), (_KIND, _VERSION))
)
"""Both keys in sequence, with no quote or bracket before them, and the rest."""
_INDENTED = (" ", "\t")
"""Text that would continue the value of the previous key."""
_DOUBTFUL = regex(
    r"\n(?![ \n#]|-[ \n]|(?!(?:apiVersion|kind|items):)[A-Za-z][A-Za-z0-9_-]*+:(?:[ \n]|\Z)|\Z)"
)
"""A line that starts in the first column with anything except a comment, a list item, or another
plain key; or with `items`, which makes a list of any kind.
"""


@dataclass(frozen=True, slots=True)
class Head:
    """The identity of a document."""

    version: str
    kind: str
    line: int
    """Lines before the first key."""


def read_head(text: str, wanted: Wanted | None = None) -> Head | None:
    """Read apiVersion and kind of one document; None if that needs a parser.

    A head is what a parser would find, if it can read the document at all: all keys of a
    block-style map start in the same column, so no other line can state a key again or spell it
    differently. All doubtful cases are left to the parser: flow style, quotes, tags, anchors and
    merges around the two keys, duplicate keys, values that continue in the next line, templates in
    the first column, and JSON.

    Args:
        text: The document.
        wanted: Selects documents that are parsed anyway, so that their head is not needed.
    """
    found = _HEADS[0].match(text) or _HEADS[1].match(text)
    if found is None or (wanted is not None and wanted(found["apiVersion"], found["kind"], text)):
        return None
    if not (_is_text(found, "kind") and _is_text(found, "apiVersion")):
        return None
    goes_on = text.startswith(_INDENTED, found.end())
    # Start at the line feed before it, so that the line after the head is checked, too.
    if goes_on or _DOUBTFUL.search(text, found.end() - 1) or any(b in text for b in _BREAKS):
        return None
    line = text.count("\n", 0, found.start("first"))
    return Head(version=found["apiVersion"], kind=found["kind"], line=line)


def _is_text(found: re.Match[str], key: str) -> bool:
    """Return whether the value of a key is a text, and no number or boolean."""
    return found[f"quote_of_{key}"] != "" or resolve(found[key])[0] == STR
