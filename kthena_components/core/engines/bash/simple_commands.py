"""Simple commands of the grammar's tree: assignments, words, redirections and tests."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kthena_components.core.engines.bash.patterns import plain_text
from kthena_components.core.engines.bash.redirects import REDIRECTS, Found
from kthena_components.core.engines.bash.syntax import (
    Assignment,
    Condition,
    Simple,
    Statement,
    Text,
    Word,
)
from kthena_components.core.engines.bash.words import JoinedError, Node, UnreadError, Words
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

_RESERVED = """
    ! [[ ]] { } case coproc do done elif else esac fi for function if in select then until while
"""
_KEYWORDS = frozenset(_RESERVED.split())
_ASSIGNS = regex(r"[A-Za-z_][A-Za-z0-9_]*(?:\[.*\])?\+?=", re.DOTALL)
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*")
_EXPRESSIONS = frozenset(
    {
        *("binary_expression", "unary_expression", "parenthesized_expression"),
        *("postfix_expression", "ternary_expression"),
    }
)
_IN_LINE = regex(rb"(?:[ \t]|\\\n)*")
_NO_WORDS = frozenset({"subshell", "redirected_statement", "command", "list", "pipeline"})
_MARKS = frozenset({"(", ")", "!", "&&", "||", "<", ">"})


@dataclass(frozen=True, slots=True)
class Commands:
    """Makes the simple commands of one script."""

    words: Words

    def command(self, nodes: Sequence[Node]) -> Simple:
        """Read assignments, words and redirections, which may stand in any order."""
        assignments: list[Assignment] = []
        loose: list[Node] = []
        found = Found([], [], [])
        self._check_lines(nodes)
        for node in nodes:
            if node.type == "variable_assignment" and not loose:
                assignments.append(self.assignment(node))
            elif node.type in REDIRECTS:
                found.read(self.words, node)
            elif node.type != "comment":
                loose.append(node)
        if found.behind:
            raise UnreadError("something follows a here-document in its line")
        loose = sorted((*loose, *found.words), key=lambda node: node.start_byte)
        words = self.joined(loose)
        _check_name(words)
        return Simple(tuple(assignments), words, tuple(found.redirects), _plain(words))

    def _check_lines(self, nodes: Sequence[Node]) -> None:
        """Check that a command stands in one line."""
        for before, node in pairwise(nodes):
            if self.words.touch(before.end_byte, node.start_byte):
                if before.type == "variable_assignment":
                    raise UnreadError("the grammar splits an assignment")
                if before.type in REDIRECTS and node.type not in REDIRECTS:
                    raise UnreadError("the grammar splits a redirection")
            if _IN_LINE.fullmatch(self.words.source, before.end_byte, node.start_byte):
                continue
            if before.type == "variable_assignment":
                raise JoinedError(before.end_byte)
            raise UnreadError("the grammar continues a command in another line")

    def joined(self, nodes: Sequence[Node]) -> tuple[Word, ...]:
        """Read words; nodes that touch are one word, which the grammar cut."""
        spans: list[tuple[int, int]] = []
        for node in nodes:
            if node.type in _NO_WORDS:
                raise UnreadError("a command is in the place of a word")
            if spans and self.words.touch(spans[-1][1], node.start_byte):
                spans[-1] = spans[-1][0], node.end_byte
            else:
                spans.append((node.start_byte, node.end_byte))
        return tuple(self.words.word(start, end) for start, end in spans)

    def assignment(self, node: Node) -> Assignment:
        """Read `NAME=value`."""
        target, sign, *values = node.children
        name, index = self.words.text(target.start_byte, target.end_byte), None
        if target.type == "subscript":
            first, opened, *_, closed = target.children
            name = self.words.text(first.start_byte, first.end_byte)
            index = self.words.expression(opened.end_byte, closed.start_byte)
        if not _NAME.fullmatch(name):
            raise UnreadError("an assignment has no name")
        appends = sign.type == "+="
        if len(values) == 1 and values[0].type == "array":
            inside = [child for child in values[0].children[1:-1] if child.type != "comment"]
            return Assignment(name, (), index, appends, self.joined(inside))
        value = self.words.word(sign.end_byte, node.end_byte)
        return Assignment(name, value, index, appends)

    def declaration(self, nodes: Sequence[Node]) -> Simple:
        """Read `export`, `local` and their like, and `unset`."""
        words: list[Word | Assignment] = []
        loose: list[Node] = []
        self._check_lines(nodes)
        for node in nodes:
            if node.type == "variable_assignment":
                words += self.joined(loose)
                words.append(self.assignment(node))
                loose = []
            elif node.type != "comment":
                loose.append(node)
        return Simple((), (*words, *self.joined(loose)))

    def test(self, nodes: Sequence[Node]) -> Statement:
        """Read `[ … ]` as the command that it is, and `[[ … ]]` as an expression."""
        first, *inside, _ = nodes
        atoms = list(_atoms(inside))
        if first.type == "[":
            words = self.joined(atoms)
            return Simple((), ((Text("[", quoted=True),), *words, (Text("]", quoted=True),)))
        tokens: list[str | Word] = []
        loose: list[Node] = []
        for atom in atoms:
            if atom.type in _MARKS:
                tokens += [*self._operands(loose), atom.type]
                loose = []
            else:
                loose.append(atom)
        return Condition((*tokens, *self._operands(loose)))

    def _operands(self, nodes: Sequence[Node]) -> tuple[str | Word, ...]:
        """Read the words of one comparison; a regular expression is left out."""
        cut = next((i for i, node in enumerate(nodes) if node.type == "=~"), None)
        if cut is None:
            return self.joined(nodes)
        return *self.joined(nodes[:cut]), "=~"


def _atoms(nodes: Sequence[Node]) -> Iterator[Node]:
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if node.type in _EXPRESSIONS:
            waiting += reversed(node.children)
        else:
            yield node


def _plain(words: Sequence[Word]) -> tuple[str, ...]:
    """Return words that stand for themselves; nothing where one does not."""
    texts = [text for text in map(plain_text, words) if text is not None]
    return tuple(texts) if len(texts) == len(words) else ()


def _check_name(words: Sequence[Word]) -> None:
    """Refuse a keyword or an assignment that the grammar took for a command."""
    first = words[0][0] if words and words[0] else None
    if not isinstance(first, Text) or first.quoted:
        return
    if first.text == "time" and len(words[0]) == 1:
        _check_name(words[2 if plain_text(words[1] if words[1:] else ()) == "-p" else 1 :])
    if (first.text in _KEYWORDS and len(words[0]) == 1) or _ASSIGNS.match(first.text):
        raise UnreadError(f"'{first.text[:40]}' is in the place of a command")
