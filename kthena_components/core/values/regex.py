"""Regular expressions: compiled when they are first used, and whether Go can read them.

`check` defines more than 200, and most files need few of them.

Checks whether Go can read a regular expression: Volcano's webhook rejects others.

Also checks whether the pattern matches whole names, since Volcano searches for it anywhere in a
name.

Source: Go's regexp/syntax/parse.go, with the flags of regexp.Compile.
"""

import re
from collections.abc import Mapping
from typing import Any, AnyStr, cast


class _LazyPattern:
    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)  # the next use finds it without this function
        return found


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, but compile the text when a method is first used.

    The result has the methods of a pattern and is none: `isinstance(…, re.Pattern)` is False.
    """
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))


_LIMIT = 1000
"""Maximum number of repetitions; nested ones multiply."""
_REPEAT = regex(r"\{(0|[1-9][0-9]*)(,(0|[1-9][0-9]*)?)?\}", re.ASCII)
_NAMED = regex(r"\(\?P?<([A-Za-z0-9_]+)>")
_FLAGS = regex(r"\(\?(?:[imsU]*|[imsU]*-[imsU]+)[:)]")
_POSIX_NAMES = regex(
    r"alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit"
)
_UNICODE = regex(r"\\[pP](?:\{\^?([A-Za-z_]+)\}|([A-Z]))")
_CATEGORIES = regex(
    r"Any|C[cfos]?|L[lmotu]?|M[cen]?|N[dlo]?|P[cdefios]?|S[ckmo]?|Z[lps]?|Arabic|Armenian|Cyrillic"
    r"|Devanagari|Greek|Han|Hangul|Hebrew|Hiragana|Katakana|Latin|Thai"
)
"""Categories and some scripts: no node name contains letters of others."""
_ESCAPE = regex(
    r"\\(?:[1-7][0-7][0-7]?|0[0-7]{0,2}|x\{0*[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|[afnrtv]"
    r"|[^0-9A-Za-z\x80-\U0010ffff])"
)
_ESCAPE_OR_CLASS = regex(r"\\.|\[\^?\]?[^\]]*\]")
_ESCAPED = regex(r"\\.")


class _Unreadable(Exception):  # noqa: N818 - not an error of this package
    """Why Go cannot read a pattern."""


def trouble_in_go(pattern: str) -> str:
    """Explain why Go cannot read a pattern; empty if it can."""
    try:
        _Reader(pattern).read()
    except _Unreadable as trouble:
        return str(trouble)
    return ""


def anchored(pattern: str) -> str | None:
    """Anchor a whole pattern; None if every alternative is already anchored."""
    bare = _outside_groups(pattern)
    if all(part.startswith("^") and part.endswith("$") for part in bare.split("|")):
        return None
    core = pattern.removeprefix("^")
    core = core.removesuffix("$") if bare.endswith("$") else core
    return f"^(?:{core})$" if "|" in bare else f"^{core}$"


def _outside_groups(pattern: str) -> str:
    """Remove escapes, classes and groups from a pattern."""
    # No class closes after the last ]; searching at every [ would be quadratic.
    end = pattern.rfind("]") + 1
    plain = _ESCAPE_OR_CLASS.sub("", pattern[:end]) + _ESCAPED.sub("", pattern[end:])
    bare: list[str] = []
    opened: list[int] = []
    for char in plain:
        if char == ")" and opened:
            del bare[opened.pop() :]
            continue
        if char == "(":
            opened.append(len(bare))
        bare.append(char)
    return "".join(bare)


class _Reader:
    def __init__(self, pattern: str) -> None:
        """Start before the first character, outside of all groups."""
        self.text, self.at = pattern, 0
        self.weights: list[int] = []
        """Maximum repetitions in each open group so far."""
        self.most = 1
        """The same, at the current position."""
        self.atom: int | None = None
        """Repetitions in the expression before a repetition, if any."""
        self.repeated = False
        self.bracket = -1
        """Cached position of the next ]."""

    def read(self) -> None:
        """Read the pattern to its end, one item at a time."""
        while self.at < len(self.text):
            repeat = _REPEAT.match(self.text, self.at)
            here = self.text[self.at]
            if here in "*+?" or repeat:
                self._repeat(repeat)
                continue
            self.repeated = False
            match here:
                case "(":
                    self._open()
                case ")":
                    self._close()
                case "|":
                    self.at, self.atom = self.at + 1, None
                case "[":
                    self._class()
                case "\\":
                    self._escape()
                case _:
                    self._put(1)
        if self.weights:
            raise _Unreadable("a '(' is not closed")

    def _put(self, length: int, weight: int = 1) -> None:
        self.at, self.atom = self.at + length, weight
        self.most = max(self.most, weight)

    def _repeat(self, found: re.Match[str] | None) -> None:
        """Read `*`, `+`, `?` or `{m,n}`, which needs an expression that is not repeated yet."""
        written = found[0] if found else self.text[self.at]
        if self.atom is None:
            raise _Unreadable(f"'{written}' has nothing to repeat")
        if self.repeated:
            raise _Unreadable(f"'{written}' repeats a repetition")
        self.at += len(written)
        self.at += self.text.startswith("?", self.at)
        self.repeated = True
        if found:
            self._count(found)

    def _count(self, found: re.Match[str]) -> None:
        """Count repetitions, also of nested ones: Go takes at most 1000 together."""
        least = int(found[1][:9])
        most = least if found[2] is None else int(found[3][:9]) if found[3] else None
        if least > _LIMIT or (most is not None and not least <= most <= _LIMIT):
            raise _Unreadable(f"'{found[0]}' is not a count of repetitions up to {_LIMIT}")
        times = least if most is None else most
        weight = times * (self.atom or 1) or 1
        if max(least, times) > 1 and weight > _LIMIT:
            raise _Unreadable(f"'{found[0]}' makes more than {_LIMIT} repetitions")
        self.atom, self.most = weight, max(self.most, weight)

    def _open(self) -> None:
        """Open a group; Go reads names and flags, but neither lookaround nor conditions."""
        named, flags = (form.match(self.text, self.at) for form in (_NAMED, _FLAGS))
        if self.text.startswith("(?", self.at) and not named and not flags:
            raise _Unreadable(f"'{self.text[self.at : self.at + 3]}' is not valid in Go")
        if flags and flags[0].endswith(")"):
            self.at += len(flags[0])
            return
        self.at += len((named or flags or "(")[0])
        self.weights.append(self.most)
        self.most, self.atom = 1, None

    def _close(self) -> None:
        if not self.weights:
            raise _Unreadable("a ')' closes nothing")
        inside, self.most = self.most, self.weights.pop()
        self._put(1, inside)

    def _escape(self) -> None:
        r"""Read an escape: a quotation of `\Q`, a class, or one character."""
        following = self.text[self.at + 1 : self.at + 2]
        if following == "Q":
            end = self.text.find("\\E", self.at)
            self._put((end + 2 if end >= 0 else len(self.text)) - self.at)
        elif following and following in "AbBzdDsSwW":
            self._put(2)
        else:
            self._put(len(self._character()))

    def _class(self) -> None:
        """Read a class of characters in brackets."""
        start = self.at
        self.at += 2 if self.text.startswith("[^", self.at) else 1
        first = True
        while first or not self.text.startswith("]", self.at):
            first = False
            if self.at >= len(self.text):
                raise _Unreadable("a '[' is not closed")
            self._member()
        self.at, self.atom = self.at + 1, 1
        self.most = max(self.most, 1)
        if self.at > len(self.text):
            raise _Unreadable(f"the '[' at {start} is not closed")

    def _member(self) -> None:
        """Read one member of a class in brackets: a character, a range or a named class."""
        if posix := self._posix():
            if not _POSIX_NAMES.fullmatch(posix[2:-2].removeprefix("^")):
                raise _Unreadable(f"'{posix}' is not a class of characters")
            self.at += len(posix)
            return
        if re.compile(r"\\[dDsSwWpP]").match(self.text, self.at):
            written = self._character() if self.text[self.at + 1] in "pP" else "\\d"
            self.at += len(written)
            return
        low = self._character()
        self.at += len(low)
        if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in {
            "",
            "]",
        }:
            self.at += 1
            high = self._character(perl=False)
            self.at += len(high)
            if _value(high) < _value(low):
                raise _Unreadable(f"'{low}-{high}' is not a range")

    def _posix(self) -> str:
        """Return the `[:name:]` at the current position, if any."""
        if not self.text.startswith("[:", self.at):
            return ""
        if self.bracket < self.at:
            found = self.text.find("]", self.at)
            self.bracket = len(self.text) if found < 0 else found
        whole = self.text.startswith(":]", max(self.bracket - 1, self.at + 2))
        return self.text[self.at : self.bracket + 1] if whole else ""

    def _character(self, *, perl: bool = True) -> str:
        """Return the character, or its escape, at the current position."""
        if self.at >= len(self.text):
            raise _Unreadable("a '[' is not closed")
        if self.text[self.at] != "\\":
            return self.text[self.at]
        if perl and (category := _UNICODE.match(self.text, self.at)):
            if _CATEGORIES.fullmatch(category[1] or category[2]):
                return category[0]
            raise _Unreadable(f"'{category[0]}' is not a class of characters")
        if escape := _ESCAPE.match(self.text, self.at):
            return escape[0]
        raise _Unreadable(f"'{self.text[self.at : self.at + 2]}' is not valid in Go")


_SIGNS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def _value(written: str) -> int:
    if not written.startswith("\\") or written == "\\":
        return ord(written)
    body = written[1:]
    if body[0] == "x":
        return int(body[1:].strip("{}"), 16)
    return int(body, 8) if body[0].isdigit() else _SIGNS.get(body, ord(body[0]))


_DATE = "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_TIME = "(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}(?:.[0-9]+)?(?:[Zz]|[+-][0-9]{2}:[0-9]{2})"
FORMATS: Mapping[str, tuple[str, str, str]] = {
    "byte": (
        "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$",
        "base64", "base64, for example YQ==",
    ),
    "date-time": (
        f"^{_DATE}[Tt]{_TIME}$",
        "a date and time with a time zone", "it like 2026-01-31T12:00:00Z",
    ),
    "password": ("", "a string", "a string"),
    "uri": ("^(?:/|[A-Za-z][A-Za-z0-9+.-]*:)", "a URI", "it with a scheme, like http://"),
}  # fmt: skip
"""Formats of strings that the API server checks: the pattern, what it is, and a remedy.

A password is any string, but no report shows what is in its place.

Source: k8s.io/kube-openapi pkg/validation/strfmt/default.go.
"""
