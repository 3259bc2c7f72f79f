"""Redirections and here-documents of the grammar's tree.

The grammar hangs more on them than belongs there: words behind a redirection are further
destinations of it, and what follows a here-document's delimiter in its line is a part of it.
"""

import re
from collections.abc import Sequence

from kthena_components.core.engines.bash.syntax import Redirect, Text, Word
from kthena_components.core.engines.bash.words import Node, UnreadError, Words
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

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
class Found:
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
        raise UnreadError(f"{text[:20]!r} before a redirection is no file descriptor")
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
