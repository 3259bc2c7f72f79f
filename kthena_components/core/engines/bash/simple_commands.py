"""Simple commands of the grammar's tree: assignments, words, redirections and tests."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kthena_components.core.engines.bash.fields import plain_text
from kthena_components.core.engines.bash.syntax import (
    Assignment,
    Condition,
    Redirect,
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
        found = Redirections([], [], [])
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


# Redirections and here-documents of the grammar's tree.
#
# The grammar hangs more on them than belongs there: words behind a redirection are further
# destinations of it, and what follows a here-document's delimiter in its line is a part of it.


REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_QUOTES = regex(r"['\"\\]")
_NUMBER = regex(r"[0-9]{1,9}")
"""More digits may be more than bash's descriptors hold, which makes them a word."""
_DOCUMENT = ["heredoc_start", "heredoc_body", "heredoc_end"]


@dataclass(frozen=True, slots=True)
class Behind:
    """What follows the delimiter of a here-document in its line."""

    mark: str
    node: Node


@dataclass(slots=True)
class Redirections:
    """Redirections of one command, and what the grammar counted to them."""

    redirects: list[Redirect]
    words: list[Node]
    behind: list[Behind]

    def read(self, words: Words, node: Node) -> None:
        """Read one redirection."""
        if words.source[node.start_byte - 1 : node.start_byte] == b"}":
            raise UnreadError("a redirection has its descriptor in a variable")
        if node.type == "heredoc_redirect":
            self._heredoc(words, node)
            return
        descriptor, children = _split(words, node)
        mark, *targets = children
        first, more = _first_word(words, targets)
        self.words += more
        if first is None and not mark.type.endswith("-"):
            raise UnreadError("a redirection has no target")
        usual = 0 if mark.type.startswith("<") else 1
        usual = -1 if mark.type.startswith("&") else usual
        target = words.word(*first) if first else ()
        descriptor = usual if descriptor is None else descriptor
        self.redirects.append(Redirect(mark.type, descriptor, target, followed=bool(more)))

    def _heredoc(self, words: Words, node: Node) -> None:
        """Read a here-document, whose end is checked in the source as well."""
        descriptor, children = _split(words, node)
        mark, start, *rest = children
        if [node.type for node in (start, *rest[-2:])] != _DOCUMENT:
            raise UnreadError("a here-document has no end")
        *behind, _, end = rest
        written = words.text(start.start_byte, start.end_byte)
        delimiter, tabs = _QUOTES.sub("", written), mark.type == "<<-"
        line = words.source.find(b"\n", start.end_byte) + 1
        last = words.source.rfind(b"\n", 0, end.start_byte) + 1
        shown = words.text(last, end.end_byte)
        closes = words.source[end.end_byte : end.end_byte + 1] in {b"", b"\n", b")", b"`"}
        if not closes or not 0 < line <= last or shown.lstrip("\t" * tabs) != delimiter:
            raise UnreadError("a here-document's end is not clear")
        late = any(child.end_byte > line for child in behind)
        if late or f"\n{delimiter}\n" in words.text(line - 1, last):
            raise UnreadError("a here-document begins in another line")
        self._behind(words, behind)
        text = _document(words, line, last, quoted=written != delimiter, tabs=tabs)
        self.redirects.append(Redirect("<<", descriptor or 0, text))

    def _behind(self, words: Words, nodes: Sequence[Node]) -> None:
        """Read what follows a here-document's mark in its line: words, redirections, pipes."""
        waiting = list(nodes)
        while waiting:
            node = waiting.pop(0)
            if node.type in REDIRECTS:
                self.read(words, node)
            elif node.type in {"&&", "||"} and waiting:
                self.behind.append(Behind(node.type, waiting.pop(0)))
            elif node.type == "pipeline":
                marks, parts = node.children[::2], node.children[1::2]
                if any(mark.type not in {"|", "|&"} for mark in marks):
                    raise UnreadError("a pipeline follows a here-document")
                self.behind += [Behind("|", part) for part in parts]
            elif node.is_named:
                self.words.append(node)
            else:
                raise UnreadError("something follows a here-document in its line")


def _split(words: Words, node: Node) -> tuple[int | None, list[Node]]:
    """Return the file descriptor of a redirection, and the rest.

    The grammar also takes words such as -2 and -o2 for a descriptor.
    """
    number, *rest = node.children
    if number.type != "file_descriptor":
        return None, list(node.children)
    text = words.text(number.start_byte, number.end_byte)
    if not _NUMBER.fullmatch(text):
        raise UnreadError(f"{text[:20]!r} before a redirection is not a file descriptor")
    return int(text), rest


def _first_word(words: Words, nodes: Sequence[Node]) -> tuple[tuple[int, int] | None, list[Node]]:
    """Return where the first word stands, of whichever nodes it is made, and the other nodes."""
    if not nodes:
        return None, []
    start, end = nodes[0].start_byte, nodes[0].end_byte
    count = 1
    while count < len(nodes) and words.touch(end, nodes[count].start_byte):
        end = nodes[count].end_byte
        count += 1
    return (start, end), list(nodes[count:])


def _document(words: Words, start: int, end: int, *, quoted: bool, tabs: bool) -> Word:
    """Return the text of a here-document."""
    if not quoted and tabs:
        raise UnreadError("a here-document without its tabs has expansions")
    if not quoted:
        return words.document(start, end)
    text = words.text(start, end)
    text = re.sub(r"(?m)^\t+", "", text) if tabs else text
    return (Text(text, quoted=True),)
