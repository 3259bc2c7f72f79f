"""Conditions: `test`, `[ … ]` and `[[ … ]]`.

Source: POSIX.1-2024, Utilities, test; bash's manual, 6.4. A condition over what is not known is
not decided (`Doubt`).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kthena_components.core.engines.bash.call import Call
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.files import path_of, text_of
from kthena_components.core.engines.bash.names import value_of
from kthena_components.core.engines.bash.patterns import escape, matches
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell, Status
from kthena_components.core.engines.bash.state import UNSET, Array, Many, is_known
from kthena_components.core.engines.bash.syntax import Condition, Text, Word
from kthena_components.core.engines.files import Absent
from kthena_components.core.values.unknown import Unknown

Truth = bool | Doubt
_INTEGER = re.compile(r"[ \t]*[-+]?[0-9]{1,18}[ \t]*")
_COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    "-eq": lambda a, b: a == b,
    "-ne": lambda a, b: a != b,
    "-lt": lambda a, b: a < b,
    "-le": lambda a, b: a <= b,
    "-gt": lambda a, b: a > b,
    "-ge": lambda a, b: a >= b,
}
_UNARY = re.compile(r"-[abcdefghknoprstuvwxzGLNORS]")
_OTHERS = frozenset({"=", "==", "!=", "<", ">", "-nt", "-ot", "-ef", "=~"})
_FILES = frozenset({"-e", "-f", "-r", "-s"})
_BINARY = _OTHERS.union(_COMPARISONS)
_SIZE = {"binary": 3, "unary": 2}


class MalformedError(Exception):
    """A condition that is none."""


def test(call: Call) -> Flow:
    """Run `test` or `[`."""
    words = list(call.words[1:])
    if call.words[0] == "[":
        if words[-1:] != ["]"]:
            return call.shell.done(2)
        words.pop()
    try:
        truth = _Test(call.shell, words).whole()
    except MalformedError:
        truth = Doubt.OPEN
    return call.shell.done(status_of(truth))


def status_of(truth: Truth) -> Status:
    """Give the exit status of a condition."""
    return truth if isinstance(truth, Doubt) else int(not truth)


def negated(truth: Truth) -> Truth:
    """Give the opposite."""
    return truth if isinstance(truth, Doubt) else not truth


def both(left: Truth, right: Callable[[], Truth]) -> Truth:
    """Join two conditions that must hold."""
    if left is False:
        return False
    second = right()
    if second is False or left is True:
        return second
    return Doubt.OPEN if Doubt.OPEN in {left, second} else left


def either(left: Truth, right: Callable[[], Truth]) -> Truth:
    """Join two conditions of which one must hold."""
    return negated(both(negated(left), lambda: negated(right())))


def doubt(shell: Shell, *texts: str) -> Doubt:
    """Say how a condition over some texts is not known."""
    late = [text for text in texts if not is_known(text)]
    return Doubt.VARIES if late and all(map(shell.session.scope.varies, late)) else Doubt.OPEN


def unary(shell: Shell, operator: str, word: str) -> Truth:
    """Decide a condition over one word."""
    if operator in {"-z", "-n"}:
        if not is_known(word):
            return doubt(shell, word)
        return (word == "") == (operator == "-z")
    if operator == "-v" and shell.bash and word.isidentifier():
        found = value_of(shell, word)
        return False if found is UNSET else isinstance(found, str | Array) or Doubt.OPEN
    if operator == "-d":
        path = path_of(shell, word)
        mounts = (mount.path for mount in shell.session.scope.files)
        return True if path and any(path == mount for mount in mounts) else Doubt.OPEN
    text = text_of(shell, path_of(shell, word)) if operator in _FILES else None
    if isinstance(text, Absent):
        return False
    known = isinstance(text, str) and (operator != "-s" or bool(text))
    return True if known else Doubt.OPEN


def compared(shell: Shell, left: str, operator: str, right: str) -> Truth:
    """Decide a condition over two words that are no patterns."""
    if not (is_known(left) and is_known(right)):
        return doubt(shell, left, right)
    if operator in _COMPARISONS:
        if not (_INTEGER.fullmatch(left) and _INTEGER.fullmatch(right)):
            return Doubt.OPEN
        return _COMPARISONS[operator](int(left), int(right))
    if operator in {"=", "!="}:
        return (left == right) == (operator == "=")
    if operator == "==":
        # Other shells have no such operator, and their condition does not hold.
        return (left == right) and (shell.bash or Doubt.OPEN)
    return Doubt.OPEN


@dataclass(slots=True)
class _Test:
    """The words of one `test`."""

    shell: Shell
    words: list[str]
    at: int = 0

    def whole(self) -> Truth:
        """Decide it: by the number of words as far as POSIX does, else by precedence."""
        if any(isinstance(word, Many) for word in self.words):
            return doubt(self.shell, *self.words)
        return self.few(self.words)

    def few(self, words: Sequence[str]) -> Truth:
        """Decide up to four words."""
        match list(words):
            case []:
                return False
            case [word]:
                return unary(self.shell, "-n", word)
            case ["!", *rest] if len(rest) < _SIZE["binary"] + 1 and not self.binary(words):
                return negated(self.few(rest))
            case [operator, word] if _UNARY.fullmatch(operator):
                return unary(self.shell, operator, word)
            case [left, operator, right] if operator in _BINARY:
                return compared(self.shell, left, operator, right)
            case ["(", *rest, ")"] if len(rest) <= _SIZE["unary"]:
                return self.few(rest)
        return self.long()

    def binary(self, words: Sequence[str]) -> bool:
        """Tell whether three words have an operator in the middle."""
        middle = words[1] if len(words) == _SIZE["binary"] else ""
        return middle in _BINARY or middle in {"-a", "-o"}

    def long(self) -> Truth:
        """Decide conditions joined by -a and -o."""
        truth = self.any_of()
        if self.at < len(self.words):
            raise MalformedError
        return truth

    def any_of(self) -> Truth:
        """Decide conditions between -o."""
        truth = self.all_of()
        while self.take("-o"):
            right = self.all_of()
            truth = either(truth, lambda: right)  # noqa: B023 - called at once
        return truth

    def all_of(self) -> Truth:
        """Decide conditions between -a."""
        truth = self.one()
        while self.take("-a"):
            right = self.one()
            truth = both(truth, lambda: right)  # noqa: B023 - called at once
        return truth

    def take(self, word: str) -> bool:
        """Take a word if it is the next one."""
        found = self.words[self.at : self.at + 1] == [word]
        self.at += found
        return found

    def one(self) -> Truth:
        """Decide one condition."""
        rest = self.words[self.at :]
        if len(rest) >= _SIZE["binary"] and rest[1] in _BINARY:
            self.at += 3
            return compared(self.shell, rest[0], rest[1], rest[2])
        if self.take("!"):
            return negated(self.one())
        if self.take("("):
            truth = self.any_of()
            if not self.take(")"):
                raise MalformedError
            return truth
        if len(rest) >= _SIZE["unary"] and _UNARY.fullmatch(rest[0]):
            self.at += 2
            return unary(self.shell, rest[0], rest[1])
        if not rest or rest[0] in {"-a", "-o", ")"}:
            raise MalformedError
        self.at += 1
        return unary(self.shell, "-n", rest[0])


def condition(shell: Shell, node: Condition) -> Flow:
    """Run `[[ … ]]`."""
    try:
        truth = _Double(shell, node.tokens).whole()
    except MalformedError:
        truth = Doubt.OPEN
    return shell.done(status_of(truth) if shell.bash else Doubt.OPEN)


@dataclass(slots=True)
class _Double:
    """The tokens of one `[[ … ]]`."""

    shell: Shell
    tokens: Sequence[str | Word]
    at: int = 0

    def whole(self) -> Truth:
        """Decide all of it."""
        truth = self.any_of()
        if self.at < len(self.tokens):
            raise MalformedError
        return truth

    def take(self, mark: str) -> bool:
        """Take a mark if it is the next token."""
        found = self.at < len(self.tokens) and self.tokens[self.at] == mark
        self.at += found
        return found

    def any_of(self) -> Truth:
        """Decide conditions between `||`."""
        truth = self.all_of()
        while self.take("||"):
            truth = either(truth, self.all_of) if truth is not True else self.skipped(self.all_of)
        return truth

    def all_of(self) -> Truth:
        """Decide conditions between `&&`."""
        truth = self.one()
        while self.take("&&"):
            truth = (
                both(truth, self.one) if truth is not False else self.skipped(self.one, truth=False)
            )
        return truth

    def skipped(self, read: Callable[[], Truth], *, truth: bool = True) -> Truth:
        """Pass over a condition that decides nothing."""
        read()
        return truth

    def one(self) -> Truth:
        """Decide one condition."""
        if self.take("!"):
            return negated(self.one())
        if self.take("("):
            truth = self.any_of()
            if not self.take(")"):
                raise MalformedError
            return truth
        operands: list[Word] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if isinstance(token, str):
                if token not in {"<", ">", "=~"}:
                    break
                operands.append((Text(token, quoted=False),))
            else:
                operands.append(token)
            self.at += 1
        return self.operation(operands)

    def operation(self, operands: Sequence[Word]) -> Truth:
        """Decide a condition of one to three words."""
        expander = Expander(self.shell)
        if len(operands) == 1:
            return unary(self.shell, "-n", expander.text(operands[0]))
        operator = _operator(operands[-2])
        if len(operands) == _SIZE["unary"] and _UNARY.fullmatch(operator):
            return unary(self.shell, operator, expander.text(operands[1]))
        if len(operands) != _SIZE["binary"]:
            return Doubt.OPEN
        left = expander.text(operands[0])
        if operator in _COMPARISONS:
            return self.numbers(left, operator, expander.text(operands[2]))
        if operator not in {"=", "==", "!="}:
            return Doubt.OPEN
        right = expander.pattern(operands[2])
        if right is None or not is_known(left):
            texts = (left, expander.text(operands[2]))
            return doubt(self.shell, *texts)
        if right == escape(left):
            fits: bool | None = True
        else:
            fits = matches(left, right)
        return Doubt.OPEN if fits is None else fits == (operator != "!=")

    def numbers(self, left: str, operator: str, right: str) -> Truth:
        """Compare two arithmetic expressions."""
        expander = Expander(self.shell)
        if not (is_known(left) and is_known(right)):
            return doubt(self.shell, left, right)
        first, second = expander.computed(left), expander.computed(right)
        if isinstance(first, Unknown) or isinstance(second, Unknown):
            return Doubt.OPEN
        return _COMPARISONS[operator](first, second)


def _operator(word: Word) -> str:
    first = word[0] if len(word) == 1 else None
    return first.text if isinstance(first, Text) and not first.quoted else ""
