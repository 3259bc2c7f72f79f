"""Parses a script with the grammar of tree-sitter-bash, checks it, and finds its commands in it.

The grammar takes some scripts that no shell takes, and cuts a few words wrongly without saying so.
Whatever does not add up is not read (`UnreadError`): the blanks between nodes must be blanks, a
word must end where a shell would end it, and a keyword must not stand as a command.
"""

from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

import tree_sitter
import tree_sitter_bash

from kthena_components.core.engines.bash.statements import Statements
from kthena_components.core.engines.bash.syntax import Block
from kthena_components.core.engines.bash.words import (
    ANCHORS,
    JoinedError,
    Node,
    SkippedError,
    UnreadError,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

_MOST_MARKS = 1000
"""Bars and arrays in a script: the parser's work grows with the square of nested ones."""
_MOST_TRIES = 50
_DEEPEST = 100
_REMEMBERED = 4096
_BLANK = regex(rb"(?:[ \t\n]|\\\n)*")
_ESCAPED = regex(rb"(?:[ \t\n]|\\\n)*\\([ \t])")
"""A blank behind a backslash, which the grammar skips."""
_DASH = regex(rb"(?:[ \t]|\\\n)+(-)(?:[ \t]|\\\n)*")
"""A dash alone, which the grammar skips in front of a here-document or of `2>`."""
_CONTINUES = regex(rb"(?<!\\)((?:\\\\)*)\\\n\Z")
"""A line break that the script's end continues: no shell minds, but the grammar does."""
_NOT_ASCII = regex(rb"[\x80-\xff]")
_INSIDE = frozenset(
    {
        *("string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "regex"),
        *("expansion", "simple_expansion", "arithmetic_expansion", "subscript", "brace_expression"),
        *("heredoc_redirect", "heredoc_body", "binary_expression", "unary_expression"),
        *("postfix_expression", "parenthesized_expression", "ternary_expression"),
    }
)
"""Nodes whose own readers look at every character between their parts."""


@cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse_all(text: str) -> Block | Unknown:
    """Return the statements of a script, or why they are not read."""
    return _parse(text) if len(text) <= _REMEMBERED else _parse.__wrapped__(text)


@lru_cache(maxsize=128)
def _parse(text: str) -> Block | Unknown:
    """Parse a script, mending the lines that the grammar skips or joins until none is left."""
    if "\0" in text or "\r" in text:
        return Unknown("its script has null or carriage return characters")
    if max(text.count("=("), text.count("|")) > _MOST_MARKS:
        return Unknown(f"its script has more than {_MOST_MARKS} pipes or arrays")
    source = _CONTINUES.sub(rb"\1\n", text.encode("utf-8", "replace"))
    for _ in range(_MOST_TRIES):
        try:
            return _read(source)
        except SkippedError as error:
            source = b"%b'%b'%b" % (source[: error.start], error.word, source[error.end :])
        except JoinedError as error:
            source = b"%b;%b" % (source[: error.end], source[error.end + 1 :])
        except (UnreadError, UnicodeDecodeError) as error:
            return Unknown(f"its script is not read: {error}")
    return Unknown(f"its script has more than {_MOST_TRIES} lines that the grammar joins")


def parsed(source: bytes) -> Node:
    """Return the tree of the grammar, unchecked: of some scripts it is wrong."""
    # The scanner of the grammar passes code points above 255 to `isalpha`, which reads outside of
    # the C library's table and ends the process (tree-sitter-bash issue 337, open in 0.25.1). To a
    # shell such a character is part of a word and nothing else, like this control character; each
    # byte has its own, so that positions stay those of `source`.
    return _parser().parse(_NOT_ASCII.sub(b"\x01", source)).root_node


def _read(source: bytes) -> Block:
    root = parsed(source)
    if root.has_error:
        raise UnreadError("it does not follow the grammar")
    _check_blanks((root,), source, 0, len(source))
    anchors = dict(_checked(root, source))
    return Statements(source, anchors).block(root.children)


def _checked(root: Node, source: bytes) -> Iterator[tuple[int, Node]]:
    """Check that nothing was skipped, and return the expansions by where they begin."""
    waiting: list[tuple[Node, int]] = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEEPEST:
            raise UnreadError(f"it is nested more than {_DEEPEST} deep")
        if node.type in ANCHORS:
            yield _begin(node, source), node
        children = node.children
        if children and node.type not in _INSIDE:
            _check_blanks(children, source, node.start_byte, node.end_byte)
        # A list leans left, so that its depth is its length.
        waiting += [(child, depth + (child.type != "list")) for child in children]


def _begin(node: Node, source: bytes) -> int:
    """Return where the text of a node begins, after blanks that the grammar counts to the node."""
    blank = _BLANK.match(source, node.start_byte)
    return blank.end() if blank else node.start_byte


def _check_blanks(children: Sequence[Node], source: bytes, start: int, end: int) -> None:
    at = start
    for child in children:
        if not _BLANK.fullmatch(source, at, child.start_byte):
            raise _skipped(source, at, child.start_byte)
        at = child.end_byte
    if not _BLANK.fullmatch(source, at, end):
        raise _skipped(source, at, end)


def _skipped(source: bytes, start: int, end: int) -> SkippedError | UnreadError:
    if blank := _ESCAPED.match(source, start, end):
        return SkippedError(blank.end() - 2, blank.end(), blank[1])
    if dash := _DASH.fullmatch(source, start, end):
        return SkippedError(*dash.span(1), dash[1])
    return UnreadError("the grammar skipped a part of it")


_COMMANDS = frozenset({"command", "declaration_command", "variable_assignment", "unset_command"})
_QUOTED = frozenset({"string", "raw_string"})
_DEEPEST_COMMAND = 50
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
    """List the commands in a node with their words; a file of a redirection has no words."""
    start, end = at + node.start_byte, at + node.end_byte
    if node.type in _COMMANDS:
        words = tuple(_words(node.children, source, at, depth))
        yield Span(start=start, end=end, words=words)
    elif node.type == "file_redirect" or depth > _DEEPEST_COMMAND:
        yield Span(start=start, end=end)
    else:
        for child in node.children:
            yield from _below(child, source, at, depth + 1)


def _words(children: Sequence[Node], source: bytes, at: int, depth: int) -> Iterator[Span]:
    before = b""
    for child in children:
        start, end = child.start_byte, child.end_byte
        held = _is_script(child, before, children) and depth < _DEEPEST_COMMAND
        found = _commands(source[start + 1 : end - 1], at + start + 1, depth + 1) if held else ()
        yield Span(start=at + start, end=at + end, inner=tuple(found))
        before = source[start:end]


def _is_script(node: Node, before: bytes, among: Sequence[Node]) -> bool:
    """Return whether a word is a script in quotes."""
    held = next(iter(node.children), node) if node.type == "command_name" else node
    quoted = held.type in _QUOTED and node.end_byte - node.start_byte >= _FEWEST
    return quoted and (len(among) == 1 or _RUNS.fullmatch(before) is not None)
