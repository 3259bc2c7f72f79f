"""`[[ … ]]`, in which words are not split and the right side is a pattern.

Source: bash's manual, 3.2.5.2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kthena_components.core.engines.bash.conditions import (
    COMPARISONS,
    UNARY,
    MalformedError,
    Truth,
    both,
    doubt,
    either,
    negated,
    status_of,
    unary,
)
from kthena_components.core.engines.bash.expand import Expander
from kthena_components.core.engines.bash.patterns import escape, matches
from kthena_components.core.engines.bash.shell import Doubt, Flow, Shell
from kthena_components.core.engines.bash.state import is_known
from kthena_components.core.engines.bash.syntax import Condition, Text, Word
from kthena_components.core.values.unknown import Unknown


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
        """Return whether a text fits a pattern."""
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
