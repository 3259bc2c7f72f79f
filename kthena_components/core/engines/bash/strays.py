"""Options in the place of a command: what follows a line break that no backslash continues."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from kthena_components.core.engines.bash.syntax import Block, Simple, Text

_LINE = re.compile(r"\n[ \t]*--?[A-Za-z]")
_OPTION = re.compile(r"--?[A-Za-z][A-Za-z0-9_.-]*")


def stray_options(text: str, block: Block) -> Iterator[str]:
    """Return options that a script runs as commands, whether or not it gets there.

    A shell ends a command at a line break unless a backslash stands directly in front of it. Behind
    a blank, or at the end of a comment, a backslash continues nothing.
    """
    if not _LINE.search(text):
        return
    for command in _commands(block):
        first = command.words[0] if command.words else ()
        piece = first[0] if isinstance(first, tuple) and first else None
        if isinstance(piece, Text) and not piece.quoted:
            option = _OPTION.match(piece.text)
            if option:
                yield option[0]


def _commands(block: Block) -> Iterator[Simple]:
    waiting: list[object] = [block]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Simple):
            yield node
        if isinstance(node, tuple):
            waiting += reversed(node)
        elif is_dataclass(node):
            waiting += (getattr(node, each.name) for each in fields(node))
