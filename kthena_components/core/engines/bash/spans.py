"""Finds the simple commands of a script, and their words, by where they stand in its text."""

from collections.abc import Iterator
from typing import NamedTuple

from kthena_components.core.engines.bash.tree import parsed
from kthena_components.core.engines.bash.words import Node

_COMMANDS = frozenset({"command", "declaration_command", "variable_assignment", "unset_command"})


class Span(NamedTuple):
    """A part of a script."""

    start: int
    """In bytes of UTF-8, as `end`."""
    end: int
    words: tuple["Span", ...] = ()
    """The words of a command, assignments in front included."""

    def text(self, script: str) -> str:
        """Return it as written."""
        return script.encode()[self.start : self.end].decode()

    def removed(self, script: str) -> str:
        """Return the script without it; a command becomes one that does nothing."""
        source = script.encode()
        nothing = b":" if self.words else b""
        return (source[: self.start] + nothing + source[self.end :]).decode()


def commands_of(script: str) -> list[Span]:
    """Return the simple commands and redirections of a script, without those inside of others."""
    return list(_commands(parsed(script)))


def _commands(node: Node) -> Iterator[Span]:
    if node.type in _COMMANDS:
        words = tuple(Span(child.start_byte, child.end_byte) for child in node.children)
        yield Span(node.start_byte, node.end_byte, words)
        return
    if node.type == "file_redirect":
        yield Span(node.start_byte, node.end_byte)
        return
    for child in node.children:
        yield from _commands(child)
