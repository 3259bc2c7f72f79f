"""Words of a script: quotes, escapes and expansions.

The grammar's tree says where each bracketed expansion ends (`anchors`); what lies between them is
read here from the text itself, because the grammar's finer nodes lose blanks and cut some words.
"""

import re
from collections.abc import Callable, Mapping

import tree_sitter

from kthena_components.core.engines.bash.fields import unescaped
from kthena_components.core.engines.bash.syntax import (
    Arithmetic,
    Block,
    Opaque,
    Parameter,
    Piece,
    Substitution,
    Text,
    Word,
)
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

Node = tree_sitter.Node
ANCHORS = frozenset(
    {"expansion", "command_substitution", "arithmetic_expansion", "process_substitution"}
)
_READ_TWICE = regex(r"\$\{[^}]*\$'")
"""In a substitution, bash 5.2 reads $'…' inside ${…} twice, and may then find no end of it."""
_NAME = regex(rb"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_ANSI = regex(rb"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_PLAIN = regex(rb"[^\\'\"$`<>;&|() \t\n]+")
_PLAIN_OPERAND = regex(rb"[^\\'\"$`]+")
_PLAIN_DOUBLE = regex(rb"[^\\\"$`]+")
_PLAIN_BODY = regex(rb"[^\\$`]+")
_CONTINUED = regex(rb"(?:\\\n)*")
_CHARACTER = regex(rb"\\(\n|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*)")
_HEAD = regex(
    rb"([#!]?)([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])(?:\[([^\[\]\"'\\`(){}]*)\])?"
    rb"(:[-=?+]|[-=?+]|%%|%|##|#|[/^,:@])?"
)
_TRIMS = frozenset({"%", "%%", "#", "##"})
_DEFAULTS = frozenset({"-", "=", "?", "+", ":-", ":=", ":?", ":+"})


class UnreadError(Exception):
    """A script, or a part of one, that is not read."""


class SkippedError(Exception):
    """Characters of a word that the grammar skips unless they are quoted."""

    def __init__(self, start: int, end: int, word: bytes) -> None:
        super().__init__()
        self.start = start
        """Where they begin."""
        self.end = end
        """Where they end."""
        self.word = word
        """What they mean: a backslash is not part of it."""


class JoinedError(UnreadError):
    """A line of assignments that the grammar joined with the command in the next line."""

    def __init__(self, end: int) -> None:
        super().__init__("the grammar continues a command in another line")
        self.end = end
        """Where the line should have ended."""


@dataclass(slots=True)
class Words:
    """Reads the words of one script."""

    source: bytes
    anchors: Mapping[int, Node]
    block: Callable[[Node], Block]
    """Reads what stands in a command substitution."""

    def text(self, start: int, end: int) -> str:
        """Return a part of the script as it is written."""
        return self.source[start:end].decode()

    def touch(self, end: int, start: int) -> bool:
        """Return whether nothing, or only a continued line, is between two places."""
        return _CONTINUED.fullmatch(self.source, end, start) is not None

    def word(self, start: int, end: int) -> Word:
        """Read a word that stands in the open."""
        return _Scan(self, start, end).word(_PLAIN)

    def document(self, start: int, end: int) -> Word:
        """Read the body of a here-document whose delimiter is not quoted."""
        return _Scan(self, start, end).quoted(_PLAIN_BODY, "$`\\\n")

    def expression(self, start: int, end: int) -> Word:
        """Read an arithmetic expression: quotes in it mean nothing."""
        return _Scan(self, start, end).quoted(_PLAIN_DOUBLE, '$`"\\\n', drops=True)

    def pattern(self, start: int, end: int) -> Word:
        """Read a pattern, or another operand in which blanks are no end."""
        return _Scan(self, start, end).word(_PLAIN_OPERAND)

    def default(self, start: int, end: int, *, quoted: bool) -> Word:
        """Read what stands behind `:-` and its like."""
        if quoted:
            return _Scan(self, start, end).quoted(_PLAIN_DOUBLE, '$`"\\\n}', drops=True)
        return self.pattern(start, end)


@dataclass(slots=True)
class _Scan:
    """Reads one part of the script from left to right."""

    words: Words
    at: int
    end: int

    def word(self, plain: re.Pattern[bytes]) -> Word:
        """Read until the end, outside quotes."""
        found: list[Piece] = []
        while self.at < self.end:
            char = self.words.source[self.at : self.at + 1]
            if text := self._take(plain):
                found.append(Text(text, quoted=False))
            elif char == b"'":
                found.append(Text(self._single(), quoted=True))
            elif char == b'"':
                found += self._double()
            elif char == b"\\":
                found += self._escape(None)
            elif char in b"$`":
                found += self._dollar(quoted=False)
            else:
                found.append(self._process())
        return tuple(found)

    def quoted(self, plain: re.Pattern[bytes], escapable: str, *, drops: bool = False) -> Word:
        """Read until the end, as inside double quotes."""
        found: list[Piece] = []
        while self.at < self.end:
            char = self.words.source[self.at : self.at + 1]
            if text := self._take(plain):
                found.append(Text(text, quoted=True))
            elif char == b"\\":
                found += self._escape(escapable)
            elif char == b'"' and drops:
                self.at += 1
                found.append(Text("", quoted=True))
            elif char in b"$`":
                found += self._dollar(quoted=True)
            else:
                raise UnreadError("it has a quote in an unexpected place")
        return tuple(found)

    def _take(self, pattern: re.Pattern[bytes]) -> str:
        match = pattern.match(self.words.source, self.at, self.end)
        if match is None:
            return ""
        self.at = match.end()
        return match[0].decode()

    def _single(self) -> str:
        close = self.words.source.find(b"'", self.at + 1, self.end)
        if close < 0:
            raise UnreadError("a single quote is not closed")
        text = self.words.text(self.at + 1, close)
        self.at = close + 1
        return text

    def _double(self) -> list[Piece]:
        """Read a double-quoted word from its opening quote to its closing one, with expansions."""
        self.at += 1
        found: list[Piece] = []
        while self.words.source[self.at : self.at + 1] != b'"':
            if self.at >= self.end:
                raise UnreadError("a double quote is not closed")
            char = self.words.source[self.at : self.at + 1]
            if text := self._take(_PLAIN_DOUBLE):
                found.append(Text(text, quoted=True))
            elif char == b"\\":
                found += self._escape('$`"\\\n')
            else:
                found += self._dollar(quoted=True)
        self.at += 1
        return found or [Text("", quoted=True)]

    def _escape(self, escapable: str | None) -> list[Piece]:
        """Read a backslash; escapable are the characters that it quotes, None for all."""
        match = _CHARACTER.match(self.words.source, self.at, self.end)
        if match is None:
            raise UnreadError("a backslash ends a word")
        self.at = match.end()
        char = match[1].decode()
        if escapable is not None and char not in escapable:
            return [Text(f"\\{char}", quoted=True)]
        return [] if char == "\n" else [Text(char, quoted=True)]

    def _dollar(self, *, quoted: bool) -> list[Piece]:
        """Read what begins with `$` or a backquote."""
        source = self.words.source
        anchor = self.words.anchors.get(self.at)
        if anchor is not None and anchor.end_byte <= self.end:
            self.at = anchor.end_byte
            return [_bracketed(self.words, anchor, quoted=quoted)]
        if not quoted and (ansi := _ANSI.match(source, self.at, self.end)):
            self.at = ansi.end()
            text = unescaped(ansi[1].decode())
            if text is None:
                return [Opaque(quoted=True, written=ansi[0].decode())]
            return [Text(text, quoted=True, bash=True)]
        name = _NAME.match(source, self.at, self.end)
        if name is not None:
            self.at = name.end()
            return [Parameter(name[1].decode(), quoted, name[0].decode())]
        following = source[self.at + 1 : self.at + 2] if self.at + 1 < self.end else b""
        if source[self.at : self.at + 1] == b"`" or (following and following in b"({['\""):
            raise UnreadError("an expansion is not closed")
        self.at += 1
        return [Text("$", quoted=True)]

    def _process(self) -> Piece:
        anchor = self.words.anchors.get(self.at)
        if anchor is None or anchor.type != "process_substitution":
            raise UnreadError("a word contains an operator")
        self.at = anchor.end_byte
        return Opaque(quoted=True, written=self.words.text(anchor.start_byte, anchor.end_byte))


def _bracketed(words: Words, node: Node, *, quoted: bool) -> Piece:
    """Read one expansion in brackets."""
    end = node.end_byte
    start = node.start_byte
    while words.source[start : start + 1] in (b" ", b"\t", b"\n"):
        start += 1  # the grammar counts blanks in front of it to some nodes
    written = words.text(start, end)
    if node.type == "arithmetic_expansion":
        inside = (start + 3, end - 2) if written.startswith("$((") else (start + 2, end - 1)
        return Arithmetic(words.expression(*inside), quoted, written)
    if node.type == "expansion":
        return _parameter(words, start, end, quoted=quoted)
    if (written.startswith("`") and "\\" in written) or _READ_TWICE.search(written):
        return Opaque(quoted, written)
    return Substitution(words.block(node), quoted, written)


def _parameter(words: Words, start: int, end: int, *, quoted: bool) -> Piece:
    """Read `${…}`."""
    written = words.text(start, end)
    inside = words.source[start + 2 : end - 1]
    if inside in (b"#", b"!", b"?", b"-", b"$", b"@", b"*"):
        return Parameter(inside.decode(), quoted, written)
    head = _HEAD.match(words.source, start + 2, end - 1)
    # See _READ_TWICE.
    if head is None or b"$'" in inside:
        return Opaque(quoted, written)
    prefix, name, operator = head[1].decode(), head[2].decode(), (head[4] or b"").decode()
    index = None if head[3] is None else words.expression(*head.span(3))
    rest = head.end()
    operand: Word = ()
    if not operator:
        if rest != end - 1:
            return Opaque(quoted, written)
    elif prefix == "#":
        return Opaque(quoted, written)
    elif operator in _DEFAULTS:
        operand = words.default(rest, end - 1, quoted=quoted)
    elif operator in _TRIMS:
        operand = words.pattern(rest, end - 1)
    return Parameter(name, quoted, written, prefix, index, operator, operand)
