"""Reads what HCL states literally. Anything that Terraform evaluates is an Expression.

Source: hashicorp/hcl v2.24.0, hclsyntax/spec.md (Bodies, Literal Values, Template Expressions).
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

_SPACE = regex(r"(?:[ \t\r]+|#[^\n]*|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_SPACE_LINES = regex(r"(?:\s+|#[^\n]*|//[^\n]*|/\*.*?\*/)+", re.DOTALL)
_NAME = regex(r"[A-Za-z_][\w-]*")
_NUMBER = regex(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_QUOTED = regex(r'"((?:[^"\\\n]|\\.)*)"')
_HEREDOC = regex(r"<<(-?)([A-Za-z_]\w*)[ \t\r]*\n(.*?)^[ \t]*\2[ \t\r]*$", re.DOTALL | re.MULTILINE)
_TEMPLATE = regex(r"(?<!\$)\$\{|(?<!%)%\{")
_ESCAPE = regex(r"\\u([0-9a-fA-F]{4})|\\(.)|([$%])\3\{")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_WORDS = {"true": True, "false": False, "null": None}
_COMPUTED = regex(r"[\[{]\s*for\b")
_OPENS, _CLOSES = "([{", ")]}"
_LEVELS, _MOST_ERRORS = 50, 50


class HclError(ValueError):
    """A string is not understood."""


class _HopelessError(HclError):
    """The text has no end, whichever way it is read."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A value that only Terraform knows."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its arguments."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A block of HCL."""

    kind: str
    labels: tuple[str, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    """Strings, numbers, true, false, null, lists and maps of these, calls and expressions."""
    blocks: list["Block"] = field(default_factory=list)


def blocks_in(text: str, *kinds: str) -> Iterator[Block | HclError]:
    """Yield the outer blocks of some kinds in a file, or why one is not understood."""
    starts = re.compile(rf"^[ \t]*(?:{'|'.join(kinds)})\b[^\n={{]*\{{", re.MULTILINE)
    at = errors = 0
    while errors < _MOST_ERRORS and (found := starts.search(text, at)):
        reader = _Reader(text, found.start())
        try:
            reader.skip(lines=True)
            yield reader.block(0)
            at = reader.at
        except HclError as error:
            yield error
            at, errors = found.end(), errors + 1


def value_of(text: str) -> Any:
    """Read one value; an Expression if it is none that is stated literally."""
    reader = _Reader(f"{text}\n", 0)
    try:
        value = reader.value(0)
    except HclError:
        return Expression(text)
    reader.skip(lines=True)
    return value if reader.at > len(text) else Expression(text)


class _Reader:
    """The reading of a string from a place on."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self.at = text, at

    def skip(self, *, lines: bool = False) -> None:
        found = (_SPACE_LINES if lines else _SPACE).match(self._text, self.at)
        self.at = found.end() if found else self.at

    def block(self, level: int) -> Block:
        """Read a block: its kind, its labels, and what stands in its braces."""
        kind, labels = self._name(), []
        self.skip()
        while not self._take("{"):
            labels.append(self._key())
            self.skip()
        made = Block(kind, tuple(labels))
        self._body(made, level + 1)
        return made

    def _body(self, made: Block, level: int) -> None:
        """Read attributes and blocks up to the closing brace."""
        if level > _LEVELS:
            raise _HopelessError("it has too many levels")
        self.skip(lines=True)
        while not self._take("}"):
            start, name = self.at, self._name()
            self.skip()
            if self._take("="):
                made.attributes[name] = self.value(level)
            else:
                self.at = start
                made.blocks.append(self.block(level))
            self.skip(lines=True)

    def value(self, level: int) -> Any:
        """Read a literal, or take all up to the end of the expression."""
        if level > _LEVELS:
            raise _HopelessError("it has too many levels")
        self.skip()
        start = self.at
        try:
            value = self._term(level)
            end = self.at
            self.skip()
            if self.at >= len(self._text) or self._text[self.at] in ",\n)]}":
                self.at = end
                return value
        except _HopelessError:
            raise
        except HclError:
            pass
        self.at = start
        self._pass_over()
        if self.at == start:
            raise HclError(f"a value is missing at character {start}")
        return Expression(self._text[start : self.at].strip())

    def _term(self, level: int) -> Any:
        """Read a string, a number, or what has parts; expressions are kept as they stand."""
        text = self._text
        if found := _HEREDOC.match(text, self.at):
            self.at = found.end()
            return _written(_unindented(found[3]) if found[1] else found[3], escapes=False)
        if found := _QUOTED.match(text, self.at):
            self.at = found.end()
            return _written(found[1], escapes=True)
        if found := _NUMBER.match(text, self.at):
            self.at = found.end()
            is_whole = found[0].lstrip("-").isdecimal()
            return int(found[0]) if is_whole else float(found[0])
        return self._composed(level + 1)

    def _composed(self, level: int) -> Any:
        """Read a list, a map, a word or a call."""
        if _COMPUTED.match(self._text, self.at):
            raise HclError("it is computed")
        if self._take("["):
            return self._listed("]", lambda: self.value(level))
        if self._take("{"):
            return dict(self._listed("}", lambda: self._pair(level)))
        name = self._name()
        if name in _WORDS:
            return _WORDS[name]
        if self._take("("):
            return Call(name, tuple(self._listed(")", lambda: self.value(level))))
        raise HclError(f"{name} is not a literal")

    def _listed(self, end: str, read: Callable[[], Any]) -> list[Any]:
        """Read items up to `end`, with commas or line ends between them."""
        made: list[Any] = []
        self.skip(lines=True)
        while not self._take(end):
            if self.at >= len(self._text):
                raise _HopelessError("a bracket has no end")
            made.append(read())
            self.skip(lines=True)
            self._take(",")
            self.skip(lines=True)
        return made

    def _pair(self, level: int) -> tuple[str, Any]:
        name = self._key()
        self.skip()
        if _TEMPLATE.search(name) or not (self._take("=") or self._take(":")):
            raise HclError("a key is computed")
        return name, self.value(level)

    def _pass_over(self) -> None:
        """Go to the end of an expression: a line or a comma outside of brackets."""
        open_at, text = 0, self._text
        while self.at < len(text):
            if found := _HEREDOC.match(text, self.at) or self._quoted():
                self.at = found.end()
                continue
            here = text[self.at]
            if not open_at and here in ",\n)]}":
                return
            open_at += (here in _OPENS) - (here in _CLOSES)
            space = _SPACE.match(text, self.at)
            self.at = space.end() if space else self.at + 1
        raise _HopelessError("an expression has no end")

    def _quoted(self) -> re.Match[str] | None:
        """Match a string; one inside of `${…}` may have quotes of its own."""
        found = _QUOTED.match(self._text, self.at)
        if found is None and self._text[self.at] == '"':
            raise HclError("a string has no end")
        return found

    def _key(self) -> str:
        quoted = _QUOTED.match(self._text, self.at)
        self.at = quoted.end() if quoted else self.at
        return quoted[1] if quoted else self._name()

    def _name(self) -> str:
        found = _NAME.match(self._text, self.at)
        if found is None:
            raise HclError(f"a name is missing at character {self.at}")
        self.at = found.end()
        return found[0]

    def _take(self, sign: str) -> bool:
        is_there = self._text.startswith(sign, self.at)
        self.at += is_there
        return is_there


def _written(text: str, *, escapes: bool) -> str | Expression:
    """Return a string without its escapes; one with a template is an expression."""
    if _TEMPLATE.search(text):
        return Expression(text)

    def meant(found: re.Match[str]) -> str:
        if found[3]:
            return found[3] + "{"
        if not escapes:
            return found[0]
        return chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2])

    return _ESCAPE.sub(meant, text)


def _unindented(text: str) -> str:
    lines = text.splitlines(keepends=True)
    least = min((len(each) - len(each.lstrip(" \t")) for each in lines if each.strip()), default=0)
    return "".join(each[least:] if each.strip() else each for each in lines)
