"""Splits a shell script into commands and words, and expands its variables.

It supports what launch scripts need and does not depend on engines; `script.py` interprets the
words. Every character is read once, so a hostile script costs no more than a long one. Source of
the rules: POSIX.1-2024, Shell Command Language, 2.2 to 2.7.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

from kthena_components.core.engines.placeholders import Scope, arithmetic
from kthena_components.core.values.unknown import Unknown

_PLAIN = re.compile(r"[^ \t\n;&|()<>'\"\\$`#]+")
_PLAIN_QUOTED = re.compile(r"[^\"\\$`]+")
_PLAIN_DEFAULT = re.compile(r"[^ \t\n'\"\\$`]+")
_BLANKS = re.compile(r"[ \t\n]+")
_REDIRECT = re.compile(r"&>>?|<<<|<<-?|<>|>>|>\||[<>]&?")
_SEPARATOR = re.compile(r"\n|;+&?|&&|\|\||\|&|[&|()]")
_ANSI = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL)
_BRACKET = re.compile(r"[(){}'\"\\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*])(?:(:?[-=+?])(.*))?", re.DOTALL)
_MAX_DEPTH = 8


class UnbalancedError(Exception):
    """A script that ends inside a quote or a bracket: no shell runs all of it."""

    def __init__(self, inside: str, *, sure: bool = True) -> None:
        super().__init__(inside)
        self.sure = sure  # not for a bracket, whose content is not parsed


@dataclass(slots=True)
class Lexer:
    """Reads one script from left to right, once."""

    text: str
    scope: Scope
    words: list[str] = field(default_factory=list)
    """Words of the current command."""
    _level: int = 0
    _at: int = 0
    _word: list[str] | None = None
    _redirect: str = ""
    _heredocs: list[str] = field(default_factory=list)

    def commands(self) -> Iterator[tuple[list[str], str]]:
        """Return each command's words and the separator after it.

        A variable that the caller then sets in the scope is visible to later commands.

        Raises:
            UnbalancedError: The script ends inside a quote or a bracket. `words` then contains the
            words of the current command.
        """
        while self._at < len(self.text):
            char = self.text[self._at]
            if self._run(_PLAIN):
                continue
            if char in " \t":
                self._at += 1
                self._end_word()
            elif char in "<>" or self.text.startswith("&>", self._at):
                self._redirection()
            elif char in ";&|()\n":
                yield self._separate()
            elif char == "#" and self._word is None and self._between_words():
                end = self.text.find("\n", self._at)
                self._at = len(self.text) if end < 0 else end
            else:
                self._special(char)
        yield self._end_command(), ""

    def _separate(self) -> tuple[list[str], str]:
        mark = self._take(_SEPARATOR)
        if mark == "(" and self._word and self._word[-1].endswith("="):
            self._word.append(self.scope.gap("(…)", "it is an array of the script"))
        words = self._end_command()
        if mark == "\n":
            self._skip_heredocs()
        return words, mark

    def _end_command(self) -> list[str]:
        self._end_word()
        self._redirect = ""
        words, self.words = self.words, []
        return words

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, self._word = "".join(self._word), None
        if not self._redirect:
            self.words.append(word)
        elif self._redirect in {"<<", "<<-"}:
            self._heredocs.append(word)
        self._redirect = ""

    def _add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def _between_words(self) -> bool:
        return self._at == 0 or self.text[self._at - 1] in " \t\n;&|()<>"

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self._at)
        taken = match[0] if match else ""
        self._at += len(taken)
        return taken

    def _run(self, pattern: re.Pattern[str]) -> bool:
        """Read a run of literal characters."""
        run = self._take(pattern)
        if run:
            self._add(run)
        return bool(run)

    def _skip_heredocs(self) -> None:
        for delimiter in self._heredocs:
            end = re.compile(rf"^\t*{re.escape(delimiter)}$", re.MULTILINE)
            match = end.search(self.text, self._at)
            self._at = match.end() if match else len(self.text)
        self._heredocs.clear()

    def _redirection(self) -> None:
        if self._word and "".join(self._word).isdigit():
            self._word = None
        self._end_word()
        mark = self._take(_REDIRECT)
        self._redirect = mark
        if mark in "<>" and self.text.startswith("(", self._at):
            start, self._at, self._redirect = self._at, self._matching(self._at) + 1, ""
            self._computed(self.text[start : self._at])

    def _special(self, char: str) -> None:
        """Read one quote, escape or expansion."""
        if char == "'":
            end = self._find("'", "a single quote (')")
            self._add(self.text[self._at + 1 : end])
            self._at = end + 1
        elif char == '"':
            self._at += 1
            self._double_quoted()
        elif char == "\\":
            if not self.text.startswith("\n", self._at + 1):
                self._add(self.text[self._at + 1 : self._at + 2])
            self._at += 2
        elif char in "$`":
            self._expansion(quoted=False)
        else:
            self._add(char)
            self._at += 1

    def _double_quoted(self) -> None:
        self._add("")
        while self._run(_PLAIN_QUOTED) or not self.text.startswith('"', self._at):
            char = self.text[self._at : self._at + 1]
            if not char:
                self._open('a double quote (")')
            if char in "\\$`":
                self._escape_or_expand(char)
        self._at += 1

    def _escape_or_expand(self, char: str) -> None:
        """Read what is special inside double quotes, too."""
        if char != "\\":
            self._expansion(quoted=True)
            return
        escaped = self.text[self._at + 1 : self._at + 2]
        if escaped != "\n":
            self._add(escaped if escaped and escaped in '$`"\\' else char + escaped)
        self._at += 2

    def _expansion(self, *, quoted: bool) -> None:
        """Read `$…`, or a command in back quotes."""
        start = self._at
        following = self.text[start + 1 : start + 2]
        name = _NAME.match(self.text, start + 1)
        if self.text[start] == "`":
            self._at = self._find("`", "a back quote (`)") + 1
            self._computed(self.text[start : self._at])
        elif following == "'" and not quoted:
            text = self._take(_ANSI) or self._open("a single quote (')")
            self._add(text[2:-1].replace("\\'", "'"))  # other escapes stay unchanged
        elif name:
            self._at = name.end()
            self._insert(self.scope.insert(name[0], f"${name[0]}"), quoted=quoted)
        elif following == "(":
            self._at = self._matching(start + 1) + 1
            inside = self.text[start + 2 : self._at - 1]
            if inside.startswith("(") and inside.endswith(")"):
                self._add(arithmetic(inside[1:-1], self.scope))
            else:
                self._computed(self.text[start : self._at])
        elif following == "{":
            self._parameter(start, quoted=quoted)
        elif following and following in "0123456789@*#?!$-":
            self._at += 2
            self._positional(following, quoted=quoted)
        else:
            self._add("$")
            self._at += 1

    def _computed(self, written: str) -> None:
        because = f"the shell computes {self.scope.show(written)} when the pod runs"
        self._add(self.scope.gap(written, because))

    def _parameter(self, start: int, *, quoted: bool) -> None:
        """Read `${…}`: a name, or one with a default; any other form is a gap."""
        # Inside double quotes, a single quote in a default is literal.
        self._at = self._matching(start + 1, '"' if quoted else "'\"") + 1
        written = self.text[start : self._at]
        match = _PARAMETER.fullmatch(written[2:-1])
        named = match is not None and _NAME.fullmatch(match[1]) is not None
        if match is None or self._level == _MAX_DEPTH or (match[2] and not named):
            self._computed(written)
        elif not named:
            self._positional(match[1], quoted=quoted)
        elif not match[2] or match[2].endswith("?"):
            self._insert(self.scope.insert(match[1], written), quoted=quoted)
        else:
            self._with_default(match, written, quoted=quoted)

    def _with_default(self, match: re.Match[str], written: str, *, quoted: bool) -> None:
        """Expand `${NAME:-default}`, `${NAME:=default}` and `${NAME:+instead}`."""
        value = self.scope.look_up(match[1])
        unset = value is None or (match[2].startswith(":") and value == "")
        if isinstance(value, Unknown) or (not unset and not match[2].endswith("+")):
            self._insert(self.scope.insert(match[1], written), quoted=quoted)
        elif unset != match[2].endswith("+"):
            self._nested(match[3], quoted=quoted)

    def _nested(self, text: str, *, quoted: bool) -> None:
        """Read a default into the surrounding word."""
        around, self.text, self._at = (self.text, self._at), text, 0
        self._level += 1
        while self._at < len(self.text):
            char = self.text[self._at]
            if self._run(_PLAIN_QUOTED if quoted else _PLAIN_DEFAULT):
                continue
            if self._take(_BLANKS):
                self._end_word()
            elif quoted and char != '"':
                self._escape_or_expand(char)
            else:
                self._special(char)
        self._level -= 1
        self.text, self._at = around

    def _positional(self, name: str, *, quoted: bool) -> None:
        """Expand `$0`, `$1`, `$@`. The shell's special parameters are gaps."""
        given, number = self.scope.positional, name.isdigit() and len(name) < _MAX_DEPTH
        texts = given[int(name) : int(name) + 1] or ("",) if number else given[1:]
        if not (number or name in "@*") or not self.scope.fits(*texts):
            self._computed(f"${name}")
            return
        for index, text in enumerate(texts):
            if index:
                self._end_word()
            self._insert(text, quoted=quoted)

    def _insert(self, value: str, *, quoted: bool) -> None:
        # A quoted variable is one word; an unquoted one is split at blanks.
        for index, piece in enumerate([value] if quoted else _BLANKS.split(value)):
            if index:
                self._end_word()
            if piece or quoted:
                self._add(piece)

    def _find(self, mark: str, what: str) -> int:
        end = self.text.find(mark, self._at + 1)
        return end if end >= 0 else self._open(what)

    def _open(self, what: str) -> NoReturn:
        raise UnbalancedError(what)

    def _matching(self, start: int, quotes: str = "'\"") -> int:
        """Find the bracket that closes the one at start."""
        opening = self.text[start]
        closing = ")" if opening == "(" else "}"
        depth, at = 0, start
        while match := _BRACKET.search(self.text, at):
            at = match.end()
            if match[0] == "\\":
                at += 1
            elif match[0] in quotes:
                end = self.text.find(match[0], at)
                at = end + 1 if end >= 0 else len(self.text)
            elif match[0] in {opening, closing}:
                depth += 1 if match[0] == opening else -1
                if not depth:
                    return match.start()
        raise UnbalancedError(f"a bracket ({opening})", sure=False)
