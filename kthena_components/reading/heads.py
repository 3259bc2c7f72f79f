"""What a YAML document is, by its first lines, found without parsing it.

A folder may hold hundreds of megabytes of definitions that nobody judges. Parsing them only to pass
them over would take nearly all of the time.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

Wanted = Callable[[object, object, str], bool]
"""Whether an object of some apiVersion and kind, written in a text, is worth reading as a whole."""

_BREAKS = ("\r", "\x85", "\u2028", "\u2029")
"""What ends a line in YAML 1.1 beside a line feed: with one, keys may stand where no line seems
to begin."""
_PASSED = r"(?:[ ]*+(?:#[^\n]*+)?\n)*+"
"""Empty lines and comments."""
_END = r"[ ]*+(?:(?<=[ ])#[^\n]*+)?(?:\n|\Z)"


def _stated(key: str, value: str) -> str:
    """Match a line that states a key, the value with or without quotes."""
    quote = f"quote_of_{key}"
    return rf"{key}:[ ]++(?P<{quote}>[\"']?)(?P<{key}>{value})(?P={quote}){_END}"


_VERSION = _stated("apiVersion", r"[A-Za-z0-9][A-Za-z0-9./-]*+")
_KIND = _stated("kind", r"[A-Za-z][A-Za-z0-9]*+")
_HEADS = tuple(
    re.compile(rf"{_PASSED}(?:---{_END}{_PASSED})?(?P<first>){one}{_PASSED}{other}{_PASSED}")
    for one, other in ((_VERSION, _KIND), (_KIND, _VERSION))
)
"""Both keys one after the other, with nothing before them that a quote or a bracket could hold
together, and whatever comes next."""
_INDENTED = (" ", "\t")
"""What would go on with the value of the key before it."""
_DOUBTFUL = re.compile(
    r"\n(?![ \n#]|-[ \n]|(?!(?:apiVersion|kind):)[A-Za-z][A-Za-z0-9_-]*+:(?:[ \n]|\Z)|\Z)"
)
"""A line that begins in the first column with anything but a comment, an item of a list, or a plain
key that is neither of the two."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a document says of itself."""

    version: str
    kind: str
    line: int
    """Lines before the first key."""


def read_head(text: str, wanted: Wanted | None = None) -> Head | None:
    """Read apiVersion and kind of one document; None where that takes a parser.

    A head is what a parser would find, if it can read the document at all: the keys of a map in
    block style all stand in the column of the first one, so no other line can state a key twice or
    spell it otherwise. Everything in doubt is left to the parser: flow style, quotes, tags, anchors
    and merges around the two keys, a key that stands twice, a value that goes on in the next line,
    templates in the first column, and JSON.

    Args:
        text: The document.
        wanted: What is parsed anyway, so that its head is of no use.
    """
    found = _HEADS[0].match(text) or _HEADS[1].match(text)
    if found is None or (wanted is not None and wanted(found["apiVersion"], found["kind"], text)):
        return None
    goes_on = text.startswith(_INDENTED, found.end())
    # From the line feed before it, so that the line after the head is looked at as well.
    if goes_on or _DOUBTFUL.search(text, found.end() - 1) or any(b in text for b in _BREAKS):
        return None
    line = text.count("\n", 0, found.start("first"))
    return Head(version=found["apiVersion"], kind=found["kind"], line=line)
