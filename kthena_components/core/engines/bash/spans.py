"""Finds the simple commands of a script, and their words, by where they stand in its text."""

from collections.abc import Iterator, Sequence

from kthena_components.core.engines.bash.tree import parsed
from kthena_components.core.engines.bash.words import Node
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

_COMMANDS = frozenset({"command", "declaration_command", "variable_assignment", "unset_command"})
_QUOTED = frozenset({"string", "raw_string"})
_DEEPEST = 50
"""Levels of statements and scripts that are looked into."""
_FEWEST = 3
"""Characters of a script in quotes, these included."""
_RUNS = regex(rb"-[a-z]*c|--")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A part of a script."""

    start: int
    """In bytes of UTF-8, as `end`."""
    end: int
    words: tuple["Span", ...] = ()
    """The words of a command, assignments in front included."""
    inner: tuple["Span", ...] = ()
    """The commands of a word that is a script itself: behind `sh -c`, or all of the text."""

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
    return list(_commands(script.encode(), 0, 0))


def _commands(source: bytes, at: int, depth: int) -> Iterator[Span]:
    yield from _below(parsed(source), source, at, depth)


def _below(node: Node, source: bytes, at: int, depth: int) -> Iterator[Span]:
    start, end = at + node.start_byte, at + node.end_byte
    if node.type in _COMMANDS:
        words = tuple(_words(node.children, source, at, depth))
        yield Span(start=start, end=end, words=words)
    elif node.type == "file_redirect" or depth > _DEEPEST:
        yield Span(start=start, end=end)
    else:
        for child in node.children:
            yield from _below(child, source, at, depth + 1)


def _words(children: Sequence[Node], source: bytes, at: int, depth: int) -> Iterator[Span]:
    before = b""
    for child in children:
        start, end = child.start_byte, child.end_byte
        held = _is_script(child, before, children) and depth < _DEEPEST
        found = _commands(source[start + 1 : end - 1], at + start + 1, depth + 1) if held else ()
        yield Span(start=at + start, end=at + end, inner=tuple(found))
        before = source[start:end]


def _is_script(node: Node, before: bytes, among: Sequence[Node]) -> bool:
    """Return whether a word is a script in quotes."""
    held = next(iter(node.children), node) if node.type == "command_name" else node
    quoted = held.type in _QUOTED and node.end_byte - node.start_byte >= _FEWEST
    return quoted and (len(among) == 1 or _RUNS.fullmatch(before) is not None)
