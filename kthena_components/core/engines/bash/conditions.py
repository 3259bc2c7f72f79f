"""Conditions: `test`, `[ … ]` and `[[ … ]]`, in which words are not split.

Source: POSIX.1-2024, Utilities, test; bash's manual, 3.2.5.2 and 6.4. A condition over what is
not known is not decided (`Doubt`).
"""

from collections.abc import Callable, Sequence

from kthena_components.core.engines.bash.call import Call, is_folder, path_of, text_of
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.fields import escape, matches
from kthena_components.core.engines.bash.parameters import value_of
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell, Status
from kthena_components.core.engines.bash.shell_state import UNSET, Array, Many, is_known
from kthena_components.core.engines.bash.syntax import COMPARISONS, Condition, Text, Word
from kthena_components.core.engines.files import Absent
from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex
from kthena_components.core.values.unknown import Unknown

Truth = bool | Doubt
_INTEGER = regex(r"[ \t]*[-+]?[0-9]{1,18}[ \t]*")
UNARY = regex(r"-[abcdefghknoprstuvwxzGLNORS]")
_OTHERS = frozenset({"=", "==", "!=", "<", ">", "-nt", "-ot", "-ef", "=~"})
_FILES = frozenset({"-e", "-f", "-r", "-s"})
_BINARY = _OTHERS.union(COMPARISONS)
_MOST_NEGATED = 3
"""Words behind a `!` that stands in front of all of them, and of no part."""


class MalformedError(Exception):
    """A condition that is none."""


def test(call: Call) -> Flow:
    """Run `test` or `[`."""
    words = list(call.words[1:])
    if call.words[0] == "[":
        if words[-1:] != ["]"]:
            return call.shell.done(2)
        words.pop()
    many = any(isinstance(word, Many) for word in words)
    truth = doubt(call.shell, *words) if many else _few(call.shell, words)
    return call.shell.done(status_of(truth))


def status_of(truth: Truth) -> Status:
    """Return the exit status of a condition."""
    return truth if isinstance(truth, Doubt) else int(not truth)


def negated(truth: Truth) -> Truth:
    """Return the opposite."""
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
    """Join two conditions: at least one must hold."""
    return negated(both(negated(left), lambda: negated(right())))


def doubt(shell: Shell, *texts: str) -> Doubt:
    """Say how a condition over some strings is not known."""
    late = [text for text in texts if not is_known(text)]
    return Doubt.VARIES if late and all(map(shell.shared.scope.varies, late)) else Doubt.OPEN


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
        return is_folder(shell, path_of(shell, word)) or Doubt.OPEN
    text = text_of(shell, path_of(shell, word)) if operator in _FILES else None
    if isinstance(text, Absent):
        return False
    known = isinstance(text, str) and (operator != "-s" or bool(text))
    return True if known else Doubt.OPEN


def compared(shell: Shell, left: str, operator: str, right: str) -> Truth:
    """Decide a condition over two words that are not patterns."""
    if not (is_known(left) and is_known(right)):
        return doubt(shell, left, right)
    if operator in COMPARISONS:
        if not (_INTEGER.fullmatch(left) and _INTEGER.fullmatch(right)):
            return Doubt.OPEN
        return COMPARISONS[operator](int(left), int(right))
    if operator in {"=", "!="}:
        return (left == right) == (operator == "=")
    if operator == "==":
        # Other shells have no such operator, and their condition does not hold.
        return (left == right) and (shell.bash or Doubt.OPEN)
    return Doubt.OPEN


def _few(shell: Shell, words: Sequence[str]) -> Truth:
    """Decide up to four words."""
    truth: Truth
    match words:
        case []:
            truth = False
        case [word]:
            truth = unary(shell, "-n", word)
        case [left, operator, right] if operator in _BINARY:
            truth = compared(shell, left, operator, right)
        case ["!", *rest] if len(rest) <= _MOST_NEGATED and words[1] not in {"-a", "-o"}:
            truth = negated(_few(shell, rest))
        case [operator, word] if UNARY.fullmatch(operator):
            truth = unary(shell, operator, word)
        case _:
            truth = Doubt.OPEN  # -a, -o and brackets are not read
    return truth


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
        text = Expander(self.shell).text
        match operands:
            case [word]:
                return unary(self.shell, "-n", text(word))
            case [first, word] if UNARY.fullmatch(_operator(first)):
                return unary(self.shell, _operator(first), text(word))
            case [left, middle, right] if _operator(middle) in COMPARISONS:
                return self.numbers(text(left), _operator(middle), text(right))
            case [left, middle, right] if _operator(middle) in {"=", "==", "!="}:
                fits = self.fits(text(left), right)
                return negated(fits) if _operator(middle) == "!=" else fits
        return Doubt.OPEN

    def fits(self, text: str, word: Word) -> Truth:
        """Return whether a string fits a pattern."""
        expander = Expander(self.shell)
        pattern = expander.pattern(word)
        if pattern is None or not is_known(text):
            return doubt(self.shell, text, expander.text(word))
        found = True if pattern == escape(text) else matches(text, pattern)
        return Doubt.OPEN if found is None else found

    def numbers(self, left: str, operator: str, right: str) -> Truth:
        """Compare two arithmetic expressions."""
        expander = Expander(self.shell)
        if not (is_known(left) and is_known(right)):
            return doubt(self.shell, left, right)
        first, second = expander.computed(left), expander.computed(right)
        if isinstance(first, Unknown) or isinstance(second, Unknown):
            return Doubt.OPEN
        return COMPARISONS[operator](first, second)


def _operator(word: Word) -> str:
    first = word[0] if len(word) == 1 else None
    return first.text if isinstance(first, Text) and not first.quoted else ""
