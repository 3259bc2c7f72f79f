"""Arithmetic of a shell: `$((…))`, `((…))`, `let` and indices.

Source: bash's manual, 6.5; expr.c. Numbers have 64 bits and wrap around.
"""

from collections.abc import Callable
from typing import Protocol

from kthena_components.core.values.dataclass import dataclass
from kthena_components.core.values.regex import regex

_LONGEST = 500
_DEEPEST = 15
_TOKEN = regex(
    r"[ \t\n]*(?:([0-9][0-9A-Za-z]*)(?![@_#])|([A-Za-z_][A-Za-z0-9_]*)"
    r"|(<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%]=|\*(?!\*)|<(?!<)|>(?!>)|[-+/%=!,()]))"
)
_CHANGED = regex(
    r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:\[[^\]]*\])?\s*(?:(?:[-+*/%&^|]|<<|>>)?=(?!=)|\+\+|--)"
    r"|(?:\+\+|--)\s*([A-Za-z_][A-Za-z0-9_]*)"
)
_INTEGER = regex(r"[ \t\n]*([-+]?)([0-9][0-9A-Za-z@_#]*)[ \t\n]*")
_LEVELS = (
    ("||",), ("&&",), ("==", "!="), ("<=", ">=", "<", ">"), ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_ASSIGNMENTS = frozenset({"=", "+=", "-=", "*=", "/=", "%="})


class UnknownNumberError(Exception):
    """An expression whose value is not known."""


class NoNumberError(Exception):
    """An expression that has no value: the shell gives up the line that it stands in."""


class Names(Protocol):
    """Variables of the shell that computes."""

    def number_of(self, name: str) -> str | None:
        """Return a variable's text, empty where it is not set; None if it is unknown."""
        ...

    def set_number(self, name: str, text: str | None) -> None:
        """Set a variable; None if its value is unknown."""
        ...

    def forget(self) -> None:
        """Record that any variable may have been set."""
        ...


def compute(text: str, names: Names) -> int | None:
    """Compute an expression whose text is known; None if its value is not.

    Variables that it sets are set; where it is not known to what, they are not known either.

    Raises:
        NoNumberError: It is not an expression, or divides by zero.
    """
    try:
        return _Computer(_tokens(text), names).whole()
    except UnknownNumberError:
        forget_changed(text, names)
        return None


def forget_changed(text: str, names: Names) -> None:
    """Record that an expression may have set the variables that it names so."""
    if len(text) > _LONGEST:
        names.forget()
        return
    for match in _CHANGED.finditer(text):
        names.set_number(match[1] or match[2], None)


def _tokens(text: str) -> list[str]:
    """Split an expression into numbers, names and operators; anything rarer is not known."""
    found, at = list[str](), 0
    if len(text) > _LONGEST:
        raise UnknownNumberError
    end = len(text.rstrip(" \t\n"))
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            # An element of an array, a choice, a power, bits, a base.
            raise UnknownNumberError
        found.append(match[1] or match[2] or match[3])
        at = match.end()
    return found


@dataclass(slots=True)
class _Computer:
    """Reads an expression from left to right; what is skipped has no effect."""

    tokens: list[str]
    names: Names
    depth: int = 0
    at: int = 0
    live: bool = True
    """Whether what is read counts: not behind `0 &&`."""

    def whole(self) -> int:
        """Return the value of all of it."""
        value = self.listed() if self.tokens else 0
        if self.at < len(self.tokens):
            raise NoNumberError
        return value

    def take(self, *wanted: str) -> str:
        """Take the next token if it is one of these."""
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return ""

    def listed(self) -> int:
        """Read expressions between commas."""
        value = self.assigned()
        while self.take(","):
            value = self.assigned()
        return value

    def assigned(self) -> int:
        """Read `NAME op= expression`, or operators."""
        following = self.tokens[self.at + 1 : self.at + 2]
        name = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if not following or following[0] not in _ASSIGNMENTS or not _is_name(name):
            return self.level(0)
        self.at += 2
        value = self.nested(self.assigned)
        sign = following[0][:-1]
        if not self.live:
            return 0
        if sign:
            value = _operate(sign, self.value_of(name), value)
        self.names.set_number(name, str(value))
        return value

    def skipping(self, read: Callable[[], int], *, skip: bool) -> int:
        """Read something that may have no effect."""
        live, self.live = self.live, self.live and not skip
        value = read()
        self.live = live
        return value

    def nested(self, read: Callable[[], int]) -> int:
        """Read something one level deeper."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnknownNumberError
        value = read()
        self.depth -= 1
        return value

    def level(self, index: int) -> int:
        """Read operators from a level of binding on, those that bind the least first."""
        if index == len(_LEVELS):
            return self.signed()
        value = self.level(index + 1)
        while sign := self.take(*_LEVELS[index]):
            if sign in {"&&", "||"}:
                short = bool(value) == (sign == "||")
                right = self.skipping(lambda: self.level(index + 1), skip=short)
                value = int(sign == "||") if short else int(bool(right))
            else:
                right = self.level(index + 1)
                value = _operate(sign, value, right) if self.live else 0
        return value

    def signed(self) -> int:
        """Read signs, `++NAME` and one value."""
        sign = self.take("+", "-", "!", "++", "--")
        if sign in {"++", "--"}:
            name = self.tokens[self.at] if self.at < len(self.tokens) else ""
            if not _is_name(name):
                raise NoNumberError
            self.at += 1
            return self.changed(name, sign)[1]
        if not sign:
            return self.single()
        value = self.nested(self.signed)
        return {"+": value, "-": -value, "!": int(not value)}[sign]

    def single(self) -> int:
        """Read a number, a variable or something in brackets."""
        if self.take("("):
            value = self.nested(self.listed)
            if not self.take(")"):
                raise NoNumberError
            return value
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        self.at += 1
        if not _is_name(token):
            return _number(token)
        sign = self.take("++", "--")
        return self.changed(token, sign)[0] if sign else self.value_of(token)

    def changed(self, name: str, sign: str) -> tuple[int, int]:
        """Count a variable up or down; return what it was and what it is."""
        before = self.value_of(name)
        after = _operate(sign[0], before, 1)
        if self.live:
            self.names.set_number(name, str(after))
        return before, after

    def value_of(self, name: str) -> int:
        """Return a variable's value, whose text may be an expression itself."""
        if not self.live:
            return 0
        text = self.names.number_of(name)
        if text is None or len(text) > _LONGEST:
            raise UnknownNumberError
        number = _INTEGER.fullmatch(text)
        if number or not text:
            return int(number[1] + "1") * _number(number[2]) if number else 0
        inner = _Computer(_tokens(text), self.names, self.depth + 1)
        if inner.depth > _DEEPEST or _CHANGED.search(text):
            raise UnknownNumberError
        return inner.whole()


def _is_name(token: str) -> bool:
    return token.isidentifier() and token.isascii()


def _number(token: str) -> int:
    """Read a decimal, octal (leading 0) or hexadecimal number of at most 63 bits."""
    try:
        if token[:2].lower() == "0x":
            value = int(token, 16) if token.isalnum() else -1
        else:
            value = int(token, 8 if token.startswith("0") else 10) if token.isdecimal() else -1
    except ValueError:
        value = -1
    if not 0 <= value < 1 << 63:
        raise NoNumberError
    return value


def _operate(sign: str, left: int, right: int) -> int:
    if sign in {"/", "%"} and right == 0:
        raise NoNumberError
    value = _OPERATIONS[sign](left, right)
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _quotient(left: int, right: int) -> int:
    """Divide as C does: towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "%": lambda a, b: a - b * _quotient(a, b),
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
}
